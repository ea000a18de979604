#include "cache/thread.h"
#include "cache/registry.h"
#include "cache/stream.h"
#include "calls/event.h"

#include <stdio.h>
#include <stdlib.h>

__thread struct thread *thread_self __attribute__((tls_model("initial-exec")));
struct thread *thread_list;

static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static bool key_made; /* otherwise the block of a thread that ends stays, and with it its events */

static void free_block(struct thread *thread) {
    free(thread->modules);
    free(thread->functions);
    free(thread);
}

/* A thread ends: its spare events and its last stream are for the others. */
static void thread_end(void *block) {
    struct thread *thread = block;
    event_give_back(thread);
    stream_thread_ends(thread);
    pthread_mutex_lock(&registry_lock);
    struct thread **link = &thread_list;
    while (*link != thread)
        link = &(*link)->next;
    *link = thread->next;
    pthread_mutex_unlock(&registry_lock);
    thread_self = NULL;
    free_block(thread);
}

static void make_key(void) {
    key_made = pthread_key_create(&key, thread_end) == 0;
}

static struct thread *make_block(void) {
    struct thread *thread = calloc(1, sizeof *thread);
    if (!thread)
        return NULL;
    const size_t slots = (size_t)1 << FIRST_SLOT_BITS;
    thread->module_bits = thread->function_bits = FIRST_SLOT_BITS;
    thread->modules = calloc(slots, sizeof *thread->modules);
    thread->functions = calloc(slots, sizeof *thread->functions);
    if (thread->modules && thread->functions)
        return thread;
    free_block(thread);
    return NULL;
}

struct thread *thread_new(void) {
    struct thread *thread = make_block();
    if (!thread) {
        fputs("mgpu_rt: no memory for a thread's table\n", stderr);
        abort();
    }
    pthread_once(&key_once, make_key);
    pthread_mutex_lock(&registry_lock);
    thread->next = thread_list;
    thread_list = thread;
    pthread_mutex_unlock(&registry_lock);
    if (key_made)
        pthread_setspecific(key, thread);
    thread_self = thread;
    if (options.device_number >= 0)
        REPORT("hipSetDevice(MGPU_RT_DEVICE)", hip.SetDevice(options.device_number), NULL);
    return thread;
}

/* ---- growth ---- */

void thread_grow_modules(struct thread *thread) {
    const size_t old = (size_t)1 << thread->module_bits;
    if (thread->module_count * 2 < old || thread->module_bits == LAST_SLOT_BITS)
        return;
    const unsigned bits = thread->module_bits + 1;
    struct module_slot *slots = calloc(2 * old, sizeof *slots);
    if (!slots)
        return;
    thread->module_count = 0;
    for (size_t i = 0; i < old; i++) {
        const struct module_slot *slot = &thread->modules[i];
        if (!slot->module || slot->generation != module_generation(slot->module))
            continue;
        slots[slot_home((uintptr_t)slot->image, bits)] = *slot;
        thread->module_count++;
    }
    free(thread->modules);
    thread->modules = slots;
    thread->module_bits = bits;
}

void thread_grow_functions(struct thread *thread) {
    const size_t old = (size_t)1 << thread->function_bits;
    if (thread->function_count * 2 < old || thread->function_bits == LAST_SLOT_BITS)
        return;
    const unsigned bits = thread->function_bits + 1;
    struct function_slot *slots = calloc(2 * old, sizeof *slots);
    if (!slots)
        return;
    thread->function_count = 0;
    for (size_t i = 0; i < old; i++) {
        const struct function_slot *slot = &thread->functions[i];
        if (!slot->module || slot->generation != module_generation(slot->module))
            continue;
        slots[function_home(slot->handle, slot->name, bits)] = *slot;
        thread->function_count++;
    }
    free(thread->functions);
    thread->functions = slots;
    thread->function_bits = bits;
}
