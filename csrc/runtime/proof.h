/* Names the conditions on which the library relies. tests/proofs/proofs.md says what each condition
 * proves, and what goes wrong without it.
 *
 *     PROOF(name, condition)              has to hold; without the proof it always does
 *     DOUBT(name, condition)              must not hold; without the proof it never does
 *     PROOF_STEP(name, statement)         without the proof it is left out
 *     PROOF_VALUE(name, value, without)   without the proof the value is `without`
 *
 * `make CFLAGS=-DWITHOUT=name` builds the library without one proof, and a test then fails
 * (tests/proofs/mutants). In every other build the macros expand to their arguments, and add
 * nothing. The built file contains the name once. The tests copy the file, and write the name of
 * another proof there.
 */
#ifndef MGPU_RT_PROOF_H
#define MGPU_RT_PROOF_H

#ifdef WITHOUT

#include <string.h>

#define PROOF_TEXT(name) #name
#define PROOF_NAME(name) PROOF_TEXT(name)
/* process/state.c, csrc/sparse/plugin.c; the tests know the size */
extern const char proof_left_out[64];
#define PROOF_STANDS(name) (strcmp(#name, proof_left_out) != 0)

#define PROOF(name, ...) (!PROOF_STANDS(name) || (__VA_ARGS__))
#define DOUBT(name, ...) (PROOF_STANDS(name) && (__VA_ARGS__))
#define PROOF_STEP(name, ...)                                                                      \
    do {                                                                                           \
        if (PROOF_STANDS(name)) {                                                                  \
            __VA_ARGS__;                                                                           \
        }                                                                                          \
    } while (0)
#define PROOF_VALUE(name, value, without) (PROOF_STANDS(name) ? (value) : (without))

#else

#define PROOF(name, ...) (__VA_ARGS__)
#define DOUBT(name, ...) (__VA_ARGS__)
#define PROOF_STEP(name, ...) __VA_ARGS__
#define PROOF_VALUE(name, value, without) (value)

#endif

#endif
