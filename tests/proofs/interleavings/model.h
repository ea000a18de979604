/* A model of a device for the explored threads: HIP's functions, and the state of all objects. */
#ifndef MODEL_H
#define MODEL_H

#include "explore.h"

#include "mgpu.h"

#include <stdint.h>

enum {
    MOST_STREAMS = 6,
    MOST_EVENTS = 5,
    MOST_MODULES = 5,
    MOST_BLOCKS = 5,
    MOST_OBJECTS = 2,
    MOST_FENCES = 16,
    MOST_PINNED = 4,
    PINNED_BYTES = 256,
    MOST_TRANSFERS = 6
};

/* An object of the program: a handle that it holds, and how many threads are using it. */
struct held {
    enum { NOT_HELD, IS_MADE, IS_HELD, IS_ENDED } state;
    int users;
    void *handle;
};

struct world {
    struct {
        bool alive;
        unsigned submitted, done; /* works */
        unsigned returned;        /* the newest work whose submission has returned */
    } streams[MOST_STREAMS];
    struct {
        bool alive, recorded;
        unsigned stream, at; /* the work that the event comes after */
    } events[MOST_EVENTS];
    struct {
        bool alive;
        unsigned image, loads; /* the module's image, and how often that was loaded */
        int device;
    } modules[MOST_MODULES];
    struct {
        bool alive;
        bool in_graph;
        unsigned
            needs[MOST_STREAMS]; /* works that must be done before it may serve other streams */
    } blocks[MOST_BLOCKS];
    void *works_on[THREADS + 1]; /* the memory of a thread's launch; NULL: none */
    void *graph;                 /* the block of the existing graph */
    bool graph_ends;
    struct pinned {
        bool alive;
        unsigned char bytes[PINNED_BYTES];
    } pinned[MOST_PINNED];
    /* Copies through pinned memory that are under way. A copy to the device must find its thread's
     * value there. A copy from the device writes the value there. */
    struct transfer {
        unsigned stream, work; /* 0: none */
        unsigned char *place, value;
        bool writes;
    } transfers[MOST_TRANSFERS];
    unsigned char value[THREADS + 1];
    struct held held[MOST_OBJECTS];
    int device[THREADS + 1];                    /* the current device of each thread */
    bool recorded[MOST_OBJECTS];                /* events, by holder */
    unsigned covers[MOST_STREAMS][MOST_FENCES]; /* works before a fence was set */
    unsigned fences[MOST_STREAMS];
    bool forgot; /* a thread has invalidated the caches, so some objects stay HIP's */
    bool exits;  /* the process ends */
    struct {
        bool alive;
        uint64_t number;
    } watch;           /* the memory by which a reset is detected */
    bool reset;        /* a thread has reset the device */
    int resets;        /* the device that a thread is resetting; 0: none */
    unsigned hands;    /* operations of the library's own thread, for which no reset waits */
    bool hand_under;   /* one of these has been running since before a reset */
    bool hand_between; /* one of these ran between a reset and its detection */
};

/* Makes `hip` this model, and sets the runtime's options. After that the program creates
 * streams. */
void model_start(unsigned streams, bool exclusive);

hipStream_t model_stream(unsigned number);
unsigned model_number(hipStream_t stream);

/* Makes a stream that the program has created by calling HIP. */
void model_own_stream(unsigned number);
bool model_is_done(unsigned stream);

/* Returns the number of the thread that plays; THREADS before the threads begin. */
unsigned model_self(void);
/* Takes all objects of a device from HIP, and ends its works. */
void model_lose_device(void);

/* The images that can be loaded. */
enum { IMAGE_BYTES = 64 };
extern unsigned char model_images[2][IMAGE_BYTES];

bool model_event_is_past(hipEvent_t event);
bool model_event_is_alive(hipEvent_t event);
/* Returns the entries of the world for handles. */
unsigned model_module(const void *handle);
unsigned model_block(const void *address);
bool model_block_is_alive(const void *address);
/* Returns the value that a copy from there finds. */
unsigned char model_content(const void *address);
/* Returns whether a copy of a stream still reads this pinned memory. */
bool model_reads(unsigned stream, const char *pinned);

/* Checks that no stream counts as idle while work is pending, and that no fence is done before all
 * works that it covers. */
void model_check_fences(void);

#endif
