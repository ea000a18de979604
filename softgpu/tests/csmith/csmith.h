/* Replaces Csmith's own csmith.h. With this header, a random program becomes a kernel or a CPU
 * program, and computes a checksum of the global variables. */
#ifndef CSMITH_H
#define CSMITH_H

#include <float.h>
#include <limits.h>
#include <stdint.h>

/* Csmith's programs can print intermediate checksums. The macros below remove such calls, because a
 * kernel prints nothing. */
#define printf(...) ((void)0)
#define platform_main_begin() ((void)0)
#define platform_main_end(value, flag) ((void)(flag))

/* Definitions that safe_math.h requires. Csmith's programs use safe_math.h for arithmetic without
 * undefined behaviour. */
#define STATIC static
#define UNDEFINED(value) (value)
#define LOG_INDEX
#define LOG_EXEC
#define FUNC_NAME(name) (safe_##name)
float fabsf(float);
double fabs(double);
#include "safe_math.h"

static uint64_t checksum = 0xcbf29ce484222325u;

/* Adds a whole value to the checksum (FNV-1a), so that any changed value changes the checksum. */
static void transparent_crc(uint64_t value, const char *name, int flag) {
    (void)name, (void)flag;
    checksum = (checksum ^ value) * 0x100000001b3u;
}

#define crc32_gentab() ((void)0)
#define crc32_context 0

static int program(void);

#ifdef __AMDGCN__
__attribute__((amdgpu_kernel)) void run(uint64_t *out) {
    program();
    *out = checksum;
}
#else
#undef printf
int printf(const char *, ...);

int main(void) {
    program();
    return printf("%llu\n", (unsigned long long)checksum) < 0;
}
#define printf(...) ((void)0)
#endif

#define main program

#endif
