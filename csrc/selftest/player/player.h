/* Plays scripts of calls. The program calls the mgpu* functions of the linked runtime, and a
 * foreign user calls HIP. tests/proofs/random writes the scripts and knows the right results. */
#ifndef SELFTEST_PLAYER_H
#define SELFTEST_PLAYER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MOST_ARGUMENTS = 8, MOST_OBJECTS = 512 };

struct step {
    void (*play)(const struct step *step);
    int thread;
    int number; /* the number of the step's line in the sequence */
    long long argument[MOST_ARGUMENTS];
};

/* Returns the function that plays the steps of this name; NULL if no step has this name. */
void (*step_find(const char *name))(const struct step *step);

/* Plays a thread's steps with numbers between two others again. */
void play_between(int thread, int first, int last);

/* Clears all objects of the last sequence. */
void steps_reset(void);

/* Writes one line of results for the step. */
void say(const struct step *step, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Returns an image by its number. */
const void *image_content(int number, size_t *bytes);

/* Opens HIP for the foreign user, at the foreign user's first call. */
void foreign_open(void);
void *foreign_symbol(const char *name);

/* Ends the program with a message: the script or the machine is at fault, and not the runtime. */
void give_up(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

#endif
