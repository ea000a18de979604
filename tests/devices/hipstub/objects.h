/* Everything that a HIP handle stands for in record mode, and the table of all handles ever made.
 *
 * A handle is the address of its object. Objects are never freed, so that a handle never comes back
 * and a dead one is told from an unknown one; with HIPSTUB_REUSE the next of its kind gets it. All
 * of it needs the stub's lock. */
#ifndef HIPSTUB_OBJECTS_H
#define HIPSTUB_OBJECTS_H

#include "../../../csrc/hip_abi.h"
#include "mode.h"

#include <pthread.h>
#include <stdbool.h>

enum kind { STREAM, EVENT, MODULE, FUNCTION, GRAPH, EXECUTABLE, KINDS };

/* First member of every object. */
struct object {
    enum kind kind;
    bool live;
    int device;               /* that was the thread's when it was made */
    struct object *next;      /* in its chain of the table */
    struct object *next_dead; /* of its kind, where handles come back */
};

struct operation;

struct ihipStream_t {
    struct object object;
    unsigned flags;
    struct stub_pace pace;
    struct operation *first, *last; /* submitted and not taken up yet */
    uint64_t submitted, completed;  /* numbers of operations: a ticket is the value of submitted */
    uint64_t awaited, let_go;       /* up to this one somebody waits; may be done, if held */
    unsigned waiters;               /* threads that wait */
    bool has_worker, ended;         /* ended: the worker goes when nothing is left to do */
    struct ihipStream_t *next_stream;
    struct ihipGraph *capture; /* that it captures into, or NULL */
    bool spoilt;               /* the capture has ended before its time */
};

struct ihipEvent_t {
    struct object object;
    unsigned flags;
    struct ihipStream_t *stream; /* of the last record, NULL: never recorded */
    uint64_t ticket;
    struct ihipGraph *capture; /* of the last record, if that was captured */
    uint64_t time_ns;          /* when the stream came to the last record */
};

struct global {
    char *name;
    void *address;
    size_t bytes;
    struct global *next;
};

struct ihipModule_t {
    struct object object;
    unsigned char *image; /* a copy: the caller may free its own; NULL once unloaded and idle */
    size_t bytes;
    unsigned launches; /* submitted and not done */
    struct ihipModuleSymbol_t *functions;
    struct global *globals;
};

struct ihipModuleSymbol_t {
    struct object object;
    struct ihipModule_t *module;
    char *name;
    struct ihipModuleSymbol_t *next;
};

/* Makes an object of `bytes` zeroed bytes, live and in the table. */
void *object_new(enum kind kind, size_t bytes);

/* Returns, with HIPSTUB_REUSE, the object of that kind that died last, live again and otherwise as
 * it was left; NULL if there is none. */
void *object_again(enum kind kind);

/* Makes a live object, of which nothing is in use, a zeroed one of another kind and no larger. */
void *object_turn(struct object *object, enum kind kind, size_t bytes);

/* Returns a live object of a kind on a device, NULL if there is none. */
struct object *object_on(int device, enum kind kind);

void object_kill(struct object *object);

/* Ends an object in two steps: it dies, and then may come back where handles do. */
void object_end(struct object *object);
void object_release(struct object *object);

/* Returns whether the handle is a live one of its kind. If not, counts a misuse of `function`
 * unless the handle is NULL. */
bool object_check(const char *function, enum kind kind, const void *handle);

/* Returns whether the handle is a live one of its kind, without counting: for calls that HIP
 * answers with any handle. */
bool object_is(enum kind kind, const void *handle);

/* What hipstub_live counts, ended by NULL; stub_live needs the lock. */
extern const char *const stub_live_words[];
int64_t stub_live(const char *what);

/* Returns the lock itself, for condition variables. */
pthread_mutex_t *stub_mutex(void);

#endif
