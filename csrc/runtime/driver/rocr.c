/* Waits for ROCr's thread, which runs HIP's code for finished commands. */
#include "driver/hip.h"

#include <errno.h>
#include <semaphore.h>
#include <time.h>

/* ROCr's functions and types (hsa.h, hsa_ext_amd.h). Each function returns 0 for success. */
enum { EQUAL = 0, SECONDS = 10 };
struct signal {
    uint64_t handle;
};
typedef bool handler(int64_t value, void *data);
static struct {
    int (*create)(int64_t value, uint32_t consumers, const void *agents, struct signal *signal);
    int (*destroy)(struct signal signal);
    int (*call_at)(struct signal signal, int condition, int64_t value, handler *call, void *data);
} rocr;

static bool find_rocr(void) {
    *(void **)&rocr.create = hip_symbol("hsa_signal_create");
    *(void **)&rocr.destroy = hip_symbol("hsa_signal_destroy");
    *(void **)&rocr.call_at = hip_symbol("hsa_amd_signal_async_handler");
    return rocr.create && rocr.destroy && rocr.call_at;
}

static sem_t called;

static bool post_called(int64_t value, void *data) {
    (void)value, (void)data;
    sem_post(&called);
    return false; /* ROCr does not call the handler again */
}

static bool is_called_in_time(void) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += SECONDS;
    while (sem_timedwait(&called, &until) != 0)
        if (errno != EINTR)
            return false;
    return true;
}

/* Gives ROCr's thread a completed signal with a handler, and waits until the handler has run. */
static bool call_once(void) {
    struct signal signal;
    if (rocr.create(0, 0, NULL, &signal) != 0)
        return false;
    const bool is_given = rocr.call_at(signal, EQUAL, 0, post_called, NULL) == 0;
    if (is_given && !is_called_in_time())
        return false; /* the signal is never destroyed, because the thread may still reach it */
    (void)rocr.destroy(signal);
    return is_given;
}

/* ROCr's thread works in passes. In each pass the thread handles all completed signals, in any
 * order, and between two passes the thread accepts new signals. The first handler may therefore run
 * before HIP's code for an older command. The second handler runs in a later pass, after that code.
 */
void rocr_catch_up(void) {
    if (find_rocr() && sem_init(&called, 0, 0) == 0 && call_once())
        (void)call_once();
}
