/* State that every other file reads: the driver's functions, its devices, the thread. */
#include "cuhip.h"

struct cuda_functions cuda;
int cuda_device_count;
__thread struct thread_state thread_state __attribute__((tls_model("initial-exec")));
