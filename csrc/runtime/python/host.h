/* An interpreter in the program, only for MGPU_RT_RUNTIME: one that the program has, or one that is
 * started. If that option is not set, nothing here runs, and no file of Python's is opened. */
#ifndef MGPU_RT_PYTHON_HOST_H
#define MGPU_RT_PYTHON_HOST_H

/* Makes the class that `wanted` names, which puts its methods in place of this library's functions.
 * If that fails, ends the program with status 1 and the reason: users who ask for a runtime want no
 * run without it. One thread calls the function at a time. */
void python_host(const char *wanted);

/* Releases the GIL if the calling thread holds it; python_take_back takes it again. */
void *python_let_go(void);
void python_take_back(void *gil);

#endif
