#include "base/state.h"

unsigned runtime_mode = MODE_UNSTARTED;
bool runtime_forked;
pthread_mutex_t tables_lock = PTHREAD_MUTEX_INITIALIZER;
void (*register_exit)(void);
