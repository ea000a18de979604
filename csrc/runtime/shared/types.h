/* The entries of the caches, their states, and who may move an entry from one state to another.
 *
 * All follow one pattern: an entry belongs to the thread that has moved its state by a
 * compare-and-swap. An entry's other places (a thread's slot, a queue, a chain) are hints. A thread
 * that finds an entry there takes it by its state, or drops it. State 0 is "gone": HIP released the
 * handle, or a reset took it, and nothing is known of it. Entries are never freed, so that a hint
 * may be stale. */
#ifndef MGPU_RT_TYPES_H
#define MGPU_RT_TYPES_H

#include "mgpu.h"
#include "modules/image/image.h"
#include "process/state.h"
#include "shared/handles.h"
#include "shared/ranges.h"

#include <stdbool.h>
#include <stdint.h>

struct block_pool;
struct staging;
struct stream_queue;
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
 * remove     LOST           GONE           who has taken it                cas acq_rel
 * use        GONE           EXTERNAL       a thread that names it          release, tables_lock
 * end        EXTERNAL       GONE           the last that did               cas, tables_lock
 * invalidate TAKEN          LOST           who saw the reset               cas acq_rel
 *            LIVE, IDLE,    GONE
 *            RETIRED
 *
 * This way a handle begins no second life while a thread has its first one in hand. Only HIP knows
 * which handles it hands out in between (stream_insert). A stream lies in a queue if and only if
 * `queue` is set; a stream there may be held again. stream_pool_total == the number of streams that
 * are not GONE, LOST or EXTERNAL. external_users == the number of threads that use a stream as
 * their external stream. fences_done <= fences. All submitted work is done if completed ==
 * submitted. */
enum stream_state {
    STREAM_GONE,     /* HIP has destroyed the stream: nothing is known of the handle any more */
    STREAM_LOST,     /* gone too; but a thread that had taken it before must still drop it */
    STREAM_IDLE,     /* idle, to be handed out */
    STREAM_LIVE,     /* held by the program */
    STREAM_RETIRED,  /* the program is done with it, but it has work pending */
    STREAM_EXTERNAL, /* made by the program, and named by mgpu_rt_use_stream; or a null stream's, or
                        untracked work's */
    STREAM_TAKEN,    /* a thread owns the stream and is moving it to another state */
};

/* Two threads on two streams share nothing; a hit touches only the first cache line. */
struct stream {
    struct handle handle;
    int device;
    int state;                    /* enum stream_state */
    uint64_t submitted;           /* names the last submission (streams.h) */
    uint64_t completed;           /* the value of `submitted` when the last finished wait began */
    unsigned external_users;      /* under tables_lock */
    bool has_waiters;             /* a block waits for a fence */
    uint64_t fences, fences_done; /* numbers of the last fence set, and of the last one done */
    struct block_pool *pool;    /* memory that was freed on the stream (blocks.h); NULL: none yet */
    struct staging *staging;    /* the pinned memory of the stream's last copy, or NULL */
    struct stream_queue *queue; /* the queue of idle streams that it is in; NULL: in none */
    struct stream *newer, *older; /* there */
    uint64_t asked, asked_fence;  /* `submitted`, and the fence, when a thread began to wait for the
                                     device (that thread's own); 0: none does */
    struct stream *next_listed;   /* streams.h; written under tables_lock */
    bool listed;                  /* in that list; under tables_lock */
    uint64_t put_off; /* the value of `submitted` at a synchronise that was put off (lazy_sync.h) */
} __attribute__((aligned(64)));

/* ---- staging ----
 *
 *          from  to  by                                  order
 * take     0     1   a copy, or who trims, invalidates   exchange acquire
 * release  1     0   who has taken it                    release
 *
 * All but `taken` is for who has taken it; others read the owner as a hint. A stream's copies use
 * this memory if it is the stream's `staging` and the stream is its owner. used <= STAGING_UP. The
 * device reads the first `used` bytes until `fence` is done: until then the memory keeps its
 * owner. */
enum { STAGING_PIECES = 4 /* pieces of a copy from the device that are in flight at once */ };

/* Pinned memory for one stream at a time; if more streams are at work than there are of these, HIP
 * copies for the others. */
struct staging {
    int taken;            /* by a thread that is copying */
    struct stream *owner; /* the stream whose copies may be under way */
    char *up, *down;      /* NULL: not asked for yet */
    bool no_up, no_down;  /* asked for in vain */
    size_t used;          /* of `up`, since `fence` was last done */
    uint64_t fence;
    uint64_t last_use;
    int device; /* the events' */
    hipEvent_t events[STAGING_PIECES];
};

/* ---- events ----
 *
 *            from          to     by                  order
 * insert     any, GONE     LIVE   who had HIP make it release
 * acquire    IDLE          PAST   a create            cas acq_rel
 * put back   PAST          IDLE   who has taken it    cas acq_rel
 * record     PAST          LIVE   the owner           cas acq_rel
 * release    LIVE, PAST    IDLE   a destroy           cas acq_rel
 * trim       IDLE          GONE   who returns it      cas acq_rel
 * remove     LIVE, PAST    GONE   the owner           cas acq_rel
 * invalidate any           GONE   who saw the reset   release
 *
 * The program holds it if and only if state >= EVENT_PAST.
 * An event lies in the common pool's chain if and only if `queued`. */
