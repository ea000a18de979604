/* An interpreter in the program, for nothing but MGPU_RT_RUNTIME: one that the program has, or one
 * that is started. Nothing here runs, and nothing of Python's is opened, where that is not set. */
#ifndef MGPU_RT_PYTHON_HOST_H
#define MGPU_RT_PYTHON_HOST_H

/* Has the class that `wanted` names made, which puts its methods in place of this library's
 * functions. Ends the program with status 1, and says why, if that cannot be: who asks for a
 * runtime does not want a run without. One thread at a time. */
void python_host(const char *wanted);

/* Gives the GIL away if the calling thread holds it; python_take_back takes it again. */
void *python_let_go(void);
void python_take_back(void *gil);

#endif
