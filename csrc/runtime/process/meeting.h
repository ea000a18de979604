/* A file of shared memory at which the processes of one user meet.
 *
 * A process shows a fact about itself by a lock on a byte of the file. The kernel removes the locks
 * however the process ends. The numbers of the bytes are up to the caller. The file's only content
 * is a word that wakes the other processes, so a stale or damaged file is harmless. Without
 * /dev/shm, and in a program with more rights than its caller, there is no file, and no process is
 * seen. Processes in containers meet if they share /dev/shm. */
#ifndef MGPU_RT_MEETING_H
#define MGPU_RT_MEETING_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Opens the file. If `create` is false, opens the file only if another process has created it.
 * Returns false if there is no file. Call it from one thread at a time. */
bool meeting_open(bool create);

/* Locks or unlocks a byte for this process. */
void meeting_lock(off_t byte, bool locked);

/* Returns whether another process has locked one of these bytes (length 0: all from `begin` on). */
bool meeting_others_lock(off_t begin, off_t length);

/* Wakes the threads of all processes that wait. */
void meeting_ring(void);

/* Returns the number of rings so far. meeting_wait returns once this number is not `heard`, or the
 * milliseconds have passed. Both functions also work without a file. */
uint32_t meeting_heard(void);
void meeting_wait(uint32_t heard, uint64_t milliseconds);

/* Closes the file in a forked child: otherwise the child would keep the locks of a dead parent. */
void meeting_forked(void);

#endif
