#include "abi/exclusive_end.h"
#include "driver/exclusive.h"
#include "memory/registrations.h"
#include "modules/modules.h"
#include "streams/lazy_sync.h"

#include <time.h>

/* No thread holds tables_lock for long. So if the lock is not free within a second, the calling
 * thread itself holds it. */
static bool holds_no_lock(void) {
    struct timespec limit;
    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_sec++;
    const bool is_free = pthread_mutex_timedlock(&tables_lock, &limit) == 0;
    if (is_free)
        pthread_mutex_unlock(&tables_lock);
    return is_free;
}

bool exclusive_end(void) {
    PROOF_STEP(word_ends_first, exclusive_stop());
    if (!holds_no_lock())
        return false;
    PROOF_STEP(other_code_sees_settled_work, lazy_settle(NULL));
    PROOF_STEP(other_code_shares_no_constants, module_unshare_constants());
    PROOF_STEP(other_code_finds_nothing_registered, registrations_give_back());
    return true;
}
