/* Detects waits that the program makes by calling HIP directly. A direct call counts as a wait for
 * all earlier ops. */
#ifndef SOFTGPU_CHECK_FOREIGN_H
#define SOFTGPU_CHECK_FOREIGN_H

#include <stdbool.h>

/* Overrides HIP's functions with functions of this library, once HIP is loaded. A later lookup by
 * name finds the functions of this library. Returns true if HIP was not loaded before. */
bool softgpu_foreign_watch(void);

#endif
