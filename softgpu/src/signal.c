/* Sets HSA signals as the device does. */
#include "hsa_signal.h"
#include "thunk.h"

void softgpu_signal_store(uint64_t handle, int64_t value) {
    struct softgpu_signal *signal = softgpu_signal_at(handle);
    /* Reads the mailbox first, because a waiting thread may free the signal as soon as the value is
     * set. */
    uint64_t mailbox = signal->event_mailbox;
    uint32_t event_id = signal->event_id;
    atomic_store(&signal->value, value);
    if (mailbox)
        softgpu_raise_event(event_id);
}

void softgpu_signal_complete(uint64_t handle, uint64_t start_time, uint64_t end_time) {
    if (!handle)
        return;
    struct softgpu_signal *signal = softgpu_signal_at(handle);
    uint64_t mailbox = signal->event_mailbox;
    uint32_t event_id = signal->event_id;
    signal->start_time = start_time;
    signal->end_time = end_time;
    atomic_fetch_sub(&signal->value, 1);
    if (mailbox)
        softgpu_raise_event(event_id);
}