enum event_state {
    EVENT_GONE,
    EVENT_IDLE, /* destroyed by the program, and cached */
    EVENT_PAST, /* held by the program; HIP knows of it what an earlier owner recorded */
    EVENT_LIVE, /* held by the program; HIP knows of it what this owner did */
};

struct event {
    struct handle handle;
    int state;               /* enum event_state */
    int device;              /* read by others as a hint */
    struct stream *captured; /* the stream that the event was recorded on last, if that captured;
                                maintained while a stream is external */
    /* The common pool's, under tables_lock. */
    struct event *next_idle;
    bool queued;
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
 * Each load of the program's has one to itself, as with stock. A module that the program holds is
 * never handed out a second time, since only the program knows how it uses it. When HIP hands its
 * handle out again, the entry serves the new module, under a new version. version is odd if and
 * only if HIP, as far as is known, has the module that the entry serves. A release that comes after
 * that makes IDLE of GONE, and changes nothing else. A thread without tables_lock acquires one
 * version's module or none, as version and state lie in one word. So it never owns a module that a
 * reset has ended and whose handle HIP has handed out again. An unload changes only the state: its
 * caller holds the module, and HIP forbids a reset of the device until then. module_cost_all == the
 * sum of module_cost over all modules that are not GONE. */
enum module_state {
    MODULE_GONE,
    MODULE_IDLE, /* the program has unloaded the module; only the cache has it, and it is loaded */
    MODULE_LIVE, /* loaded for the program, once */
};

/* A kernel of a module. A stale slot of a thread may still look at its name. When its module's
 * entry serves another module, it serves the kernel of that name there. */
struct function {
    hipFunction_t handle; /* NULL: HIP is to be asked for it */
    struct function *next;
    char name[];
};

struct module {
    struct handle handle;
    union {
        uint64_t version_and_state; /* both */
        struct {
            uint32_t state;   /* enum module_state */
            uint32_t version; /* changes where a module begins or ends to be served */
        };
    };
    int device;
    /* Describes the served module's image; its bytes exist as long as the module is not GONE. */
    struct image image;
    unsigned char *copy; /* holds the image's bytes, unless they are a constant of the program */
    bool shared;         /* the module may be cached and handed out again (image.h tells which) */
    uint64_t uses, last_use; /* the owner's */
    /* Under tables_lock. */
    bool pinned;               /* no limit evicts the module */
    unsigned graphs;           /* graphs that launch the module's kernels: HIP does not unload it */
    struct module *next_image; /* chain in the table of images */
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
 * The program holds it if and only if state >= BLOCK_LIVE.
 * "leave" may meet a block that a thread has taken: the block that this thread makes of it is no
 * longer in the account. The account of a device == the sum of the sizes of all blocks that are
 * `booked`. All blocks but GONE ones are booked, unless a thread had taken them when the device was
 * reset. A block of GRAPH_OWNED is in no pool, and no cache hands it out. An idle block is in one
 * way, in one chain, or owned by the thread that takes or puts it. */
enum { BLOCK_GRAIN = 256, POOL_SETS = 16, POOL_WAYS = 4 };

enum block_state {
    BLOCK_GONE,        /* HIP has freed the block */
    BLOCK_IDLE,        /* in a pool */
    BLOCK_GRAPH_OWNED, /* the program has freed the block; a graph still uses it */
    BLOCK_LIVE,        /* held by the program */
    BLOCK_SHARED, /* held, and managed memory: a state of its own, so that a free of device memory,
                     the hit, need not test for it */
    BLOCK_GRAPH,  /* held, and a graph uses it as long as that lives */
};

/* A fence is done once all work is done that the stream had at the free. */
struct fence {
    struct stream *stream; /* NULL: the list ends before this fence */
    uint64_t number;       /* number among the stream's fences */
    struct fence *next;    /* fences are never freed, but used again */
};

/* An entry is never freed; when HIP hands its address out again, it serves the new block. */
struct block {
    struct handle handle; /* the address */
    size_t size;
    int device;
    int state;          /* enum block_state */
    bool shared;        /* managed memory, which the host reaches too */
    bool booked;        /* the device's account and the ranges have it; under tables_lock */
    bool outlives;      /* the block survives the reset that is being handled (invalidate_blocks) */
    uint64_t number;    /* of shared memory: HIP's for it, 0 if it is not known */
    struct fence fence; /* IDLE: the fences that the block waits for. First comes the stream that it
                           was freed on, then others that were at work. GRAPH_OWNED: only the stream
                           that it was freed on */
    uint64_t graph; /* GRAPH, GRAPH_OWNED: the number of the capture that it was made for, or 0 */
    uint64_t uses;  /* how often the block was handed out */
    uint64_t last_use; /* block_clock at the block's last free */
    struct range range;
    struct block *next_overflow;
};

/* The clock that finds the least recently used block. The clock counts the blocks that HIP was
 * asked for, and beyond the limit the frees. */
extern uint64_t block_clock;

/* Idle blocks. A block is in one way or in one chain; the thread that takes it out owns it. A block
 * with several fences is in a chain of its device's pool; all others have one fence. */
struct block_pool {
    struct block *ways[POOL_SETS][POOL_WAYS];
    struct block *overflow[POOL_SETS]; /* chains; written under tables_lock */
    size_t waiting;                    /* blocks with several fences; under tables_lock */
    struct stream *owner;              /* NULL: the pool of a device */
    int device; /* the blocks' device, for good; the owner's handle may move to another */
    struct block_pool *next; /* list of all streams' pools; they are never freed */
};

#endif
