/* Replaces the number that changes with the map of the allocations (softgpu/src/check/shadow.h):
 * this number changes whenever a thread asks for it. */
#include <stdint.h>

uint64_t __wrap_softgpu_shadow_generation(void);

uint64_t __wrap_softgpu_shadow_generation(void) {
    static uint64_t generation;
    return __atomic_add_fetch(&generation, 1, __ATOMIC_RELAXED);
}
