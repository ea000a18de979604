/* Executes AQL packets: the packets of HSA's Platform System Architecture 2.9, and AMD's vendor
 * packets. A queue executes its packets strictly in order. */
#include "native_copy.h"
#include "queue.h"

#include <stdio.h>

enum packet_type { VENDOR = 0, INVALID = 1, DISPATCH = 2, BARRIER_AND = 3, BARRIER_OR = 5 };
enum vendor_format { VENDOR_COMMANDS = 1, VENDOR_BARRIER_VALUE = 2 };
enum { DEPENDENCIES = 5, COMPLETION_WORD = 7 };

static bool is_zero(uint64_t handle) {
    return atomic_load_explicit(&softgpu_signal_at(handle)->value, memory_order_acquire) == 0;
}

/* Waits for all given signals; returns false when the queue must stop. */
static bool await_all(struct softgpu_queue *queue, const uint64_t *signals) {
    struct softgpu_patience patience = {0};
    for (int i = 0; i < DEPENDENCIES; i++)
        while (signals[i] && !is_zero(signals[i]))
            if (!softgpu_queue_wait(queue, &patience))
                return false;
    return true;
}

/* Waits for one of the given signals, if any signal is given. */
static bool await_any(struct softgpu_queue *queue, const uint64_t *signals) {
    struct softgpu_patience patience = {0};
    for (;;) {
        bool none = true;
        for (int i = 0; i < DEPENDENCIES; i++) {
            if (signals[i] && is_zero(signals[i]))
                return true;
            none &= signals[i] == 0;
        }
        if (none)
            return true;
        if (!softgpu_queue_wait(queue, &patience))
            return false;
    }
}

static bool compare(int64_t value, int64_t reference, uint32_t condition) {
    switch (condition) {
    case 0:
        return value == reference;
    case 1:
        return value != reference;
    case 2:
        return value < reference;
    default:
        return value >= reference;
    }
}

/* Waits until the signal of an hsa_amd_barrier_value_packet_t meets the packet's condition. Words 1
 * to 4 of the packet are the signal, the value, the mask and the condition. */
static bool await_value(struct softgpu_queue *queue, const union softgpu_packet *packet) {
    uint64_t signal = packet->words[1];
    int64_t reference = (int64_t)packet->words[2];
    uint64_t mask = packet->words[3];
    uint32_t condition = (uint32_t)packet->words[4];
    struct softgpu_patience patience = {0};
    while (signal) {
        uint64_t value = (uint64_t)atomic_load(&softgpu_signal_at(signal)->value);
        if (compare((int64_t)(value & mask), reference, condition))
            return true;
        if (!softgpu_queue_wait(queue, &patience))
            return false;
    }
    return true;
}

static bool dispatch(struct softgpu_queue *queue, union softgpu_packet *packet, uint64_t index) {
    const struct softgpu_context context = {
        .target = softgpu_node_target(queue->node),
        .dispatch_id = index,
        .packet_va = (uintptr_t)packet,
        .queue_va = (uintptr_t)queue->amd,
        .shared_aperture = SOFTGPU_SHARED_APERTURE,
        .private_aperture = SOFTGPU_PRIVATE_APERTURE,
    };
    struct softgpu_fault fault = {0};
    if (softgpu_native_copy(&packet->dispatch))
        return true;
    if (softgpu_execute(&context, &packet->dispatch, &fault))
        return true;
    softgpu_queue_fail(queue, &fault);
    return false;
}

static bool refuse(struct softgpu_queue *queue, enum softgpu_fault_kind kind, unsigned type,
                   unsigned format) {
    struct softgpu_fault fault = {.kind = kind};
    snprintf(fault.text, sizeof fault.text, "AQL packet of unknown type %u, format %u", type,
             format);
    softgpu_queue_fail(queue, &fault);
    return false;
}

static bool vendor(struct softgpu_queue *queue, union softgpu_packet *packet) {
    unsigned format = (packet->words[0] >> 16) & 0xff;
    switch (format) {
    case VENDOR_COMMANDS: /* only flushes instruction caches, which the device lacks */
        return true;
    case VENDOR_BARRIER_VALUE:
        return await_value(queue, packet);
    default:
        return refuse(queue, SOFTGPU_FAULT_VENDOR_PACKET, VENDOR, format);
    }
}

static bool perform(struct softgpu_queue *queue, union softgpu_packet *packet, uint64_t index) {
    unsigned type = packet->words[0] & 0xff;
    switch (type) {
    case VENDOR:
        return vendor(queue, packet);
    case DISPATCH:
        return dispatch(queue, packet, index);
    case BARRIER_AND:
        return await_all(queue, &packet->words[1]);
    case BARRIER_OR:
        return await_any(queue, &packet->words[1]);
    default:
        return refuse(queue, SOFTGPU_FAULT_PACKET, type, 0);
    }
}

/* Returns whether HIP has rung the doorbell for the packet `index` or a later packet. The
 * doorbell's value is the index of a packet. HIP may ring the doorbell once for several packets. */
static bool is_rung(const struct softgpu_queue *queue, uint64_t index) {
    uint64_t bell = *(volatile uint64_t *)queue->doorbell.bell;
    return (int64_t)(bell - index) >= 0;
}

/* Returns the next packet, once HIP has written the packet; returns NULL when the queue must stop.
 * HIP writes the header last, so a valid header proves that the packet is complete, even if HIP has
 * not rung the doorbell. */
static union softgpu_packet *await_packet(struct softgpu_queue *queue, uint64_t index) {
    uint64_t count = queue->ring_bytes / sizeof(union softgpu_packet);
    union softgpu_packet *packet = (union softgpu_packet *)(void *)queue->ring;
    packet += index & (count - 1);
    struct softgpu_patience patience = {0};
    while ((atomic_load_explicit(&packet->header, memory_order_acquire) & 0xff) == INVALID)
        if (!softgpu_queue_idle(queue, &patience, is_rung(queue, index)))
            return NULL;
    softgpu_queue_found(queue);
    return packet;
}

void softgpu_drain_aql(struct softgpu_queue *queue) {
    for (uint64_t index = 0;; index++) {
        union softgpu_packet *packet = await_packet(queue, index);
        if (!packet)
            return;
        uint64_t signal = packet->words[COMPLETION_WORD];
        uint64_t start = softgpu_now();
        /* Does not complete the packet if the queue was destroyed, because ROCr may already have
         * freed the ring. */
        if (!perform(queue, packet, index) || atomic_load(&queue->state) == SOFTGPU_QUEUE_STOPS)
            return;
        uint64_t end = softgpu_now();
        /* Resets the header first, because HIP may reuse the packet's slot as soon as the read
         * index has passed the slot. */
        atomic_store_explicit(&packet->header, INVALID, memory_order_release);
        atomic_store_explicit(queue->read_index, index + 1, memory_order_release);
        softgpu_signal_complete(signal, start, end);
    }
}
