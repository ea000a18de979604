/* Notices waits that the program makes by calling HIP directly, past the library. Each such call
 * counts as a wait for all earlier calls. */
#ifndef SOFTGPU_CHECK_FOREIGN_H
#define SOFTGPU_CHECK_FOREIGN_H

#include <stdbool.h>

/* Puts functions of this library before HIP's, once HIP is loaded. A look-up by name finds these
 * functions from here on. Returns true if HIP was not loaded before. */
bool softgpu_foreign_watch(void);

#endif
