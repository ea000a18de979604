/* Reports ops that wrote memory that the host reads, if the program has not waited for them.
 *
 * Every function may be called from any thread. */
#ifndef SOFTGPU_CHECK_HOST_WRITES_H
#define SOFTGPU_CHECK_HOST_WRITES_H

#include <stdint.h>

/* Notes that an op writes to `memory` ("registered", "host_shared" or "pageable") at an address.
 * `kernel`: the name of a launch's kernel, or NULL. Further writes of an op change nothing. */
void softgpu_wrote_host(uint32_t op, uint64_t address, const char *memory, const char *kernel);
/* Reports the noted ops for which nothing has waited. The function runs when the program ends. */
void softgpu_check_host_writes(void);

#endif
