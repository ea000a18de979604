/* Exports the interpreter, without HIP and without a thunk, to tests that use ctypes. The test maps
 * the memory and loads the code objects. */
#include "../../src/isa/exec.h"

#include <stdio.h>
#include <stdlib.h>

#define EXPORT __attribute__((visibility("default")))

enum { MAPPINGS = 64 };
static struct softgpu_range mappings[MAPPINGS];
static unsigned mapping_count;

static const struct softgpu_target targets[] = {
    {"gfx906", 9, 0, 6}, {"gfx908", 9, 0, 8}, {"gfx90a", 9, 0, 10}, {"gfx942", 9, 4, 2}};

EXPORT bool isa_map(uint64_t va, uint64_t size, void *host) {
    if (mapping_count == MAPPINGS)
        return false;
    mappings[mapping_count++] = (struct softgpu_range){.va = va, .size = size, .host = host};
    return true;
}

EXPORT void isa_unmap(uint64_t va) {
    for (unsigned n = 0; n < mapping_count; n++)
        if (mappings[n].va == va) {
            mappings[n] = mappings[--mapping_count];
            return;
        }
}

EXPORT void isa_unmap_all(void) {
    mapping_count = 0;
}

bool softgpu_find_range(uint64_t va, struct softgpu_range *range) {
    for (unsigned n = 0; n < mapping_count; n++)
        if (va - mappings[n].va < mappings[n].size) {
            *range = mappings[n];
            return true;
        }
    return false;
}

void softgpu_kernel_name(uint64_t kernel_object, char *name, size_t size) {
    snprintf(name, size, "kernel at 0x%llx", (unsigned long long)kernel_object);
}

static const struct softgpu_target *find_target(const char *name) {
    for (unsigned n = 0; n < sizeof targets / sizeof targets[0]; n++)
        if (!strcmp(targets[n].name, name))
            return &targets[n];
    return NULL;
}

/* The kind of the last dispatch's fault. */
static int last_kind;

/* Returns the enum softgpu_fault_kind of the last dispatch's fault, or -1 if no fault occurred. */
EXPORT int isa_fault_kind(void) {
    return last_kind;
}

EXPORT bool isa_dispatch(const char *target, const struct softgpu_dispatch_packet *packet,
                         char *fault_text, size_t size, uint64_t *fault_address) {
    struct softgpu_fault fault = {.text = ""};
    struct softgpu_context context = {.target = find_target(target),
                                      .dispatch_id = 1,
                                      .packet_va = (uint64_t)(uintptr_t)packet,
                                      .shared_aperture = 1ull << 48,
                                      .private_aperture = 2ull << 48};
    /* The packet must be mapped, because kernels can read the packet. */
    unsigned count = mapping_count;
    isa_map(context.packet_va, sizeof *packet, (void *)(uintptr_t)packet);
    bool good = softgpu_execute(&context, packet, &fault);
    mapping_count = count;
    snprintf(fault_text, size, "%s", good ? "" : fault.text);
    *fault_address = fault.address;
    last_kind = good ? -1 : (int)fault.kind;
    return good;
}
