/* HIP's reports of calls: hipRegisterTracerCallback, hipApiName and hsa_system_get_info, which
 * HIPSTUB_TELLS turns on. */
#ifndef HIPSTUB_TELL_H
#define HIPSTUB_TELL_H

#include "log.h"

#include <stdbool.h>

/* True if HIPSTUB_TELLS=1. */
extern bool stub_tells;

/* True if HIPSTUB_TELLS is set: the stub then plays ROCr, too. */
extern bool stub_rocr;

/* Reports a call that is about to run, if a callback is registered, and records that HIP is in use.
 */
void stub_tell(enum stub_function function);

#endif
