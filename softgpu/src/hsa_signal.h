/* Declares AMD's layout of HSA signals and queues, as far as the device uses these structures. */
#ifndef SOFTGPU_HSA_SIGNAL_H
#define SOFTGPU_HSA_SIGNAL_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* amd_signal_t; a signal's address is its handle. */
struct softgpu_signal {
    int64_t kind;
    _Atomic int64_t value;
    uint64_t event_mailbox; /* 0: no thread sleeps on this signal, and all threads poll the signal's
                               value */
    uint32_t event_id;
    uint32_t reserved1;
    uint64_t start_time, end_time; /* device clock */
    uint64_t queue;
    uint32_t reserved3[2];
};
_Static_assert(sizeof(struct softgpu_signal) == 64, "amd_signal_t has 64 bytes");

/* amd_queue_t; ROCr gives the device only the address of one member. */
struct softgpu_amd_queue {
    uint64_t hsa_queue[5];
    uint32_t reserved1[4];
    uint64_t write_dispatch_id;
    uint32_t group_segment_aperture_base_hi;
    uint32_t private_segment_aperture_base_hi;
    uint32_t max_cu_id, max_wave_id;
    uint64_t max_legacy_doorbell_dispatch_id_plus_1;
    uint32_t legacy_doorbell_lock;
    uint32_t reserved2[9];
    uint64_t read_dispatch_id;
    uint32_t read_dispatch_id_field_base_byte_offset;
    uint32_t compute_tmpring_size;
    uint32_t scratch_resource_descriptor[4];
    uint64_t scratch_backing_memory_location;
    uint64_t scratch_backing_memory_byte_size;
    uint32_t scratch_wave64_lane_byte_size;
    uint32_t queue_properties;
    uint32_t reserved3[2];
    uint64_t queue_inactive_signal;
    uint32_t reserved4[14];
};
_Static_assert(offsetof(struct softgpu_amd_queue, write_dispatch_id) == 56, "amd_queue_t");
_Static_assert(offsetof(struct softgpu_amd_queue, read_dispatch_id) == 128, "amd_queue_t");
_Static_assert(offsetof(struct softgpu_amd_queue, queue_inactive_signal) == 192, "amd_queue_t");
_Static_assert(sizeof(struct softgpu_amd_queue) == 256, "amd_queue_t has 256 bytes");

static inline struct softgpu_signal *softgpu_signal_at(uint64_t handle) {
    return (struct softgpu_signal *)(uintptr_t)handle;
}

/* Stores a signal's value, and wakes threads that sleep on the signal. */
void softgpu_signal_store(uint64_t handle, int64_t value);
/* Completes a packet: writes the times, decrements the signal, and wakes threads that sleep on the
 * signal. Does nothing for handle 0. */
void softgpu_signal_complete(uint64_t handle, uint64_t start_time, uint64_t end_time);

#endif
