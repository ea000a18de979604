/* Returns idle device memory to HIP for other processes on the device, and before other code of
 * this process allocates.
 *
 * A process that has had much memory has a thread. The thread returns memory that the program
 * has not used for a second, as long as no stream has pending work. If an allocation of another
 * process of this user fails, that process asks the thread, and the thread returns all idle memory
 * of the device. All functions are thread-safe. */
#ifndef MGPU_RT_NEIGHBOURS_H
#define MGPU_RT_NEIGHBOURS_H

/* Makes the caches report idle memory and shortages to this file; called at the first call. */
void neighbours_start(void);

/* Waits until the thread's current call of HIP has returned. The thread then makes no further call
 * of HIP, and ends. */
void neighbours_stop(void);

/* Clears the state in a forked child, which has no thread. */
void neighbours_forked(void);

#endif
