/* Starts the library in a process, and ends it. */
#ifndef MGPU_RT_LIFECYCLE_H
#define MGPU_RT_LIFECYCLE_H

/* Reads the options and opens HIP, once. No thread ever waits in this function for another thread.
 * Otherwise a thread that holds the loader's lock (a constructor under dlopen) and a thread that
 * waits for that lock could deadlock. */
void runtime_start(void);

#endif
