#include "shared/thread.h"
#include "driver/device.h"
#include "process/options.h"
#include "shared/caches.h"

#include <stdlib.h>

__thread struct thread *thread_self __attribute__((tls_model("initial-exec")));
struct thread *thread_list;

struct thread thread_none;

static bool unlisted; /* a thread without a block has called this library; under tables_lock */

static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static bool key_made; /* false: the block of an ending thread is leaked */

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
    free(thread->modules);
    free(thread);
}

static void make_key(void) {
    key_made = pthread_key_create(&key, thread_end) == 0;
}

/* Chooses the device of MGPU_RT_DEVICE once in each thread, because the program may choose another
 * device later. */
static void choose_device(void) {
    static __thread bool chosen;
    if (chosen)
        return;
    chosen = true;
    if (options.device_number >= 0)
        device_choose();
}

struct thread *thread_new(void) {
    struct thread *thread = calloc(1, sizeof *thread);
    if (thread) {
        pthread_once(&key_once, make_key);
        pthread_mutex_lock(&tables_lock);
        thread->next = thread_list;
        thread_list = thread;
        pthread_mutex_unlock(&tables_lock);
        if (key_made)
            pthread_setspecific(key, thread);
        thread_self = thread;
    }
    if (!thread) {
        pthread_mutex_lock(&tables_lock);
        unlisted = true;
        pthread_mutex_unlock(&tables_lock);
    }
    choose_device();
    return thread ? thread : &thread_none;
}

bool thread_is_alone(void) {
    const struct thread *self = thread_get();
    pthread_mutex_lock(&tables_lock);
    const bool alone = thread_list == self && !self->next && !unlisted;
    pthread_mutex_unlock(&tables_lock);
    return alone;
}
