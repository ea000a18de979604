/* Threads of the library, words on which threads of several processes wait, and the cancellation of
 * the program's threads. */
#ifndef MGPU_RT_OWN_THREAD_H
#define MGPU_RT_OWN_THREAD_H

#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef SYS_close_range
#define SYS_close_range 436
#endif

/* The library's descriptors have numbers from 48 on, because a program may close a low number and
 * rely on getting it. The kernel's smallest table has 64. To grow a table that threads share, the
 * kernel waits 5 to 20 ms (synchronize_rcu in fs/file.c of Linux). */
enum { HIGH_DESCRIPTOR = 48 };

/* Starts a thread that blocks all signals, because signal handlers must run on the program's
 * threads. Nothing waits for the thread's end if `joined` is NULL; otherwise the caller joins the
 * thread. Returns false if the thread cannot be started. */
static inline bool own_thread_start(pthread_t *joined, void *(*run)(void *), void *data) {
    enum { STACK = 1 << 20 }; /* HIP's functions need less */
    sigset_t all, before;
    pthread_t thread;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK);
    if (!joined)
        pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const bool started = pthread_create(joined ? joined : &thread, &attributes, run, data) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return started;
}

/* Returns true if the program's main thread has called pthread_exit. The process then ends when all
 * other threads have ended, so the library's threads must end too. The kernel clears a thread's
 * list of robust mutexes when the thread ends, so no descriptor is needed to detect the end. */
static inline bool main_thread_has_ended(void) {
    void *list = &list;
    size_t size;
    return syscall(SYS_get_robust_list, getpid(), &list, &size) == 0 && !list;
}

/* Lets other threads run for a moment, also those of a lower priority, for which sched_yield would
 * not make room. A thread with a real-time priority may wait for such a thread on its own
 * processor. Unlike nanosleep, the raw call is no point of cancellation. */
static inline void step_aside(void) {
    static const struct timespec moment = {.tv_nsec = 50000};
    (void)syscall(SYS_nanosleep, &moment, NULL);
}

/* ---- words on which threads wait, also those of other processes that share the memory ---- */

/* Returns once *word is not `value`, another thread calls word_wake, or the time has passed. */
static inline void word_wait(uint32_t *word, uint32_t value, uint64_t milliseconds) {
    const struct timespec limit = {(time_t)(milliseconds / 1000),
                                   (long)(milliseconds % 1000 * 1000000)};
    syscall(SYS_futex, word, FUTEX_WAIT, value, &limit, NULL, 0);
}

/* Changes the word and wakes the threads that wait for it. */
static inline void word_wake(uint32_t *word) {
    __atomic_fetch_add(word, 1, __ATOMIC_SEQ_CST);
    syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* ---- cancellation (pthread_cancel) ----
 *
 * A cancellation may end a thread that holds a lock or an open file,
 * or performs a one-time initialisation. All other threads would then wait for ever for the lock or
 * the initialisation, or the file would stay open. */

/* Disables the cancellation of the calling thread. Returns the value that the caller passes to
 * cancel_allow. */
static inline int cancel_forbid(void) {
    int before;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    return before;
}

static inline void cancel_allow(int before) {
    pthread_setcancelstate(before, NULL);
}

#endif
