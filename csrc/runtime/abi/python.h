/* Python in the program (csrc/python), if MGPU_RT_RUNTIME is set. Otherwise no code here runs, and
 * no file of Python is opened. The functions are those of struct python_plugin. */
#ifndef MGPU_RT_PYTHON_H
#define MGPU_RT_PYTHON_H

#include <stdbool.h>

void *python_let_go(void);
void python_take_back(void *gil);
bool python_create(const char *wanted);

#endif
