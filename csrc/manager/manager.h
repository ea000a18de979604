/* The requests that the manager can send to the library in the program. The C compiler and cffi
 * read this file; cffi reads it without the preprocessor lines. One thread calls these functions at
 * a time, unless a comment says otherwise.
 *
 * When the program ends, calls exec or stops its manager, this process ends at once, even in the
 * middle of its work.
 */
#ifndef MGPU_RT_MANAGER_PROCESS_H
#define MGPU_RT_MANAGER_PROCESS_H

#include <stddef.h>
#include <stdint.h>

/* The values equal the values in csrc/runtime/telemetry/channel.h; the compiler checks this. */
struct mgpu_event {
    uint64_t time, handle, bytes;
    int32_t kind, device;
};
struct mgpu_cached {
    uint64_t handle, bytes, uses;
    int32_t device, held;
};

/* Makes this process the manager of the program that has started it. `version` is the version of
 * the package mgpu_rt; `python` is a text about the interpreter; `program` is the program's process
 * id, 0 if unknown. Returns NULL, or the reason why this process cannot be the manager. If the
 * channel is ready, the function also passes the reason to the library. */
const char *mgpu_attach(const char *version, const char *python, int program);

/* Tells the library that no manager will serve the program. Does nothing before mgpu_attach has
 * opened the channel. */
void mgpu_give_up(const char *reason);

/* Waits at most `milliseconds` for an event. Stores up to `room` events, oldest first, and returns
 * their number. Adds to *dropped_events the number of events that the library dropped since the
 * last call, because the ring was full. */
size_t mgpu_events(struct mgpu_event *out, size_t room, int milliseconds, uint64_t *dropped_events);

/* Sends one request (enum channel_request), and returns the library's answer. Any thread. */
int64_t mgpu_ask(int request, int kind, int device, uint64_t handle, uint64_t value,
                 const char *text);

/* Returns the entries that the last request has filled. */
const struct mgpu_cached *mgpu_list(void);
uint64_t mgpu_limit_of_modules(void);
uint64_t mgpu_limit_of_streams(void);
uint64_t mgpu_limit_of_memory(int device);
uint64_t mgpu_memory_available(void);
uint64_t mgpu_memory_total(void);

#endif
