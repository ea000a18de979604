/* The entries of the caches, their states, and who may move an entry from one state to another.
 *
 * All caches follow one pattern: an entry belongs to the thread that has changed its state by a
 * compare-and-swap. A pointer to an entry in a thread's slot, a queue or a chain is a hint. A
 * thread that finds an entry by a hint must change the entry's state to acquire the entry;
 * otherwise the thread drops the hint. State 0 is "gone": HIP or a reset released the handle, and
 * the library knows nothing about the handle. Entries are never freed, so that a stale hint is
 * harmless. */
#ifndef MGPU_RT_TYPES_H
#define MGPU_RT_TYPES_H

#include "mgpu.h"
#include "modules/image/image.h"
#include "process/state.h"
#include "shared/handles.h"
#include "shared/queue.h"
#include "shared/ranges.h"

struct block_pool;
struct staging;
struct thread;

/* ---- streams ----
 *
 *            from           to             by                              order
 * enter      GONE           LIVE           who had HIP make it             release, tables_lock
 * cache      LIVE           IDLE           a destroy, of the thread's      release; cas acq_rel
 *                                          last one, if it is idle         where others call HIP
 * reuse      IDLE           LIVE           a create, of the thread's       cas acq_rel
 *                                          last one
 * leave      LIVE           TAKEN          any other destroy               cas acq_rel
 * take       IDLE, RETIRED  TAKEN          any other create, or who asks   cas acq_rel
 *                                          HIP about it or gives it back
 * hand out   TAKEN          LIVE           who has taken it: a create      cas acq_rel
 * put        TAKEN          IDLE, RETIRED  who has taken it                cas acq_rel, in a queue
 * release    TAKEN          GONE           who has taken it                cas acq_rel
 * use        GONE           EXTERNAL       a thread that names it          release, tables_lock
 * end        EXTERNAL       GONE           the last that did               cas, tables_lock
 * invalidate LIVE, IDLE,    GONE           who saw the reset               cas acq_rel
 *            RETIRED
 *
 * A reset leaves a TAKEN stream to the thread that has taken the stream. After this thread has
 * moved the stream to another state, the thread invalidates the stream if its device was reset. So
 * an entry begins to serve a new stream only after all threads have stopped using the entry for the
 * old stream. If HIP returns the handle of a TAKEN stream for a new stream, the new stream gets no
 * entry (stream_insert). The program may already
 * hold a queued stream again. stream_pool_total == the
 * number of streams that are not GONE or EXTERNAL. external_users == the number of threads
 * that use a stream as their external stream. completed <= submitted. */
enum stream_state {
    STREAM_GONE,     /* HIP has destroyed the stream: nothing is known about the handle any longer
                      */
    STREAM_EXTERNAL, /* the program created the stream and passed it to mgpu_rt_use_stream. Null
                      * streams and the entries for untracked work also have this state */
    STREAM_IDLE,     /* idle, and may be handed out */
    STREAM_LIVE,     /* held by the program */
    STREAM_RETIRED,  /* the program has destroyed the stream, but work is pending */
    STREAM_TAKEN,    /* a thread owns the stream and is moving it to another state */
};

/* A free reads the first cache line of each stream that may be at work (streams.h). The stream's
 * own calls write the first line only when they submit work or wait for it. A create and a destroy
 * write the other lines. So two threads that create and destroy their own streams do not wait for
 * each other's cache lines. */
struct stream {
    struct handle handle;
    int device;
    unsigned external_users;    /* under tables_lock */
    uint64_t submitted;         /* the number of the last submission (streams.h) */
    uint64_t completed;         /* all submissions up to this number are done */
    struct stream *next_listed; /* links the list of streams.h; written under tables_lock */
    uint64_t asked;             /* the number that the last wait for the device completes; 0: the
                                 * stream is new */
    /* the second cache line */
    int state __attribute__((aligned(64))); /* enum stream_state */
    bool has_blocks;                        /* a block waits, or has waited, for the stream */
    struct block_pool *pool;  /* pool of the blocks that were freed on the stream (blocks.h);
                               * NULL: no block was freed yet */
    struct block_pool *pools; /* the pools of the handle's streams, one for each device */
    struct staging *staging;  /* the pinned memory of the stream's last copy, or NULL */
    struct queued queued;     /* in a queue of the streams that the program does not hold */
    uint64_t put_off; /* the value of `submitted` when a synchronise was postponed (lazy_sync.h) */
    bool asked_about; /* a thread asks HIP about the held stream (held.h) */
    hipEvent_t mark;  /* the library's own event, or NULL (held.c) */
    struct joins *joins; /* the streams that have joined this one (joins.h), or NULL */
    uint64_t born;       /* the last number of the handle's earlier streams */
    uint64_t marked;     /* while the event is pending: the number that it completes */
} __attribute__((aligned(64)));
_Static_assert(offsetof(struct stream, state) == 64, "a free reads only the first cache line");

