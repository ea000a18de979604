/* MGPU_RT_ERRORS=fail: a process in which a call failed ends with status 1. */
#ifndef MGPU_RT_EXIT_STATUS_H
#define MGPU_RT_EXIT_STATUS_H

/* Notes that a call of this process failed. If its own status is 0, exit, quick_exit and a return
 * from main end it with 1, and a line on stderr tells so. A failure within an exit handler counts
 * too. A status given to _exit or by exec stays as it is. A child of fork answers for its own
 * failures only. Thread-safe; takes no lock of this library's. */
void exit_status_fails(void);

#endif
