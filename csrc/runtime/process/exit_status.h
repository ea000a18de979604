/* Implements MGPU_RT_ERRORS=fail: a process in which a call has failed ends with status 1 instead
 * of 0. */
#ifndef MGPU_RT_EXIT_STATUS_H
#define MGPU_RT_EXIT_STATUS_H

/* Records that a call of this process failed. If the process then ends by exit, quick_exit or a
 * return from main, the library changes a status of 0 to 1. The library also writes a line to
 * stderr. A failure within an exit handler also counts. The library cannot change the status of a
 * process that ends by _exit, or that has started another program by exec. A forked child counts
 * only its own failures. Thread-safe; takes no lock of this library. */
void exit_status_fails(void);

/* Separates a forked child from its parent's failures; the child inherits the handlers. */
void exit_status_forked(void);

#endif
