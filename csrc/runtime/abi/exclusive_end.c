#include "abi/exclusive_end.h"
#include "driver/exclusive.h"
#include "memory/registrations.h"
#include "modules/modules.h"
#include "streams/lazy_sync.h"

void exclusive_end(void) {
    PROOF_STEP(word_ends_first, exclusive_stop());
    PROOF_STEP(other_code_sees_settled_work, lazy_settle(NULL));
    PROOF_STEP(other_code_shares_no_constants, module_unshare_constants());
    PROOF_STEP(other_code_finds_nothing_registered, registrations_give_back());
}
