#include "process/state.h"
#include "proof.h"

#include <time.h>

unsigned runtime_mode = MODE_UNSTARTED;
bool runtime_forked;
pthread_mutex_t tables_lock = PTHREAD_MUTEX_INITIALIZER;
void (*register_exit)(void);
void (*limit_reached)(void);
void (*other_code_allocates)(void);

#ifdef WITHOUT
const char proof_left_out[64] = PROOF_NAME(WITHOUT);
#endif
void (*asked_for_memory)(int device, size_t bytes);

bool lock_within(pthread_mutex_t *lock, unsigned ms) {
    static const uint64_t ns_a_ms = 1000000, ns_a_second = 1000000000;
    struct timespec limit;
    clock_gettime(CLOCK_REALTIME, &limit);
    const uint64_t ns = (uint64_t)limit.tv_nsec + ms * ns_a_ms;
    limit.tv_sec += (time_t)(ns / ns_a_second);
    limit.tv_nsec = (long)(ns % ns_a_second);
    return pthread_mutex_timedlock(lock, &limit) == 0;
}
