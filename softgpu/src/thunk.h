/* Declarations of the thunk: the hsaKmt* functions that ROCr calls, and the state behind them. The
 * interpreter does not include this; device.h has what it may use.
 *
 * Every function here may be called from any thread. */
#ifndef SOFTGPU_THUNK_H
#define SOFTGPU_THUNK_H

#include "device.h"

#include <hsakmt.h>

#define SOFTGPU_EXPORT __attribute__((visibility("default")))

/* Node 0 is the host; devices are nodes 1 to softgpu_device_count(). */
enum { SOFTGPU_MAX_DEVICES = 8, SOFTGPU_MAX_NODES = SOFTGPU_MAX_DEVICES + 1 };

/* Flat addresses from here on, 2^48 apart, mean workgroup memory and scratch: GFX9 hardware uses
 * these values. */
#define SOFTGPU_SHARED_APERTURE (UINT64_C(1) << 48)
#define SOFTGPU_PRIVATE_APERTURE (UINT64_C(2) << 48)

/* --- config.c ------------------------------------------------------------------------------ */

/* Reads the environment once. Returns false, after one line on stderr, if it is not understood:
 * then there is no device. */
bool softgpu_configure(void);
unsigned softgpu_device_count(void);
/* Returns the device that a node from 1 on presents; NULL for other nodes. The returned target
 * lives as long as the process. */
const struct softgpu_target *softgpu_node_target(uint32_t node);
/* Returns the bytes that a node can allocate: the device's memory, or the machine's for node 0. */
uint64_t softgpu_node_memory(uint32_t node);

/* --- topology.c ---------------------------------------------------------------------------- */

/* Stands for libdrm's handle of a device. ROCr 6.1 passes the device to the real libdrm, which
 * reads its own structure there: one of zeros. */
void *softgpu_drm_device(void);

/* --- process.c ----------------------------------------------------------------------------- */

/* Notes that the driver is used from here on. */
void softgpu_opened(void);
/* Returns true in a child that was forked after that. The child lacks the queues' threads, and the
 * parent's threads may hold locks. As with the real driver's library, every call then fails. */
bool softgpu_forked(void);
/* Prints one message, "softgpu: ...", in one write so that other output cannot split it. */
void softgpu_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Returns the nanoseconds of the one clock that device and host share. */
uint64_t softgpu_now(void);

#define SOFTGPU_REFUSE_AFTER_FORK()                                                                \
    do {                                                                                           \
        if (softgpu_forked())                                                                      \
            return HSAKMT_STATUS_KERNEL_IO_CHANNEL_NOT_OPENED;                                     \
    } while (0)

/* --- event.c ------------------------------------------------------------------------------- */

/* Raises the event of a signal that was set, as the device does, which wakes its sleepers.
 */
void softgpu_raise_event(uint32_t event_id);
/* Reports an access outside mapped memory to listeners for such events (ROCr listens, and aborts
 * the process with its own line). Returns false if there is no listener. */
bool softgpu_raise_memory_fault(uint32_t node, uint64_t va);

/* --- fault.c ------------------------------------------------------------------------------- */

/* Prints the fault and reports it to ROCr as hardware would: through the memory event, or through
 * the queue's error signal. queue_va is 0 for the copy engine, whose errors reach ROCr only by the
 * memory event. The caller then waits for the runtime by softgpu_queue_fail. */
void softgpu_report_fault(uint32_t node, uint64_t queue_va, const struct softgpu_fault *fault);

#endif
