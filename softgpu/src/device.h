/* Declarations that the parts of the software GPU share.
 *
 * thunk (hsaKmt*) -> queue (AQL packets) -> execute (one dispatch) -> isa (one instruction)
 *
 * Nothing here is seen by HIP: HIP sees only the hsaKmt* functions of libhsakmt.so.1. */
#ifndef SOFTGPU_DEVICE_H
#define SOFTGPU_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A target that the device can present, as MGPU_RT_SOFTGPU names it. */
struct softgpu_target {
    const char *name; /* the chip's name, "gfx90a", as LLVM spells it in -mcpu */
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

/* A mapping of the device's address space: [va, va + size) of the GPU is [host, host + size) of
 * this process. */
struct softgpu_range {
    uint64_t va, size;
    char *host;
};

/* Finds the mapping that holds a GPU address; false if nothing is mapped there. Thread-safe. The
 * caller may keep the copy for one dispatch, so that the lookup is off its hot path. Memory that a
 * running kernel uses is not freed before the kernel ends. */
bool softgpu_find_range(uint64_t va, struct softgpu_range *range);

/* Finds, for messages, the device's address of registered memory of the program, from the host's
 * address. Returns false if the memory is not registered. */
bool softgpu_registered_address(uint64_t va, uint64_t *known_as);

/* The hardware's name of a fault, which decides what ROCr and HIP are told. */
enum softgpu_fault_kind {
    SOFTGPU_FAULT_EXCEPTION, /* any fault without a name of its own */
    SOFTGPU_FAULT_ILLEGAL_INSTRUCTION,
    SOFTGPU_FAULT_MEMORY, /* an access outside mapped memory */
    /* Faults of the packet, not of the kernel: */
    SOFTGPU_FAULT_PACKET,        /* of an unknown type */
    SOFTGPU_FAULT_VENDOR_PACKET, /* a packet of AMD's with an unknown format */
    SOFTGPU_FAULT_DIMENSIONS,
    SOFTGPU_FAULT_GROUP_MEMORY, /* more than a compute unit has */
    SOFTGPU_FAULT_GROUP_SIZE,
    SOFTGPU_FAULT_CODE,      /* there is no kernel object */
    SOFTGPU_FAULT_REGISTERS, /* the group needs more than a compute unit has */
};

/* The place where a kernel stopped and the reason, for a message that helps a programmer. */
struct softgpu_fault {
    char text[1024]; /* complete, without a newline at the end; \n separates its lines */
    enum softgpu_fault_kind kind;
    uint64_t address; /* SOFTGPU_FAULT_MEMORY: the address that the kernel accessed */
};

/* Writes, for messages, the name of the kernel with this descriptor. The name is from the symbols
 * of its loaded code object, or "(unnamed, at 0x...)". */
void softgpu_kernel_name(uint64_t kernel_object, char *name, size_t size);

/* Writes, for messages, the text of the instruction that begins with these words, by LLVM's tools
 * if they are found, or "". Starts a process, which takes milliseconds. */
void softgpu_disassemble(const struct softgpu_target *target, const uint32_t *words, unsigned count,
                         char *text, size_t size);

/* The needs of one dispatch besides its packet. */
struct softgpu_context {
    const struct softgpu_target *target;
    uint64_t dispatch_id;      /* the packet's number in its queue */
    uint64_t packet_va;        /* GPU address of the packet, for kernels that read it */
    uint64_t queue_va;         /* GPU address of the amd_queue_t, for kernels that read it */
    uint64_t shared_aperture;  /* flat addresses of workgroup memory begin here (1 << 48 apart) */
    uint64_t private_aperture; /* flat addresses of scratch begin here */
};

/* Runs one kernel dispatch to its end on the calling thread and, if that helps, on others. Returns
 * true when every wave has ended; false with *fault filled when one could not continue. */
bool softgpu_execute(const struct softgpu_context *context,
                     const struct softgpu_dispatch_packet *packet, struct softgpu_fault *fault);

/* Returns how many instructions all dispatches of this process ran, each counted once a wave.
 * Exported for programs that measure, which find it by name. */
__attribute__((visibility("default"))) uint64_t softgpu_instructions(void);

#endif
