/* The program that the explored threads are: the handles that it holds, its launches, its resets.
 */
#ifndef PROGRAM_H
#define PROGRAM_H

#include "model.h"

/* One more work on a stream, by a launch; on memory. */
void program_launch(hipStream_t stream);
void program_launch_on(hipStream_t stream, void *address);

/* The caches are to forget all: no handle that the program holds is in use just then. From here on
 * some that HIP has are its alone, and what is submitted counts for no fence. */
void program_forgets(void);
/* To be called after that, with what explore_lone() was before: all is to be gone, unless another
 * thread was at work meanwhile. */
void program_require_gone(bool all_gone, unsigned lone);

/* The program resets the device, while none of its threads is within a call: HIP has nothing any
 * more, and hands the same handles out anew. */
void program_reset(void);
/* A thread's current device is this one from here on. It makes no call there during a reset. */
void program_go_to(int device);
/* The program resets a device that none of its threads is on: HIP has no module there any more.
 * `forget` has the caches forget them. */
void program_reset_modules(int device, void (*forget)(int device));
/* True from then on until something is entered again. */
bool program_reset_is_unseen(void);
/* An operation of the library's own thread begins, and ends. */
void program_hand(bool begins);

/* An object of the program's that is in this state, for the calling thread: the operation is none
 * of a valid program's where it is not. */
struct held *program_hold(unsigned object, int state);
/* The same to use one that other threads may use too. */
struct held *program_use(unsigned object);

/* The program makes a call for an object that it has not yet; and has been given it, which is none
 * of the others that it holds. */
struct held *program_asks(unsigned object);
void program_has(struct held *held, void *handle);
/* The program makes the call that ends an object, which no thread uses; and it has returned. */
struct held *program_ends(unsigned object);
void program_has_ended(struct held *held);

#endif
