/* Runs one dispatch: reads the kernel descriptor and the grid, and starts the workgroups. */
#include "isa/exec.h"
#include "settings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* The kernel descriptor, 64 bytes at the kernel object (LLVM's AMDGPU usage guide). */
enum {
    DESCRIPTOR_SIZE = 64,
    ENTRY_OFFSET = 16,
    RSRC3 = 44,
    RSRC1 = 48,
    RSRC2 = 52,
    PROPERTIES = 56,
};

static bool refuse(struct softgpu_fault *fault, enum softgpu_fault_kind kind, uint64_t address,
                   const char *text) {
    snprintf(fault->text, sizeof fault->text, "%s (kernel object 0x%llx)", text,
             (unsigned long long)address);
    fault->kind = kind;
    fault->address = address;
    return false;
}

static uint32_t word_at(const char *descriptor, unsigned offset) {
    uint32_t value;
    memcpy(&value, descriptor + offset, sizeof value);
    return value;
}

static bool read_descriptor(struct dispatch *d, uint64_t va) {
    struct softgpu_range range;
    int64_t entry;
    if (!softgpu_find_range(va, &range) || range.size - (va - range.va) < DESCRIPTOR_SIZE)
        return false;
    const char *descriptor = range.host + (va - range.va);
    memcpy(&entry, descriptor + ENTRY_OFFSET, sizeof entry);
    d->entry = va + (uint64_t)entry;
    d->rsrc1 = word_at(descriptor, RSRC1);
    d->rsrc2 = word_at(descriptor, RSRC2);
    d->rsrc3 = word_at(descriptor, RSRC3);
    d->properties = (uint16_t)word_at(descriptor, PROPERTIES);
    return true;
}

/* The command processor checks the packet before it reads the kernel's descriptor. */
static bool check_packet(const struct softgpu_dispatch_packet *packet,
                         struct softgpu_fault *fault) {
    /* A wave has at most 2^13 - 1 KiB of scratch, shared by its 64 lanes. */
    enum { DIMENSIONS = 3, LDS_BYTES = 64 << 10, SCRATCH_BYTES = ((1 << 13) - 1) * 1024 / LANES };
    if ((packet->setup & DIMENSIONS) == 0)
        return refuse(fault, SOFTGPU_FAULT_DIMENSIONS, packet->kernel_object,
                      "the packet has no dimensions");
    if (packet->group_segment_size > LDS_BYTES)
        return refuse(fault, SOFTGPU_FAULT_GROUP_MEMORY, packet->kernel_object,
                      "more than 64 KiB of workgroup memory");
    if (packet->private_segment_size > SCRATCH_BYTES)
        return refuse(fault, SOFTGPU_FAULT_EXCEPTION, packet->kernel_object,
                      "more scratch memory than 131056 bytes a work-item");
    if (!packet->kernel_object)
        return refuse(fault, SOFTGPU_FAULT_CODE, 0, "there is no kernel");
    return true;
}

/* Returns the product, or UINT64_MAX on overflow. A grid of UINT64_MAX workgroups would never end.
 */
static uint64_t product(uint64_t a, uint64_t b) {
    uint64_t result;
    return __builtin_mul_overflow(a, b, &result) ? UINT64_MAX : result;
}

static void read_grid(struct dispatch *d) {
    const struct softgpu_dispatch_packet *p = d->packet;
    const uint32_t grid[] = {p->grid_size_x, p->grid_size_y, p->grid_size_z};
    const uint32_t block[] = {p->workgroup_size_x, p->workgroup_size_y, p->workgroup_size_z};
    unsigned dimensions = p->setup & 3;
    d->group_count = 1;
    for (unsigned axis = 0; axis < 3; axis++) {
        /* A packet may leave the fields of unused dimensions empty. */
        bool used = axis < dimensions;
        d->grid[axis] = used ? grid[axis] : 1;
        d->block[axis] = used ? block[axis] : 1;
        d->groups[axis] =
            d->grid[axis] && d->block[axis] ? (d->grid[axis] - 1) / d->block[axis] + 1 : 0;
        d->group_count = product(d->group_count, d->groups[axis]);
    }
}

