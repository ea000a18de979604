/* Waits that the program asks of HIP itself, past the library. Each counts as a wait for all calls
 * before it. */
#ifndef SOFTGPU_CHECK_FOREIGN_H
#define SOFTGPU_CHECK_FOREIGN_H

#include <stdbool.h>

/* Puts functions of this library before HIP's, if HIP is there by now. A look-up by name gets ours
 * from here on. True if HIP was not there before. */
bool softgpu_foreign_watch(void);

#endif
