#include "process/state.h"
#include "proof.h"

unsigned runtime_mode = MODE_UNSTARTED;
bool runtime_forked;
pthread_mutex_t tables_lock = PTHREAD_MUTEX_INITIALIZER;
void (*register_exit)(void);
void (*limit_reached)(void);

#ifdef WITHOUT
#define TEXT_OF(name) #name
#define VALUE_OF(name) TEXT_OF(name)
const char proof_left_out[] = VALUE_OF(WITHOUT);
#endif
void (*asked_for_memory[ASKED])(int device, size_t bytes);
