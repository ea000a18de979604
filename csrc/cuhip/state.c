/* The variables that every other file reads: the table of the driver's functions, the number of
 * devices, and the thread's state. */
#include "cuhip.h"

struct cuda_functions cuda;
int cuda_device_count;
__thread struct thread_state thread_state __attribute__((tls_model("initial-exec")));
