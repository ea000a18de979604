/* The object behind each handle in record mode, and a table of all handles that the stub has
 * created.
 *
 * A handle is the address of its object. The stub never frees an object, so the stub can tell a
 * dead handle from an unknown handle. With HIPSTUB_REUSE, the next object of a kind reuses the
 * handle of a dead object. Callers of these functions hold the stub's lock. */
#ifndef HIPSTUB_OBJECTS_H
#define HIPSTUB_OBJECTS_H

#include "../../../csrc/hip_abi.h"
#include "mode.h"

#include <pthread.h>
#include <stdbool.h>

enum kind { STREAM, EVENT, MODULE, FUNCTION, GRAPH, EXECUTABLE, KINDS };

/* The first member of every object. */
struct object {
    enum kind kind;
    bool live;
    int device;               /* the thread's current device when the object was created */
    struct object *next;      /* the next object in the same chain of the hash table */
    struct object *next_dead; /* the next dead object of its kind, if handles are reused */
};

struct operation;

struct ihipStream_t {
    struct object object;
    unsigned flags;
    struct stub_pace pace;
    struct operation *first, *last; /* submitted operations that have not begun */
    uint64_t submitted, completed;  /* counts; a stream's nth operation has the ticket n */
    uint64_t awaited, let_go; /* the largest ticket for which a thread waits, and the largest ticket
                                 that a held stream may execute */
    unsigned waiters;         /* number of threads that wait for the stream */
    bool has_worker, ended;   /* ended: the worker thread exits when no work is left */
    struct ihipStream_t *next_stream;
    struct ihipGraph *capture; /* the graph into which the stream captures, or NULL */
    bool spoilt;               /* the capture was invalidated */
};

struct ihipEvent_t {
    struct object object;
    unsigned flags;
    struct ihipStream_t *stream; /* the stream that recorded the event last; NULL: never recorded */
    uint64_t ticket;
    struct ihipGraph *capture; /* the graph that captured the last record of the event, or NULL */
    uint64_t time_ns;          /* time at which the stream executed the last record */
};

struct global {
    char *name;
    void *address;
    size_t bytes;
    struct global *next;
};

struct ihipModule_t {
    struct object object;
    unsigned char *image; /* a copy that the module owns; NULL once the module is unloaded and no
                             launch is pending */
    size_t bytes;
    unsigned launches; /* number of unfinished launches */
    struct ihipModuleSymbol_t *functions;
    struct global *globals;
};

struct ihipModuleSymbol_t {
    struct object object;
    struct ihipModule_t *module;
    char *name;
    struct ihipModuleSymbol_t *next;
};

/* Creates a live object of `bytes` zeroed bytes, and adds it to the table. */
void *object_new(enum kind kind, size_t bytes);

/* Revives the object of this kind that was destroyed most recently. The object then belongs to the
 * current device, and keeps its old content. Returns NULL if HIPSTUB_REUSE is not set, or if no
 * dead object of this kind exists. */
void *object_again(enum kind kind);

/* Turns a live, unused object into an object of another kind, and zeroes the object. The new kind
 * is not larger than the old kind. */
void *object_turn(struct object *object, enum kind kind, size_t bytes);

/* Returns a live object of a kind on a device, or NULL. */
struct object *object_on(int device, enum kind kind);

void object_kill(struct object *object);

/* Destroys an object in two steps. object_end makes the object dead. object_release permits other
 * objects to reuse the handle, if HIPSTUB_REUSE is set. */
void object_end(struct object *object);
void object_release(struct object *object);

/* Returns whether the handle belongs to a live object of this kind. Counts a misuse of `function`
 * if the handle is neither valid nor NULL. */
bool object_check(const char *function, enum kind kind, const void *handle);

/* Returns whether the handle belongs to a live object of this kind. Counts no misuse, because some
 * functions of HIP accept any handle. */
bool object_is(enum kind kind, const void *handle);

/* The names that hipstub_live accepts, followed by NULL. Callers of stub_live hold the lock. */
extern const char *const stub_live_words[];
int64_t stub_live(const char *what);

/* Returns the stub's lock, because a wait for a condition variable needs the lock. */
pthread_mutex_t *stub_mutex(void);

#endif
