/* A model of the device for the explored threads: HIP's functions, and the state of all objects. */
#ifndef MODEL_H
#define MODEL_H

#include "explore.h"

#include "driver/hip.h"
#include "mgpu.h"

#include <stdint.h>

enum {
    MOST_STREAMS = 6,
    MOST_EVENTS = 5,
    MOST_MODULES = 5,
    MOST_BLOCKS = 6,
    BLOCK_BYTES = 1 << 18, /* the largest block */
    MOST_OBJECTS = 2,
    MOST_WORKS = 16,
    MOST_PINNED = 4,
    PINNED_BYTES = 256,
    MOST_TRANSFERS = 6,
    MOST_WAITS = 8
};

/* An object of the program: its handle, and the number of threads that are using it. */
struct held {
    enum { NOT_HELD, IS_MADE, IS_HELD, IS_ENDED } state;
    int users;
    void *handle;
};

struct world {
    struct {
        bool alive;
        unsigned flags;
        unsigned submitted, done;     /* works */
        unsigned returned;            /* the newest operation whose submission has returned */
        uint64_t numbers[MOST_WORKS]; /* the library's numbers of these operations; 0: none */
    } streams[MOST_STREAMS];
    struct {
        bool alive, recorded;
        unsigned stream, at; /* the operation after which the event was recorded */
    } events[MOST_EVENTS];
    /* A stream's wait for an event: the work `work` of `stream`, and all later work, follows the
     * other stream's work up to `at`. */
    struct {
        unsigned stream, work, other, at;
    } waits[MOST_WAITS];
    unsigned waits_count;
    struct {
        bool alive;
        unsigned image, loads; /* the module's image, and how often the image was loaded */
        int device;
    } modules[MOST_MODULES];
    struct {
        bool alive;
        bool in_graph;
        size_t bytes;
        unsigned needs[MOST_STREAMS]; /* for each stream: the last operation that uses the block */
    } blocks[MOST_BLOCKS];
    void *works_on[THREADS + 1]; /* the memory on which a thread's launch works, or NULL */
    void *graph;                 /* the block of a graph, or NULL */
    bool graph_ends;
    struct pinned {
        bool alive;
        unsigned char bytes[PINNED_BYTES];
    } pinned[MOST_PINNED];
    /* Unfinished copies through pinned memory. When a copy to the device ends, the pinned memory
     * must still contain the thread's value. A copy from the device writes the block's content to
     * the pinned memory. */
    struct transfer {
        unsigned stream, work; /* 0: none */
        unsigned char *place, value;
        bool writes;
    } transfers[MOST_TRANSFERS];
    unsigned char value[THREADS + 1];
    int (*hear)(int domain, uint32_t operation, void *data); /* gets HIP's reports, or NULL */
    bool others;                                             /* other code has called HIP */
    unsigned waited; /* the number of stream 0's operations for which the program has waited */
    bool registered; /* HIP has registered the program's memory */
    struct held held[MOST_OBJECTS];
    int device[THREADS + 1];     /* the current device of each thread */
    bool recorded[MOST_OBJECTS]; /* whether the event in `held` was recorded */
    bool forgot; /* a thread has invalidated the caches, so some objects exist only in HIP */
    bool exits;  /* the process is exiting */
    struct {
        bool alive;
        uint64_t number;
    } watch;         /* the library checks this memory to detect a reset */
    bool reset;      /* a thread has reset the device */
    int resets;      /* the device that a thread is now resetting; 0: none */
    unsigned hands;  /* running operations of the library's own thread; a reset does not wait for
                        these operations */
    bool hand_under; /* the library's own thread executes an operation that began before a reset */
    bool hand_between; /* the library's own thread worked between a reset and the detection of the
                          reset */
};

/* Sets `hip` to this model, and sets the runtime's options. Then creates the program's streams. */
void model_start(unsigned streams, bool exclusive);

hipStream_t model_stream(unsigned number);
unsigned model_number(hipStream_t stream);

/* Creates a stream directly with HIP, without the library. */
void model_own_stream(unsigned number);
bool model_is_done(unsigned stream);

/* Returns true if a stream's work is done, or precedes the next work of `order`. */
bool model_precedes(unsigned stream, unsigned work, unsigned order);

/* Makes HIP report each call from now on. The functions in `model_reports` are those of HIP with
 * which the library asks for the reports. */
extern const struct witness_functions model_reports;
void model_report_calls(void);

/* Reports a call of other code, if HIP reports calls. `function` is HIP_Free, ... */
void model_report(unsigned function);

/* Calls of other code, of which HIP reports before the call runs: allocates memory, records an
 * event, launches a kernel that uses the memory, or sets a constant of a module. */
void model_other_code_allocates(void);
void model_other_code_records(hipEvent_t event, unsigned stream);
void model_other_code_launches(unsigned stream, void *address);
/* Destroys a stream, or creates one that ignores the null stream. */
void model_other_code_destroys(hipStream_t stream);
hipStream_t model_other_code_creates(void);

/* Returns the number of the running thread, or THREADS before the threads begin. */
unsigned model_self(void);
/* Destroys all objects of a device in HIP, and ends the device's pending operations. */
void model_lose_device(void);

/* The images that threads may load. */
enum { IMAGE_BYTES = 64 };
extern unsigned char model_images[2][IMAGE_BYTES];

bool model_event_is_past(hipEvent_t event);
bool model_event_is_alive(hipEvent_t event);
/* Returns the index of a handle's object in `world`. */
unsigned model_module(const void *handle);
unsigned model_block(const void *address);
bool model_block_is_alive(const void *address);
/* Returns the value that a copy from the address reads. */
unsigned char model_content(const void *address);
/* Returns whether a copy on the stream still reads this pinned memory. */
bool model_reads(unsigned stream, const char *pinned);

/* Records that a submission to the stream has returned. */
void model_returned(unsigned stream);

/* Checks that streams with pending work do not count as idle. Checks that the number of an
 * operation is completed only after the operation is done. */
void model_check_numbers(void);

#endif
