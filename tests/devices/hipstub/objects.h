/* The object behind each HIP handle in record mode, and the table of all handles ever created.
 *
 * A handle is the address of its object. The stub never frees an object, so it reuses no handle,
 * and a dead handle differs from an unknown handle. With HIPSTUB_REUSE, the next object of a kind
 * reuses the handle of a dead object. Callers of these functions hold the stub's lock. */
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
    uint64_t submitted, completed;  /* counts of operations; a ticket is a value of `submitted` */
    uint64_t awaited, let_go;       /* tickets: the last operation for which a thread waits, and the
                                     * last operation that a held stream may execute */
    unsigned waiters;               /* number of threads that wait for the stream */
    bool has_worker, ended;         /* ended: the worker thread exits when no work is left */
    struct ihipStream_t *next_stream;
    struct ihipGraph *capture; /* the graph into which the stream captures, or NULL */
    bool spoilt;               /* the capture was invalidated */
};

struct ihipEvent_t {
    struct object object;
    unsigned flags;
    struct ihipStream_t *stream; /* stream of the last record; NULL: never recorded */
    uint64_t ticket;
    struct ihipGraph *capture; /* graph of the last record, if the record was captured */
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
    unsigned char *image; /* an owned copy; NULL once the module is unloaded and idle */
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

/* Revives the object of this kind that was destroyed most recently. The object is then on the
 * current device, and has its old content. Returns NULL without HIPSTUB_REUSE, or if no such object
 * exists. */
void *object_again(enum kind kind);

/* Turns a live, unused object into an object of another kind, and zeroes the object. The new kind
 * is not larger than the old kind. */
void *object_turn(struct object *object, enum kind kind, size_t bytes);

/* Returns a live object of a kind on a device, or NULL. */
struct object *object_on(int device, enum kind kind);

void object_kill(struct object *object);

/* Destroys an object in two steps: object_end makes the object dead, and object_release permits the
 * reuse of its handle, if handles are reused. */
void object_end(struct object *object);
void object_release(struct object *object);

/* Returns whether the handle belongs to a live object of this kind. For any other handle except
 * NULL, counts a misuse of `function`. */
bool object_check(const char *function, enum kind kind, const void *handle);

/* Returns whether the handle belongs to a live object of this kind, and counts no misuse, for calls
 * that accept any handle. */
bool object_is(enum kind kind, const void *handle);

/* The names that hipstub_live accepts, followed by NULL. Callers of stub_live hold the lock. */
extern const char *const stub_live_words[];
int64_t stub_live(const char *what);

/* Returns the lock, for condition variables. */
pthread_mutex_t *stub_mutex(void);

#endif
