/* What the tests' C programs include first: the mgpu* functions, some functions of HIP and of its
 * stub, and the C library. A program that calls a function of HIP by its prototype is linked with
 * the stub; HIP(name, parameters) finds a function of any HIP. */
#ifndef TESTS_PROGRAM_H
#define TESTS_PROGRAM_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "../../../csrc/selftest/player/abi.h"
#include "../../devices/hipstub/hipstub.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <malloc.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

int hipDeviceReset(void);
int hipGetDevice(int *device);
int hipHostMalloc(void **memory, size_t bytes, unsigned flags);
int hipMemsetD32Async(void *to, int value, size_t count, void *stream);
int hipModuleUnload(void *module);
int hipSetDevice(int device);
int hipStreamQuery(void *stream);

#define HIP(name, ...) ((int (*)(__VA_ARGS__))program_hip(#name))

static inline void (*program_hip(const char *name))(void) {
    void (*found)(void);
    *(void **)&found = dlsym(dlopen(getenv("MGPU_RT_HIP"), RTLD_NOW), name);
    return found;
}

#endif
