/* The object behind each HIP handle in record mode, and the table of all handles ever made.
 *
 * A handle is the address of its object. Objects are never freed, so a handle is never used again,
 * and a dead one differs from an unknown one. With HIPSTUB_REUSE the next object of its kind gets
 * it. All functions need the stub's lock. */
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
    int device;               /* the thread's device when the object was made */
    struct object *next;      /* the next object in its chain of the table */
    struct object *next_dead; /* the next dead one of its kind, if handles are reused */
};

struct operation;

struct ihipStream_t {
    struct object object;
    unsigned flags;
    struct stub_pace pace;
    struct operation *first, *last; /* submitted and not yet begun */
    uint64_t submitted, completed;  /* numbers of operations: a ticket is the value of submitted */
    uint64_t awaited, let_go;       /* a thread waits up to this one; it may be done, if held */
    unsigned waiters;               /* number of waiting threads */
    bool has_worker, ended;         /* ended: the worker ends when no work is left */
    struct ihipStream_t *next_stream;
    struct ihipGraph *capture; /* the graph that the stream captures into, or NULL */
    bool spoilt;               /* the capture has ended too early */
};

struct ihipEvent_t {
    struct object object;
    unsigned flags;
    struct ihipStream_t *stream; /* stream of the last record, NULL: never recorded */
    uint64_t ticket;
    struct ihipGraph *capture; /* graph of the last record, if that was captured */
    uint64_t time_ns;          /* when the stream executed the last record */
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

/* Returns, with HIPSTUB_REUSE, the object of that kind that died last, alive again and otherwise
 * unchanged; NULL if there is none. */
void *object_again(enum kind kind);

/* Turns a live, unused object into a zeroed one of another kind that is no larger. */
void *object_turn(struct object *object, enum kind kind, size_t bytes);

/* Returns a live object of a kind on a device, NULL if there is none. */
struct object *object_on(int device, enum kind kind);

void object_kill(struct object *object);

/* Ends an object in two steps: it dies, and then may be used again if handles are. */
void object_end(struct object *object);
void object_release(struct object *object);

/* Returns whether the handle is a live one of its kind. If not, counts a misuse of `function`
 * unless the handle is NULL. */
bool object_check(const char *function, enum kind kind, const void *handle);

/* Returns whether the handle is a live one of its kind, without counting: for calls that HIP
 * answers for any handle. */
bool object_is(enum kind kind, const void *handle);

/* The words that hipstub_live accepts, ended by NULL; stub_live needs the lock. */
extern const char *const stub_live_words[];
int64_t stub_live(const char *what);

/* Returns the lock, for condition variables. */
pthread_mutex_t *stub_mutex(void);

#endif
