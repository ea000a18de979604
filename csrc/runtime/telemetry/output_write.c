#include "telemetry/output_write.h"
#include "proof.h"
#include "telemetry/counters.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#define PATIENCE (UINT64_C(1000000000) * OUTPUT_PATIENCE)

/* Writes with SIGPIPE and SIGXFSZ blocked, and discards the signal that a failed write causes. A
 * signal that was pending before the write stays pending for the program. */
static ssize_t write_without_signal(int file, const char *bytes, size_t size) {
    static const struct timespec at_once = {0, 0};
    sigset_t ours, before, pending;
    sigemptyset(&ours);
    sigaddset(&ours, SIGPIPE);
    PROOF_STEP(limit_ends_no_program, sigaddset(&ours, SIGXFSZ));
    pthread_sigmask(SIG_BLOCK, &ours, &before);
    sigpending(&pending);
    const ssize_t written = write(file, bytes, size);
    const int error = errno;
    const int sent = error == EPIPE ? SIGPIPE : error == EFBIG ? SIGXFSZ : 0;
    if (written < 0 && sent && !sigismember(&pending, sent)) {
        sigemptyset(&ours);
        sigaddset(&ours, sent);
        (void)sigtimedwait(&ours, NULL, &at_once);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = error;
    return written;
}

/* Waits until the file accepts bytes, or until the clock_ns time `end`. Returns 0, or the error
 * that ends the writing. */
static int wait_for_room(int file, uint64_t end) {
    struct pollfd awaited = {.fd = file, .events = POLLOUT};
    const uint64_t now = clock_ns();
    if (now >= end)
        return ETIMEDOUT;
    const int ready = poll(&awaited, 1, (int)((end - now) / 1000000 + 1));
    return ready >= 0 || errno == EINTR ? 0 : errno;
}

static ssize_t write_patiently(void *cookie, const char *bytes, size_t size) {
    struct output_write *to = cookie;
    uint64_t end = clock_ns() + PATIENCE;
    size_t done = 0;
    while (done < size && !to->error) {
        const ssize_t written = write_without_signal(to->file, bytes + done, size - done);
        if (written >= 0) {
            done += (size_t)written;
            end = clock_ns() + PATIENCE;
        } else if (errno == EAGAIN) {
            to->error = wait_for_room(to->file, end);
        } else if (errno != EINTR) {
            to->error = errno;
        }
    }
    return (ssize_t)done;
}

static int close_file(void *cookie) {
    struct output_write *to = cookie;
    const int closed = close(to->file);
    if (closed != 0 && !to->error)
        to->error = errno;
    return closed;
}

FILE *output_write_open(struct output_write *to, int file) {
    static const cookie_io_functions_t functions = {.write = write_patiently, .close = close_file};
    *to = (struct output_write){.file = file};
    FILE *stream = fopencookie(to, "w", functions);
    if (!stream)
        close(file);
    return stream;
}
