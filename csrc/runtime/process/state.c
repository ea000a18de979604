#include "process/state.h"
#include "proof.h"

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
