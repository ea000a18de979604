/* Detects waits that the program makes by calling HIP directly. A direct call counts as a wait for
 * all earlier ops. */
#ifndef SOFTGPU_CHECK_FOREIGN_H
#define SOFTGPU_CHECK_FOREIGN_H

#include <stdbool.h>

/* Replaces HIP's wait functions by functions of this library, once HIP is loaded. Later lookups of
 * HIP's symbols find the functions of this library. Returns true for the first call that finds HIP
 * loaded. */
bool softgpu_foreign_watch(void);

#endif
