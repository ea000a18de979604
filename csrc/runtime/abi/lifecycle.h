/* Starts the library in a process, and ends it. */
#ifndef MGPU_RT_LIFECYCLE_H
#define MGPU_RT_LIFECYCLE_H

/* Reads the options and opens HIP, once. No thread holds a lock of the library while it opens HIP.
 * Such a lock could deadlock with a constructor under dlopen, which holds the loader's lock and may
 * call this function. */
void runtime_start(void);

#endif
