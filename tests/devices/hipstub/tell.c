#include "tell.h"

#include "hipstub.h"

#include <stdatomic.h>
#include <stdint.h>

bool stub_tells, stub_rocr;

typedef int tracer(int domain, uint32_t operation, void *data);

enum { HIP_API = 3, ROCR_NOT_STARTED = 0x100b };

static _Atomic(tracer *) registered;
static atomic_bool in_use;
static _Atomic uint64_t registrations;

void stub_tell(enum stub_function function) {
    if (!stub_tells)
        return;
    /* A plain store would write to a cache line that all threads read. */
    if (!atomic_load_explicit(&in_use, memory_order_relaxed))
        atomic_store(&in_use, true);
    tracer *const told = atomic_load_explicit(&registered, memory_order_acquire);
    if (told)
        told(HIP_API, function + 1, NULL);
}

void hipRegisterTracerCallback(tracer *callback);
void hipRegisterTracerCallback(tracer *callback) {
    atomic_fetch_add(&registrations, 1);
    atomic_store_explicit(&registered, callback, memory_order_release);
}

const char *hipApiName(uint32_t operation);
const char *hipApiName(uint32_t operation) {
    return operation ? stub_function_name(operation - 1) : "unknown";
}

int hsa_system_get_info(int attribute, void *value);
int hsa_system_get_info(int attribute, void *value) {
    (void)attribute;
    if (stub_rocr && !atomic_load(&in_use))
        return ROCR_NOT_STARTED;
    *(uint16_t *)value = 1;
    return 0;
}

uint64_t hipstub_registrations(void) {
    return atomic_load(&registrations);
}