/* ---- staging ----
 *
 *          from  to  by                                  order
 * take     0     1   a copy, or who trims, invalidates   exchange acquire
 * release  1     0   who has taken it                    release
 *
 * A thread takes a buffer before using the buffer's members. Only `taken` is open to all threads,
 * and all threads may read `owner` as a hint. A stream's copies use the buffer `staging` of the
 * stream if the stream is still the buffer's owner. used <= STAGING_BYTES. The device uses the
 * first `used` bytes until `fence` is done: until then the owner does not change. */
/* A buffer of pinned memory, which one stream uses at a time. If all buffers are in use, HIP makes
 * the copies of further streams. */
struct staging {
    int taken;            /* set by a thread that is copying */
    struct stream *owner; /* the stream whose copies may be pending */
    char *memory;         /* NULL: not allocated yet */
    bool is_refused;      /* HIP has refused the allocation */
    size_t used;          /* bytes of `memory` in use since `fence` was last done */
    uint64_t fence;
};

/* ---- events ----
 *
 *            from  to         by                   order
 * insert     any   LIVE       who had HIP make it  release
 * remove     LIVE  DESTROYED  a destroy            release
 *
 * HIP keeps events at a reset (5.2.3, 5.7.1, 6.4.3, 7.2.4). */
/* A point in the work of a stream: all submissions up to a number. */
struct point {
    struct stream *stream; /* NULL: no point */
    uint64_t number;
};

enum event_state {
    EVENT_GONE,      /* nothing is known about the handle */
    EVENT_DESTROYED, /* the program has destroyed the event */
    EVENT_LIVE,      /* held by the program */
};

struct event {
    struct handle handle;
    int state;          /* enum event_state */
    uint64_t records;   /* the number of records that have begun, times 2^32, plus the number of
                         * those that have not ended */
    uint64_t noted;     /* the value of `records` at the start of the record that has this point */
    struct point point; /* the point of the last record, if records == noted - 1 */
    uint64_t graph;     /* the last graph in which the program created or recorded the event, or 0
                         * (graphs/) */
    struct stream *captured; /* the stream on which the event was last recorded, if that stream was
                              * being captured; updated only while some stream is external */
};

/* ---- modules ----
 *
 *            from        to     by                              order
 * insert     any, GONE   LIVE   who had HIP load it             release, tables_lock
 * acquire    IDLE        LIVE   a load that finds its slot      cas acq_rel, with the version
 *                               a load that searches, or who    cas acq_rel, tables_lock
 *                               evicts it
 * put back   LIVE        IDLE   a load that finds other bytes   cas acq_rel, with the version
 * release    LIVE        IDLE   the owner: an unload            release
 * remove     LIVE        GONE   the owner, before HIP unloads   release, tables_lock
 * invalidate any         GONE   who saw the reset               release, tables_lock
 *
 * Each load of a module by the program returns a separate module, as with stock. A module that the
 * program holds is never handed out a second time, because only the program knows how it uses the
 * module. When HIP returns the handle again, the entry serves the new module, under a new version.
 * version is odd if and only if HIP, as far as the library knows, holds the module that the entry
 * serves. If a reset has already ended a module, the program's unload changes only the state, from
 * GONE to IDLE. Version and state share one word, so a thread without tables_lock acquires a module
 * only if the version is the expected one. Therefore no thread owns a module that a reset has ended
 * and whose handle HIP has returned again. An unload changes the state and does not compare the
 * version, because HIP forbids a reset of the device while the program holds a module.
 * module_cost_all == the sum of module_cost over all modules that are not GONE. */
enum module_state {
    MODULE_GONE,
    MODULE_IDLE, /* the program has unloaded the module, which stays loaded in the cache */
    MODULE_LIVE, /* the program has loaded the module once */
};

/* An address at which the program has an image; the handle is the address. All threads read the
 * entry without a lock. A thread writes the other members under tables_lock, `number` last. */
struct known_image {
    struct handle handle;
    unsigned number; /* the index of the image in each thread's slots; 0: not filled yet */
    bool constant;   /* the bytes can neither change nor be unmapped: a hit skips the comparison */
    struct image image; /* describes the bytes if they are constant */
};

/* A kernel of a module. Threads read a function without a lock. When the module's entry serves
 * another module, the function's entry serves that module's kernel of the same name. */
struct function {
    hipFunction_t handle; /* NULL: HIP was not asked for the function yet */
    struct module *module;
    struct function *next;       /* links the module's functions */
    struct function *next_named; /* links functions whose names have one hash */
    char name[];
};

