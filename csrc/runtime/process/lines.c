/* Passes each line to a Python thread, which takes the GIL. A caller may hold a lock for which the
 * thread with the GIL waits. So a caller waits at most `patience_ms` milliseconds for Python. If
 * Python takes longer, the library writes all lines to stderr until Python requests the next line.
 */
#include "process/lines.h"
#include "atomics.h"
#include "process/cancel.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* a thread never calls Python under this
                                                          * lock */
static pthread_cond_t changed;
static bool is_open; /* true while the Python thread requests lines; a thread writes this variable
                      * and the variables below only under the lock */
static bool stuck;
static unsigned offered, taken,
    answered; /* numbers of lines; if the three numbers are equal, no line is pending */
static int patience_ms, level_offered;
static char text[LINE];
static int (*holds_gil)(void);
static __thread bool logs __attribute__((tls_model("initial-exec")));

static struct timespec deadline(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    const long nanoseconds = at.tv_nsec + patience_ms % 1000 * 1000000L;
    at.tv_sec += patience_ms / 1000 + nanoseconds / 1000000000;
    at.tv_nsec = nanoseconds % 1000000000;
    return at;
}

static void wait_until(const struct timespec *until) {
    if (pthread_cond_timedwait(&changed, &lock, until) != 0)
        stuck = true;
}

/* Passes a line to the Python thread. Returns true if the Python thread took the line: that thread
 * then logs the line or writes the line to stderr. */
static bool hand_over(enum line_level level, const char *line) {
    const struct timespec until = deadline();
    while (is_open && !stuck && offered != answered)
        wait_until(&until);
    if (!is_open || stuck || offered != answered)
        return false;
    const unsigned number = ++offered;
    level_offered = level;
    snprintf(text, sizeof text, "%s", line);
    pthread_cond_broadcast(&changed);
    while (is_open && !stuck && (int)(answered - number) < 0)
        wait_until(&until);
    if ((int)(taken - number) >= 0)
        return true;
    offered--;
    return false;
}

void line_write(enum line_level level, const char *line) {
    bool given = false;
    if (load_acquire(&is_open) && !logs && !holds_gil()) {
        const int before = cancel_forbid();
        pthread_mutex_lock(&lock);
        given = hand_over(level, line);
        pthread_mutex_unlock(&lock);
        cancel_allow(before);
    }
    if (!given)
        fputs(line, stderr);
}

void line_print(enum line_level level, const char *format, ...) {
    char line[LINE];
    va_list words;
    va_start(words, format);
    vsnprintf(line, sizeof line, format, words);
    va_end(words);
    line_write(level, line);
}

int lines_begin(int (*check)(void), int patience) {
    pthread_mutex_lock(&lock);
    const bool begins = !is_open;
    if (begins) {
        pthread_condattr_t monotonic;
        pthread_condattr_init(&monotonic);
        pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
        pthread_cond_init(&changed, &monotonic);
        holds_gil = check;
        patience_ms = patience;
        offered = taken = answered = 0;
        stuck = false;
        store_release(&is_open, true);
    }
    pthread_mutex_unlock(&lock);
    return begins;
}

int lines_next(int logged, char *line, size_t size) {
    int level = 0;
    logs = true;
    pthread_mutex_lock(&lock);
    if (taken != answered) {
        if (!logged)
            fputs(text, stderr);
        answered = taken;
    }
    stuck = false;
    pthread_cond_broadcast(&changed);
    while (is_open && offered == taken) {
        pthread_cond_wait(&changed, &lock);
        stuck = false;
    }
    if (is_open) {
        snprintf(line, size, "%s", text);
        taken = offered;
        level = level_offered;
    }
    pthread_mutex_unlock(&lock);
    return level;
}

void lines_end(void) {
    pthread_mutex_lock(&lock);
    if (is_open) {
        store_release(&is_open, false);
        pthread_cond_broadcast(&changed);
    }
    pthread_mutex_unlock(&lock);
}

void lines_forked(void) {
    lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    store_release(&is_open, false);
    logs = false;
}
