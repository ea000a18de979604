#include "abi/exclusive_end.h"
#include "driver/exclusive.h"
#include "memory/registrations.h"
#include "streams/lazy_sync.h"

/* ms. No thread holds tables_lock for so long: then the calling thread itself holds it. */
enum { LOCK_HELD = 1000 };

bool exclusive_end(void) {
    PROOF_STEP(word_ends_first, exclusive_stop());
    if (!lock_within(&tables_lock, LOCK_HELD))
        return false;
    pthread_mutex_unlock(&tables_lock);
    PROOF_STEP(other_code_sees_settled_work, lazy_settle(NULL));
    PROOF_STEP(other_code_finds_nothing_registered, registrations_give_back());
    return true;
}