/* Returns whether a workgroup fits into a compute unit. The group's waves are divided among the
 * SIMD units, and all waves on a SIMD unit share the unit's registers. */
static bool check_group(const struct dispatch *d, struct softgpu_fault *fault) {
    enum { SIMDS = 4, REGISTERS = 256, REGISTERS_SINCE_90A = 512 };
    uint64_t size = (uint64_t)d->block[0] * d->block[1] * d->block[2];
    if (size == 0)
        return refuse(fault, SOFTGPU_FAULT_DIMENSIONS, d->packet->kernel_object,
                      "the workgroup has no work-items");
    if (size > WAVES_PER_GROUP * LANES)
        return refuse(fault, SOFTGPU_FAULT_GROUP_SIZE, d->packet->kernel_object,
                      "the workgroup is larger than 1024 work-items");
    unsigned waves = ((unsigned)size + LANES - 1) / LANES, each = (waves + SIMDS - 1) / SIMDS;
    unsigned vgprs = softgpu_vgprs(d);
    if (each * vgprs <= (d->target & SINCE90A ? REGISTERS_SINCE_90A : REGISTERS))
        return true;
    char text[96];
    snprintf(text, sizeof text, "a wave has %u vector registers, too many for a workgroup of %u",
             vgprs, (unsigned)size);
    return refuse(fault, SOFTGPU_FAULT_REGISTERS, d->packet->kernel_object, text);
}

/* ---- how long a kernel may run ---- */

/* A wave may work for a long time while other waves wait at a barrier. A wave that loops until a
 * wave at the barrier acts would never end. The device stops the looping wave after 20 s if the
 * loop is empty, and later if the loop does work. */
#define BARRIER_BUDGET UINT64_C(10000000000)

static uint64_t budget, barrier_budget;

static uint64_t read_budget(const char *name, uint64_t standard) {
    char text[SOFTGPU_SETTING_SIZE], *end;
    if (!softgpu_setting(name, text))
        return standard;
    errno = 0;
    const uint64_t value = strtoull(text, &end, 10);
    if (errno == 0 && *end == '\0' && text[0] >= '0' && text[0] <= '9')
        return value;
    fprintf(stderr, "softgpu: %s=%s is not a number of instructions; going on with %llu\n", name,
            text, (unsigned long long)standard);
    return standard;
}

static void read_budgets(void) {
    budget = read_budget("budget", 0);
    barrier_budget = read_budget("barrier_budget", BARRIER_BUDGET);
}

/* ---- running it ---- */

static uint64_t total_instructions;

uint64_t softgpu_instructions(void) {
    return __atomic_load_n(&total_instructions, __ATOMIC_RELAXED);
}

bool softgpu_execute(const struct softgpu_context *context,
                     const struct softgpu_dispatch_packet *packet, struct softgpu_fault *fault) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, read_budgets);
    struct dispatch d = {
        .context = context,
        .packet = packet,
        .target = softgpu_target_mask(context->target),
        .lds_size = packet->group_segment_size,
        .scratch_lane_size = (packet->private_segment_size + 3) & ~3u,
        .budget = budget,
        .barrier_budget = barrier_budget,
        .code_at = softgpu_code_at,
        .fault = fault,
        .lock = PTHREAD_MUTEX_INITIALIZER,
        .changed = PTHREAD_COND_INITIALIZER,
    };
    if (!d.target)
        return refuse(fault, SOFTGPU_FAULT_EXCEPTION, packet->kernel_object,
                      "the interpreter does not know this target");
    if (!check_packet(packet, fault))
        return false;
    if (!read_descriptor(&d, packet->kernel_object))
        return refuse(fault, SOFTGPU_FAULT_MEMORY, packet->kernel_object,
                      "there is no kernel descriptor");
    read_grid(&d);
    if (!check_group(&d, fault))
        return false;
    CHECK_LAUNCH(&d);
    softgpu_dispatch_run(&d);
    softgpu_code_release(&d);
    __atomic_add_fetch(&total_instructions, d.instructions, __ATOMIC_RELAXED);
    return !d.failed;
}
