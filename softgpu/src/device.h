/* Declarations that the parts of the software GPU share.
 *
 * thunk (hsaKmt*) -> queue (AQL packets) -> execute (one dispatch) -> isa (one instruction)
 *
 * ROCr calls the driver's functions (hsaKmt*), and none of the functions in this file. */
#ifndef SOFTGPU_DEVICE_H
#define SOFTGPU_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A target that the device can emulate, and that MGPU_RT_SOFTGPU can name. */
struct softgpu_target {
    const char *name; /* the chip's name as in LLVM's -mcpu, such as "gfx90a" */
    uint32_t major, minor, stepping;
};

/* An AQL kernel dispatch packet, 64 bytes (HSA Platform System Architecture, 2.9.6). */
struct softgpu_dispatch_packet {
    uint16_t header, setup;
    uint16_t workgroup_size_x, workgroup_size_y, workgroup_size_z, reserved0;
    uint32_t grid_size_x, grid_size_y, grid_size_z; /* in work-items, not in workgroups */
    uint32_t private_segment_size, group_segment_size;
    uint64_t kernel_object;   /* GPU address of the 64-byte kernel descriptor */
    uint64_t kernarg_address; /* GPU address */
    uint64_t reserved2;
    uint64_t completion_signal;
};
_Static_assert(sizeof(struct softgpu_dispatch_packet) == 64, "an AQL packet has 64 bytes");

/* A mapping of the device's address space: the GPU's addresses [va, va + size) are mapped to the
 * process's addresses [host, host + size). */
struct softgpu_range {
    uint64_t va, size;
    char *host;
    unsigned image; /* the loaded image that softgpu_name_ranges gave; 0 without one */
};

/* Finds the mapping that contains a GPU address; returns false if the address is not mapped.
 * Thread-safe. The caller may cache the returned copy for one dispatch, to avoid repeated lookups.
 * Memory that a running kernel uses is not freed before the kernel ends. */
bool softgpu_find_range(uint64_t va, struct softgpu_range *range);

/* Gives a number of an image, which is not 0, to each range that has none and for which `is_from`
 * returns true. `is_from` must not look up ranges. Thread-safe. */
void softgpu_name_ranges(unsigned image,
                         bool (*is_from)(const struct softgpu_range *range, const void *of),
                         const void *of);

/* Converts the host address of registered memory to the device address, for messages. Returns false
 * if the memory is not registered. */
bool softgpu_registered_address(uint64_t va, uint64_t *known_as);

/* Returns true if the process can read the address, but no mapping of the devices contains the
 * address. */
bool softgpu_is_host_memory(uint64_t va);

/* The kind of a fault, which determines the error that ROCr and HIP report. */
enum softgpu_fault_kind {
    SOFTGPU_FAULT_EXCEPTION, /* any other fault */
    SOFTGPU_FAULT_ILLEGAL_INSTRUCTION,
    SOFTGPU_FAULT_MEMORY, /* an access outside mapped memory */
    /* Faults of the packet, not of the kernel: */
    SOFTGPU_FAULT_PACKET,        /* unknown packet type */
    SOFTGPU_FAULT_VENDOR_PACKET, /* AMD vendor packet with an unknown format */
    SOFTGPU_FAULT_DIMENSIONS,
    SOFTGPU_FAULT_GROUP_MEMORY, /* more workgroup memory than a compute unit has */
    SOFTGPU_FAULT_GROUP_SIZE,
    SOFTGPU_FAULT_CODE,      /* there is no kernel object */
    SOFTGPU_FAULT_REGISTERS, /* the group needs more registers than a compute unit has */
};

/* The place where a kernel stopped, and the reason, for a message. */
struct softgpu_fault {
    char text[1024]; /* the complete message; \n separates lines, and no \n ends the text */
    enum softgpu_fault_kind kind;
    uint64_t address; /* SOFTGPU_FAULT_MEMORY: the address that the kernel accessed */
};

/* Writes the name of the kernel with the descriptor at `kernel_object`, for messages. The name
 * comes from the symbols of the kernel's code object, or is "(unnamed, at 0x...)". */
void softgpu_kernel_name(uint64_t kernel_object, char *name, size_t size);

/* Disassembles the instruction that begins with these words, for messages; writes "" if LLVM's
 * tools are not found. Starts a child process, which takes milliseconds. */
void softgpu_disassemble(const struct softgpu_target *target, const uint32_t *words, unsigned count,
                         char *text, size_t size);

/* The inputs of a dispatch besides its packet. */
struct softgpu_context {
    const struct softgpu_target *target;
    uint64_t dispatch_id;      /* the packet's index in its queue */
    uint64_t packet_va;        /* GPU address of the packet, for kernels that read it */
    uint64_t queue_va;         /* GPU address of the amd_queue_t, for kernels that read it */
    uint64_t shared_aperture;  /* the first flat address of workgroup memory */
    uint64_t private_aperture; /* the first flat address of scratch */
};

/* Runs one kernel dispatch to its end, on the calling thread and possibly on further threads.
 * Returns true when every wave has ended; returns false and fills *fault if a wave could not
 * continue. */
bool softgpu_execute(const struct softgpu_context *context,
                     const struct softgpu_dispatch_packet *packet, struct softgpu_fault *fault);

/* Returns the number of instructions that all dispatches of this process have run; an instruction
 * counts once for each wave. Exported for benchmarks, which look the function up by name. */
__attribute__((visibility("default"))) uint64_t softgpu_instructions(void);

#endif
