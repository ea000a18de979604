/* HIP's functions for the selftest's programs, called directly: MGPU_RT_HIP names the library. */
#ifndef SELFTEST_HIP_H
#define SELFTEST_HIP_H

#include <stddef.h>
#include <stdint.h>

/* Returns the address of a function of HIP, named without "hip"; NULL if this release lacks it. */
typedef void (*function)(void);
function hip_find(const char *name);

/* Finds a required function; without it, ends the program with a message. */
function hip_need(const char *name);

/* HIP(Name, parameters)(arguments) returns the error. */
#define HIP(name, ...) ((int (*)(__VA_ARGS__))hip_need("hip" #name))

/* Ends the program if HIP has refused a call. */
void hip_check(int error, const char *what);

uint64_t now_ns(void);
void fail(const char *what, const char *which) __attribute__((noreturn));

/* Runs `program` as often as each line of the standard input says; prints the nanoseconds until the
 * device is idle. */
void serve_rounds(void (*program)(void));

/* Prepares a program of bench/programs and returns its handwritten loop; `words` are NAME
 * ITERATIONS IMAGE. */
void (*by_hand(int count, char **words))(void);

/* Prints the cost of each query that the library makes: lines of name, tab, nanoseconds. */
void print_questions(void);

/* Prints HIP's facts about itself and each device: lines of name, tab, value. */
void print_devices(void);

/* Prints the current device's memory in bytes, free and total. This function starts the device. */
void print_memory(void);

#endif
