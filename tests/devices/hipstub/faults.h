/* Injects errors and delays. */
#ifndef HIPSTUB_FAULTS_H
#define HIPSTUB_FAULTS_H

#include "../../../csrc/hip_abi.h"

/* Returns the injected error of this call of a function, or hipSuccess. nth is the number of the
 * call among the function's calls, from 1. The caller holds the stub's lock. */
hipError_t stub_fault(unsigned function, uint64_t nth);

/* Sleeps for the function's configured delay. The caller does not hold the lock. */
void stub_delay(unsigned function);

#endif
