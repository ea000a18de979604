/* The program of the explored threads: its handles, its launches, its resets.
 */
#ifndef PROGRAM_H
#define PROGRAM_H

#include "model.h"

/* Adds a work to a stream, by a launch, on memory. */
void program_launch(hipStream_t stream);
void program_launch_on(hipStream_t stream, void *address);

/* Invalidates all caches while no handle of the program is in use. From here on some objects are
 * known to HIP only, and their work counts for no fence. */
void program_forgets(void);
/* Checks that all objects are gone, unless another thread was active since explore_lone() returned
 * `lone`.
 */
void program_require_gone(bool all_gone, unsigned lone);

/* Resets the device, while no thread of the program is within a call. HIP then has no objects any
 * more, and hands out its handles again. */
void program_reset(void);
/* Makes a device the current one of a thread. The thread makes no call there during a reset. */
void program_go_to(int device);
/* Resets a device that no thread of the program is on: HIP then has no module there. `forget`
 * invalidates the caches of them. */
void program_reset_modules(int device, void (*forget)(int device));
/* Returns true from a reset on until an object is inserted again. */
bool program_reset_is_unseen(void);
/* Begins an operation of the library's own thread, or ends it. */
void program_hand(bool begins);

/* Returns an object of the program in this state, for the calling thread. If there is none, no
 * valid program would make the operation. */
struct held *program_hold(unsigned object, int state);
/* Returns such an object that other threads may also use. */
struct held *program_use(unsigned object);

/* Begins a call of the program for a new object. The other function notes the object that the call
 * returned, which differs from all others that the program holds. */
struct held *program_asks(unsigned object);
void program_has(struct held *held, void *handle);
/* Begins the program's call that ends an object, which no thread uses; the other function ends the
 * call.
 */
struct held *program_ends(unsigned object);
void program_has_ended(struct held *held);

#endif