struct module {
    struct handle handle;
    union {
        uint64_t version_and_state; /* both */
        struct {
            uint32_t state;   /* enum module_state */
            uint32_t version; /* changes when the entry begins or ceases to serve a module */
        };
    };
    int device;
    /* Describes the image of the served module; the image's bytes exist as long as the module is
     * not GONE. */
    struct image image;
    unsigned char *copy; /* contains the image's bytes, unless they are a constant of the program */
    bool shared;         /* the module may be cached and handed out again (image.h says when) */
    uint64_t uses, last_use; /* the owner's */
    /* Under tables_lock. */
    bool pinned;     /* the caches never evict this module, even above a limit */
    unsigned graphs; /* number of graphs that launch the module's kernels: HIP does not
                      * unload the module while there are any */
    struct module *next_image, *previous_image; /* ring of the table of images */
    struct function *functions;
};

/* ---- blocks ----
 *
 *            from          to            by                                  order
 * enter      any           LIVE, SHARED  who had HIP make it                 release, tables_lock
 * free       LIVE, SHARED  IDLE          a free of the program's             cas acq_rel
 * hand out   IDLE          LIVE, SHARED  who took it out of where it lies    release
 * leave      any           GONE          who gives it to HIP, saw the reset  release, tables_lock
 * enter      any           GRAPH         who had HIP make it for a graph     release, tables_lock
 * leave to   LIVE, SHARED, GRAPH_OWNED   a free of the program's while it    cas acq_rel
 * its graph  GRAPH                       builds a graph; of GRAPH any free
 * serve on   GRAPH_OWNED   GRAPH         an allocation of the same graph     cas acq_rel
 *
 * The program holds a block if and only if state >= BLOCK_LIVE. The transition "leave" may end a
 * block that a thread has taken. When that thread then puts the block back, the device's account no
 * longer includes the block. The account of a device == the sum of the sizes of all blocks that are
 * `booked`. A block is booked unless the block is GONE, or a thread had taken the block when the
 * device was reset. At exit all blocks are GONE and stay in the account, but only those that the
 * program held stay booked. A GRAPH_OWNED block is in no pool, and no cache hands it out. An idle
 * block is in one of `ways`, in one list, `loose`, or owned by the thread that takes or puts it. */
enum { BLOCK_GRAIN = 256, BLOCK_EXACT_UP_TO = 64 << 10 };
enum { POOL_SETS = 16, POOL_WAYS = 4, INDEX_LISTS = 640 };

enum block_state {
    BLOCK_GONE,        /* HIP has freed the block */
    BLOCK_IDLE,        /* in a pool */
    BLOCK_GRAPH_OWNED, /* the program has freed the block; a graph still uses it */
    BLOCK_LIVE,        /* held by the program */
    BLOCK_SHARED, /* held, and managed memory. Managed memory has its own state, so that a hit (a
                   * free of device memory) need not test the kind of memory */
    BLOCK_GRAPH,  /* held, and a graph uses the block as long as the graph exists */
};

/* A fence is done once the stream has completed all work that was submitted before the block was
 * freed. */
struct fence {
    struct stream *stream; /* NULL: this fence and all later fences in the list are unused */
    uint64_t number;       /* of the stream (streams.h) */
    struct fence *next;    /* fences are never freed, but reused */
};

/* A block's entry is never freed; when HIP returns the block's address again, the entry serves the
 * new block. */
struct block {
    struct handle handle; /* the address */
    size_t size; /* the bytes that HIP holds; `range` says for how many the program asked */
    int device;
    int state;       /* enum block_state */
    bool shared;     /* managed memory, which the host can also access */
    bool booked;     /* the device's account and the ranges contain the block; under tables_lock
                      */
    uint64_t number; /* HIP's number of the allocation; 0 if the library needs no number */
    /* IDLE: the fences for which the block waits. The fence of the stream on which the block was
     * freed comes first, then the fences of other streams with pending work. GRAPH_OWNED: only the
     * fence of the stream on which the program freed the block */
    struct fence fence;
    uint64_t graph;    /* GRAPH, GRAPH_OWNED: the number of the capture for which the block was
                        * allocated, or 0 */
    uint64_t uses;     /* how often the block was handed out */
    uint64_t last_use; /* the value of block_clock at the block's last free */
    struct range range;
    /* Under tables_lock: the block's places in the index and in a pool (block_pools.c). */
    struct queued indexed;   /* in the list of its size */
    struct queued on_device; /* in the list of its device, exactly if the block is in the index */
    bool loose;              /* idle, and in no pool */
    struct queued listed;    /* in a list of a pool */
    uint64_t waits; /* loose, with several fences: the number of waits for the device before that */
};

/* The clock by which eviction finds the least recently used block. The clock counts the blocks that
 * HIP has allocated; above the limit, the clock also counts the frees. */
extern uint64_t block_clock;

/* The idle blocks that the program freed on a stream, of one device. A block is in one of `ways` or
 * in one list; the thread that removes the block owns it. Pools are never freed. */
struct block_pool {
    struct block *ways[POOL_SETS][POOL_WAYS];
    struct queue lists[POOL_SETS]; /* the blocks that found no empty way of their set */
    int device; /* never changes, although HIP may reuse the stream's handle on another device */
    struct block_pool *next_of_owner; /* links the stream's pools */
};

#endif
