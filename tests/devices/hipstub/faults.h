/* Injects errors and delays. */
#ifndef HIPSTUB_FAULTS_H
#define HIPSTUB_FAULTS_H

#include "../../../csrc/hip_abi.h"

/* Returns the error to inject into the nth call of a function, or hipSuccess. The first call has
 * the number 1. The caller holds the stub's lock. */
hipError_t stub_fault(unsigned function, uint64_t nth);

/* Sleeps for the function's configured delay. The caller must not hold the lock. */
void stub_delay(unsigned function);

#endif
