/* Injected errors and delays. */
#ifndef HIPSTUB_FAULTS_H
#define HIPSTUB_FAULTS_H

#include "../../../csrc/hip_abi.h"

/* Returns the error that this call of a function must answer, or hipSuccess. nth counts calls, from
 * 1. The caller has the stub's lock. */
hipError_t stub_fault(unsigned function, uint64_t nth);

/* Sleeps as long as the function is to be delayed. The caller does not have the lock. */
void stub_delay(unsigned function);

#endif
