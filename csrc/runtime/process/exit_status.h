/* MGPU_RT_ERRORS=fail: if a call has failed in a process, the process ends with status 1 in place
 * of 0. */
#ifndef MGPU_RT_EXIT_STATUS_H
#define MGPU_RT_EXIT_STATUS_H

/* Records that a call of this process failed. Then exit, quick_exit and a return from main change a
 * status 0 to 1, and write a line to stderr. A failure within an exit handler also counts. The
 * library does not change a status that a program passes to _exit, nor the status of a program that
 * exec starts. A forked child counts only its own failures. Thread-safe; takes no lock of this
 * library. */
void exit_status_fails(void);

/* Returns the number of this process's failed calls, for each value of MGPU_RT_ERRORS.
 * Thread-safe. */
unsigned exit_status_failures(void);

#endif
