/* The life of the library in a process. */
#ifndef MGPU_RT_LIFECYCLE_H
#define MGPU_RT_LIFECYCLE_H

/* Reads the options and opens HIP, once. No thread ever waits in this function for another one.
 * Otherwise a thread that holds the loader's lock (a constructor under dlopen) and a thread that
 * wants it could block each other for ever. */
void runtime_start(void);

#endif
