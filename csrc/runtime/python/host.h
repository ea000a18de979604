/* Runs a Python interpreter in the program if MGPU_RT_RUNTIME is set. The library uses the
 * interpreter that the program contains; if there is none, the library starts a new interpreter. If
 * MGPU_RT_RUNTIME is not set, no code here runs, and no file of Python is opened. */
#ifndef MGPU_RT_PYTHON_HOST_H
#define MGPU_RT_PYTHON_HOST_H

/* Creates the class that `wanted` names; the class's methods replace this library's functions. On
 * failure, prints the reason and ends the program with status 1. A user who requests a runtime does
 * not want the program to run without that runtime. One thread at a time calls the function. */
void python_host(const char *wanted);

/* Releases the GIL if the calling thread holds it; python_take_back acquires the GIL again. */
void *python_let_go(void);
void python_take_back(void *gil);

#endif
