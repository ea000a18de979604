/* Declares the thunk: the hsaKmt* functions that ROCr calls, and their state. The interpreter
 * includes device.h instead of this header.
 *
 * Every function of this header may be called from any thread. */
#ifndef SOFTGPU_THUNK_H
#define SOFTGPU_THUNK_H

#include "device.h"

#include <hsakmt.h>

#define SOFTGPU_EXPORT __attribute__((visibility("default")))

/* Node 0 is the host; devices are nodes 1 to softgpu_device_count(). */
enum { SOFTGPU_MAX_DEVICES = 8, SOFTGPU_MAX_NODES = SOFTGPU_MAX_DEVICES + 1 };

/* Flat addresses in two ranges of 2^48 bytes mean workgroup memory and scratch. The two ranges
 * begin at the same addresses as on GFX9 hardware. */
#define SOFTGPU_SHARED_APERTURE (UINT64_C(1) << 48)
#define SOFTGPU_PRIVATE_APERTURE (UINT64_C(2) << 48)

/* --- config.c ------------------------------------------------------------------------------ */

/* Reads the environment once. If the environment is invalid, prints one line on stderr and returns
 * false; no device exists in this case. */
bool softgpu_configure(void);
unsigned softgpu_device_count(void);
/* Returns the target of a device's node; NULL for other nodes. The returned target lives as long as
 * the process. */
const struct softgpu_target *softgpu_node_target(uint32_t node);
/* Returns the number of bytes that can be allocated on a node: the memory of the node's device, or
 * the host's memory for node 0. */
uint64_t softgpu_node_memory(uint32_t node);

/* --- topology.c ---------------------------------------------------------------------------- */

/* Returns a stand-in for libdrm's device handle: the address of a structure of zeros. ROCr 6.1
 * passes this handle to the real libdrm, which reads the structure. */
void *softgpu_drm_device(void);

/* --- process.c ----------------------------------------------------------------------------- */

/* Notes that the process has opened the driver. */
void softgpu_opened(void);
/* Returns true in a child that was forked after softgpu_opened. A forked child lacks the queues'
 * threads, and the parent's threads may have held locks at the fork. Every call of the driver fails
 * in a forked child, as with the real driver's library. */
bool softgpu_forked(void);
/* Prints one message, "softgpu: ...", by a single write, so that other output cannot split the
 * message. */
void softgpu_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Returns the time in nanoseconds, by the clock that device and host share. */
uint64_t softgpu_now(void);

#define SOFTGPU_REFUSE_AFTER_FORK()                                                                \
    do {                                                                                           \
        if (softgpu_forked())                                                                      \
            return HSAKMT_STATUS_KERNEL_IO_CHANNEL_NOT_OPENED;                                     \
    } while (0)

/* --- event.c ------------------------------------------------------------------------------- */

/* Raises the event of a signal, as the device does after setting the signal, and thus wakes the
 * threads that wait for the event.
 */
void softgpu_raise_event(uint32_t event_id);
/* Reports an access outside mapped memory to the listeners for memory events. ROCr is such a
 * listener: ROCr prints a line and aborts the process. Returns false if no listener exists. */
bool softgpu_raise_memory_fault(uint32_t node, uint64_t va);

/* --- fault.c ------------------------------------------------------------------------------- */

/* Prints the fault and reports the fault to ROCr as hardware would: through the memory event or the
 * queue's error signal. queue_va is 0 for the copy engine, whose errors reach ROCr only by the
 * memory event. After the report, softgpu_queue_fail waits for the runtime's reaction. */
void softgpu_report_fault(uint32_t node, uint64_t queue_va, const struct softgpu_fault *fault);

#endif
