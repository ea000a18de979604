#include "cache/thread.h"
#include "base/atomics.h"
#include "base/options.h"
#include "base/state.h"
#include "cache/caches.h"
#include "hip/device.h"

#include <stdio.h>
#include <stdlib.h>

__thread struct thread *thread_self __attribute__((tls_model("initial-exec")));
struct thread *thread_list;

uint64_t thread_take_tickets(struct thread *thread) {
    static uint64_t given;
    thread->ticket = fetch_add_relaxed(&given, TICKET_BLOCK) + 1;
    return thread->ticket;
}

static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static bool key_made; /* otherwise the block of a thread that ends stays, and with it its events */

static void free_block(struct thread *thread) {
    free(thread->modules);
    free(thread->functions);
    free(thread);
}

static void thread_end(void *block) {
    struct thread *thread = block;
    caches_thread_ends(thread);
    pthread_mutex_lock(&tables_lock);
    struct thread **link = &thread_list;
    while (*link != thread)
        link = &(*link)->next;
    *link = thread->next;
    pthread_mutex_unlock(&tables_lock);
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
    pthread_mutex_lock(&tables_lock);
    thread->next = thread_list;
    thread_list = thread;
    pthread_mutex_unlock(&tables_lock);
    if (key_made)
        pthread_setspecific(key, thread);
    thread_self = thread;
    if (options.device_number >= 0)
        device_choose();
    return thread;
}
