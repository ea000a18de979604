/* Records registered host memory, and answers the checker's queries about device addresses and host
 * memory. */
#include "../device.h"
#include "calls.h"
#include "hooks.h"

void softgpu_check_registered(uint64_t va, uint64_t size) {
    softgpu_shadow_add(va, size, MEMORY_REGISTERED, NULL, 0);
}

void softgpu_check_unregistered(uint64_t va) {
    softgpu_shadow_end(va, NULL);
}

bool softgpu_check_device_address(const void *memory, uint64_t *va) {
    return softgpu_registered_address((uintptr_t)memory, va);
}

bool softgpu_check_is_host(const void *memory) {
    struct softgpu_range range;
    return !softgpu_find_range((uintptr_t)memory, &range);
}
