/* The program that the explored threads run: its handles, its launches, its resets.
 */
#ifndef PROGRAM_H
#define PROGRAM_H

#include "model.h"

/* Launches a kernel on a stream. program_launch_on launches a kernel that uses the memory at the
 * address. */
void program_launch(hipStream_t stream);
void program_launch_on(hipStream_t stream, void *address);

/* Lets the library ask HIP for reports of calls. Call this after model_start. */
void program_reports(void);
/* Does the same with the user's word, which the first call of other code ends. */
void program_reports_by_word(void);

/* Records that a thread invalidates all caches. Prunes the run if a thread uses a handle of the
 * program. Afterwards, some objects exist in HIP but in no cache, and no fence covers the pending
 * work of these objects. */
void program_forgets(void);
/* Checks `all_gone`. Skips the check if another thread has been inside an operation since
 * explore_lone() returned `lone`. */
void program_require_gone(bool all_gone, unsigned lone);

/* Resets the device while no thread of the program is inside a call. All objects then cease to
 * exist in HIP, and HIP reuses the handles. */
void program_reset(void);
/* Sets the current device of the calling thread. Prunes the run if a thread is resetting this
 * device. */
void program_go_to(int device);
/* Resets a device that is not current on any thread of the program. The reset destroys the modules
 * of the device in HIP. `forget` invalidates the device's modules in the library's caches. */
void program_reset_modules(int device, void (*forget)(int device));
/* Returns true if a reset has happened and the library has not detected it yet. */
bool program_reset_is_unseen(void);
/* Begins or ends an operation of the library's own thread. */
void program_hand(bool begins);

/* Returns the object with this number, for the calling thread. Prunes the run if the object's state
 * is not `state`, or if a thread uses the object. No valid program would make the call with such an
 * object. */
struct held *program_hold(unsigned object, int state);
/* Returns an object of the program that other threads may use at the same time. */
struct held *program_use(unsigned object);

/* Begins a call of the program that creates an object. program_has ends the call, and stores the
 * handle that the call returned. The handle must differ from all other handles of the program. */
struct held *program_asks(unsigned object);
void program_has(struct held *held, void *handle);
/* Begins the call that destroys an unused object. program_has_ended marks the end of the call. */
struct held *program_ends(unsigned object);
void program_has_ended(struct held *held);

/* Plays a call of the program that uses or destroys an object. In `call`, `handle` is the object's
 * handle. */
#define PROGRAM_USES(object, call)                                                                 \
    do {                                                                                           \
        struct held *const used = program_use(object);                                             \
        void *const handle = used->handle;                                                         \
        call;                                                                                      \
        used->users--;                                                                             \
    } while (0)
#define PROGRAM_ENDS(object, call)                                                                 \
    do {                                                                                           \
        struct held *const ended = program_ends(object);                                           \
        void *const handle = ended->handle;                                                        \
        call;                                                                                      \
        program_has_ended(ended);                                                                  \
    } while (0)

/* Returns whether the program holds an object with this handle. */
bool program_holds(const void *handle);

#endif
