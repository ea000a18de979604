/* Learns from HIP whether other code in this process calls HIP.
 *
 * AMD's HIP, from 5.3 on, calls one function of the process before each call of its API, on the
 * calling thread (hipRegisterTracerCallback). This library sets that function. The library is
 * the sole user of HIP until HIP reports a call of other code that may change HIP's objects. The
 * report comes before the call runs, and the library never becomes the sole user again.
 *
 * HIP does not report calls from before the registration. Each function of HIP that creates objects
 * or submits work starts ROCr first. So the library is the sole user only if ROCr had not started
 * when the library had registered its function.
 *
 * A profiler may replace the function at any time. Each use of the knowledge therefore makes a call
 * to HIP of which HIP must report (a probe). Other code cannot set the library's function again, so
 * a probe that HIP reported proves that HIP has reported every earlier call, too.
 *
 * As the sole user the library leaves out queries; it postpones no wait and keeps no memory
 * registered because of that.
 * So a hit need not exclude a call of other code that begins during the hit. The hit then counts as
 * the earlier of two overlapping calls.
 *
 * With the user's word (MGPU_RT_EXCLUSIVE=on) the library registers its function too, even if HIP
 * was in use before. The library then needs no probe. The first call of other code then ends the
 * word: the call runs only after everything that rests on the word is settled. */
#ifndef MGPU_RT_WITNESS_H
#define MGPU_RT_WITNESS_H

#include "driver/hip.h"
#include "proof.h"

/* Registers the library's function with HIP and decides whether the library is its sole user. Does
 * nothing if HIP lacks the functions, other code may have called HIP, or a profiler is mapped. Each
 * thread that starts the library calls witness_open before its first call of HIP; only the first
 * call has an effect. By the user's word each thread registers, so the word is checked from the
 * thread's first call on. Takes a lock of the loader, so no thread waits for another here. */
void witness_open(const struct witness_functions *functions);

/* Makes `hip` mark each call of this library as the library's own. Call it after hip_install. */
void witness_install(void);

/* Says who calls HIP. The first calls of two threads may overlap. If a thread starts the library
 * while another thread registers, the state becomes OTHERS. The library then knows nothing of the
 * calls before the registration. OTHERS is final, and a hit then reads only this word. */
enum { WITNESS_UNREGISTERED, WITNESS_REGISTERED, WITNESS_SOLE_USER, WITNESS_OTHERS };
extern int witness_users;

static inline bool witness_is_sole_user(void) {
    return load_acquire(&witness_users) == WITNESS_SOLE_USER;
}

/* Makes a call to HIP, and returns true if HIP reported that call. Otherwise ends the
 * sole use. Leaves the thread's last error as a successful query would leave it. */
bool witness_probe(void);

/* Returns true if no other code has called HIP so far: HIP's objects are then as this library has
 * left them. Makes at most one call to HIP. The answer holds for the current call of the library
 * only. */
static inline bool witness_confirms(void) {
    return PROOF(no_other_code_called_hip, witness_is_sole_user()) && witness_probe();
}

/* Returns true if HIP's reports show that no work of other code is pending. Other code has then
 * submitted none, or has waited for the device on the calling thread. Call this function only while
 * HIP reports a call of other code on this thread. */
bool witness_others_have_no_work(void);

/* Says that the calling thread enters or leaves a function of hipSPARSE, which the library calls.
 * All calls of HIP in between count as the library's. A program may leave hipSPARSE by siglongjmp:
 * the library's next call of HIP on this thread then ends this, too. */
void witness_delegate(bool delegates);

/* Records that the thread enters or leaves a function that takes a registration. A signal handler
 * may interrupt the function and call HIP. Its call then ends the user's word, but settles nothing,
 * because the handler would wait for its own thread. The next call of other code settles it. */
void witness_enter(void);
void witness_leave(void);

/* Ends the user's word, and settles what rests on it (abi/exclusive_end.h). lifecycle.c sets this
 * pointer before HIP reports. */
extern bool (*witness_ends_word)(void);

/* Returns true if HIP reports the calls of overrides, so that the user's word may stand beside
 * them. Otherwise records that an override ends the word. Makes at most one call to HIP, which
 * changes nothing. As with every probe, the answer covers the calls of HIP from before. */
bool witness_hears_overrides(void);

/* Stores the text of witness_describe in `counts`, if the library was ever the sole user, or an
 * override has ended the user's word. */
void witness_record(void);

/* Writes which call of HIP other code made first, or "none", or why this is unknown. Says what has
 * ended the user's word: this call, or an override. */
enum { WITNESS_TEXT = 128 };
void witness_describe(char text[WITNESS_TEXT]);

#endif
