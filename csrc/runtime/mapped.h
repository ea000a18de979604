/* What the loader has mapped into this process. */
#ifndef MGPU_RT_MAPPED_H
#define MGPU_RT_MAPPED_H

#include <stdbool.h>
#include <stddef.h>

/* A handle (as of dlopen) on the first mapped library whose file name begins with `prefix`, or
 * NULL. Finds libraries opened with RTLD_LOCAL too, which dlsym(RTLD_DEFAULT) does not. Its path
 * goes to `path`. */
void *mapped_library(const char *prefix, char *path, size_t size);

/* The directory that holds the folder lib/ this library lies in, without a slash at the end: the
 * one above build/ in a checkout, site-packages in an installed package. False if not known. */
bool mapped_home(char *path, size_t size);

#endif
