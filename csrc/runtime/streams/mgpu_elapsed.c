/* mgpuEventElapsedTime. */
#include "driver/hip.h"
#include "driver/refusal.h"
#include "driver/report.h"
#include "process/mapped.h"
#include "process/state.h"
#include "proof.h"
#include "shared/thread.h"
#include "streams/events.h"

#include <dlfcn.h>

static const char elapsed_expression[] = "hipEventElapsedTime(&milliseconds, start, stop)";
static struct advice no_time = {
    .text = "there is no time between %p and %p. An event has one once it was recorded, and only "
            "if the process had asked for times when it was made: link with mgpuEventElapsedTime, "
            "or call it with null pointers before (docs/stock.md)"};

typedef struct mgpu_elapsed elapsed_function(void *, void *, void *);

static struct mgpu_elapsed ask_elapsed(hipEvent_t start, hipEvent_t stop) {
    struct mgpu_elapsed elapsed = {0};
    elapsed.error = hip.EventElapsedTime(&elapsed.milliseconds, start, stop);
    REPORT(elapsed_expression, (hipError_t)elapsed.error, &no_time, (void *)start, (void *)stop);
    return elapsed;
}

/* Two events, or a float's address and two events. Which of the two is known by the events that
 * this library has handed out: any other address may be anything. */
static struct mgpu_elapsed find_elapsed(void *first, void *second, void *third) {
    if (PROOF(first_is_an_event, event_held(first)) && event_held(second))
        return ask_elapsed(first, second);
    if (!PROOF(others_are_events, event_held(second) && event_held(third))) {
        const hipError_t error = refusal_of_event();
        report_failure(elapsed_expression, error, &no_time, first, second);
        return (struct mgpu_elapsed){.error = error};
    }
    const struct mgpu_elapsed elapsed = ask_elapsed(second, third);
    if (first && elapsed.error == hipSuccess)
        *(float *)first = elapsed.milliseconds;
    return elapsed;
}

/* Finds an mgpuEventElapsedTime of the program. NULL if there is none. NULL too if the loader has
 * it before ours: then it had the program's call, and called ours. */
static elapsed_function *find_own_timer(void) {
    static const char name[] = "mgpuEventElapsedTime";
    const mapped_code own = runtime_forked ? NULL : mapped_function(name);
    void *first = own ? dlsym(RTLD_DEFAULT, name) : NULL;
    return DOUBT(own_timer_had_the_call, first == *(void *const *)&own) ? NULL
                                                                        : (elapsed_function *)own;
}

/* LLVM's own library lacks this function. If the program has one of its own, perhaps one that
 * prints, that answers, as with stock. A call with two null pointers only asks for times. */
struct mgpu_elapsed impl_mgpuEventElapsedTime(void *first, void *second, void *late_third) {
    (void)thread_get();
    event_time_all();
    if (!first && !second) /* that was the question */
        return (struct mgpu_elapsed){.error = hipErrorInvalidHandle};
    elapsed_function *own = find_own_timer();
    return own ? own(first, second, late_third) : find_elapsed(first, second, late_third);
}
