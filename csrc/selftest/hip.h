/* HIP's functions for the selftest's programs, called directly: MGPU_RT_HIP names the library. */
#ifndef SELFTEST_HIP_H
#define SELFTEST_HIP_H

#include <stddef.h>
#include <stdint.h>

/* Returns the address of a function of HIP, such as "hipMalloc"; NULL if this release lacks the
 * function. */
typedef void (*function)(void);
function hip_find(const char *name);

/* Returns the address of a required function of HIP. If the function is missing, ends the program
 * with a message. */
function hip_need(const char *name);

/* HIP(Name, parameters)(arguments) returns the error. */
#define HIP(name, ...) ((int (*)(__VA_ARGS__))hip_need("hip" #name))

/* Ends the program if HIP has refused a call. */
void hip_check(int error, const char *what);

void fail(const char *what, const char *which) __attribute__((noreturn));

/* Prints HIP's facts about itself and each device: lines of name, tab, value. */
void print_devices(void);

/* Prints the current device's memory in bytes, free and total. This function starts the device. */
void print_memory(void);

#endif
