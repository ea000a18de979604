#include "thread.h"
#include "event.h"
#include "registry.h"
#include "stream.h"

#include <stdio.h>
#include <stdlib.h>

__thread struct thread *thread_self __attribute__((tls_model("initial-exec")));
struct thread *thread_list;

static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static pthread_key_t key;

/* A thread ends: its counts go to the modules, its spare events to the common pool. */
static void thread_end(void *block) {
    struct thread *thread = block;
    pthread_mutex_lock(&registry_lock);
    for (size_t i = 0; i < MODULE_SLOTS; i++)
        registry_fold(&thread->modules[i]);
    struct thread **link = &thread_list;
    while (*link != thread)
        link = &(*link)->next;
    *link = thread->next;
    pthread_mutex_unlock(&registry_lock);
    event_give_back(thread);
    stream_give_back(thread);
    thread_self = NULL;
    free(thread);
}

static void make_key(void) {
    pthread_key_create(&key, thread_end);
}

struct thread *thread_new(void) {
    struct thread *thread = calloc(1, sizeof *thread);
    if (!thread) {
        fputs("mgpu_rt: no memory for a thread's table\n", stderr);
        abort();
    }
    pthread_once(&key_once, make_key);
    pthread_mutex_lock(&registry_lock);
    thread->next = thread_list;
    thread_list = thread;
    pthread_mutex_unlock(&registry_lock);
    pthread_setspecific(key, thread);
    thread_self = thread;
    if (options.device_number >= 0)
        REPORT("hipSetDevice(MGPU_RT_DEVICE)", hip.SetDevice(options.device_number), NULL);
    return thread;
}
