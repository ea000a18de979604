#include "objects.h"

#include "calls.h"
#include "hipstub.h"
#include "log.h"
#include "memory.h"
#include "mode.h"

#include <stdlib.h>
#include <string.h>

enum { CHAINS = 4096 };

static struct object *chains[CHAINS];
static int64_t live[KINDS];
static struct object *dead[KINDS]; /* objects whose handles the stub may reuse */

static const char *const kind_names[KINDS] = {"stream",   "event", "module",
                                              "function", "graph", "executable"};

static struct object **chain_of(const void *handle) {
    return &chains[((uintptr_t)handle >> 4) % CHAINS];
}

void *object_new(enum kind kind, size_t bytes) {
    struct object *object = calloc(1, bytes);
    object->kind = kind;
    object->live = true;
    object->device = current_device();
    struct object **chain = chain_of(object);
    object->next = *chain;
    *chain = object;
    ++live[kind];
    return object;
}

void *object_again(enum kind kind) {
    struct object *object = dead[kind];
    if (object == NULL)
        return NULL;
    dead[kind] = object->next_dead;
    object->live = true;
    object->device = current_device();
    ++live[kind];
    return object;
}

void *object_turn(struct object *object, enum kind kind, size_t bytes) {
    --live[object->kind];
    ++live[kind];
    memset(object + 1, 0, bytes - sizeof *object);
    object->kind = kind;
    return object;
}

struct object *object_on(int device, enum kind kind) {
    for (unsigned i = 0; i < CHAINS && live[kind] != 0; ++i)
        for (struct object *object = chains[i]; object != NULL; object = object->next)
            if (object->kind == kind && object->live && object->device == device)
                return object;
    return NULL;
}

void object_end(struct object *object) {
    object->live = false;
    --live[object->kind];
}

void object_kill(struct object *object) {
    object_end(object);
    object_release(object);
}

void object_release(struct object *object) {
    if (!stub_reuse)
        return;
    object->next_dead = dead[object->kind];
    dead[object->kind] = object;
}

static const struct object *find_object(const void *handle) {
    const struct object *object = *chain_of(handle);
    while (object != NULL && object != handle)
        object = object->next;
    return object;
}

bool object_is(enum kind kind, const void *handle) {
    const struct object *object = find_object(handle);
    return object != NULL && object->kind == kind && object->live;
}

bool object_check(const char *function, enum kind kind, const void *handle) {
    if (handle == NULL)
        return false;
    const struct object *object = find_object(handle);
    if (object == NULL)
        stub_misuse("%s: %p is no %s", function, handle, kind_names[kind]);
    else if (object->kind != kind)
        stub_misuse("%s: %p is a %s, no %s", function, handle, kind_names[object->kind],
                    kind_names[kind]);
    else if (!object->live)
        stub_misuse("%s: the %s %p was destroyed", function, kind_names[kind], handle);
    else
        return true;
    return false;
}

const char *const stub_live_words[] = {"streams", "events",        "modules", "allocations",
                                       "bytes",   "registrations", "graphs",  NULL};

int64_t stub_live(const char *what) {
    const int64_t counts[] = {
        live[STREAM],
        live[EVENT],
        live[MODULE],
        memory_live_blocks(),
        memory_live_bytes(),
        memory_live_registrations(),
        live[GRAPH] + live[EXECUTABLE],
    };
    for (unsigned i = 0; stub_live_words[i] != NULL; ++i)
        if (strcmp(what, stub_live_words[i]) == 0)
            return counts[i];
    return -1;
}

int64_t hipstub_live(const char *what) {
    stub_lock();
    int64_t count = stub_live(what);
    stub_unlock();
    return count;
}
