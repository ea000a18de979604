#include "process/exit_status.h"
#include "mgpu_rt_private.h"
#include "process/options.h"

#include <stdio.h>
#include <stdlib.h>

static unsigned failures; /* of this process */
static bool registered;   /* the handlers are registered and have not run yet */

unsigned mgpu_rt_failures(void) {
    return load_relaxed(&failures);
}

void exit_status_forked(void) {
    failures = 0;
}

static bool changes(int status) {
    store_release(&registered, false);
    const unsigned count = mgpu_rt_failures();
    if (status != EXIT_SUCCESS || !count)
        return false;
    fprintf(stderr,
            "mgpu_rt: %u call%s failed, so the exit status is 1 in place of 0 "
            "(MGPU_RT_ERRORS=fail)\n",
            count, count == 1 ? "" : "s");
    return true;
}

/* glibc permits an exit handler to call exit: this call runs the remaining handlers, and the
 * process ends with the new status. */
static void at_exit(int status, void *nothing) {
    (void)nothing;
    if (changes(status))
        exit(EXIT_FAILURE);
}

/* glibc calls a handler of quick_exit with the status as the second argument. */
static void at_quick(void *nothing, int status) {
    (void)nothing;
    if (changes(status))
        quick_exit(EXIT_FAILURE);
}

/* Counts a failed call. If a call fails in an exit handler, this function registers a new handler,
 * which glibc calls next. So the failure still changes the exit status. */
void exit_status_fails(void) {
    fetch_add_relaxed(&failures, 1);
    if (!options.errors_fail || exchange_acq_rel(&registered, true))
        return;
    on_exit(at_exit, NULL);
    at_quick_exit((void (*)(void))at_quick);
}
