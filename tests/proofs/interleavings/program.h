/* The program that the explored threads are: the handles that it holds, its launches, its resets.
 */
#ifndef PROGRAM_H
#define PROGRAM_H

#include "model.h"

/* Adds one more work to a stream, by a launch; on memory. */
void program_launch(hipStream_t stream);
void program_launch_on(hipStream_t stream, void *address);

/* Has the caches forget all: no handle that the program holds is in use just then. From here on
 * some that HIP has are its alone, and what is submitted counts for no fence. */
void program_forgets(void);
/* Checks that all is gone, unless another thread was at work since explore_lone() returned `lone`.
 */
void program_require_gone(bool all_gone, unsigned lone);

/* Resets the device, while none of the program's threads is within a call. HIP has nothing any more
 * then, and hands out its handles again. */
void program_reset(void);
/* Makes a device the current one of a thread. It makes no call there during a reset. */
void program_go_to(int device);
/* Resets a device that none of the program's threads is on: HIP has no module there any more.
 * `forget` has the caches forget them. */
void program_reset_modules(int device, void (*forget)(int device));
/* Returns true from a reset on until something is entered again. */
bool program_reset_is_unseen(void);
/* Begins an operation of the library's own thread, and ends it. */
void program_hand(bool begins);

/* Returns an object of the program's that is in this state, for the calling thread. Where there is
 * none, the operation is none of a valid program's. */
struct held *program_hold(unsigned object, int state);
/* Returns such an object that other threads may use too. */
struct held *program_use(unsigned object);

/* Begins a call of the program for an object that it has not yet. The other function notes the
 * object that it was given, which is none of the others that it holds. */
struct held *program_asks(unsigned object);
void program_has(struct held *held, void *handle);
/* Begins the program's call that ends an object, which no thread uses; the other function ends it.
 */
struct held *program_ends(unsigned object);
void program_has_ended(struct held *held);

#endif
