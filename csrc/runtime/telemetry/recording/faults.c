#include "driver/hip.h"
#include "modules/image/metadata.h"
#include "process/mapped.h"
#include "telemetry/keys.h"
#include "telemetry/recording/recorder.h"
#include "telemetry/trace.h"

#include <dlfcn.h>
#include <string.h>

/* ---- which arguments of a kernel may be pointers ---- */

enum { ARGUMENTS = 64, LEAST_ADDRESS = 1 << 16 };

/* A row for each kernel, found by the kernel's key in the counters. If bit i of a word is set,
 * argument i has 8 bytes. */
static struct {
    uint64_t keys[KERNELS], words[KERNELS];
} known;

uint64_t faults_kernel_key(uint64_t image, const char *name, size_t length) {
    uint64_t key = UINT64_C(0xCBF29CE484222325) ^ image; /* FNV-1a */
    for (size_t i = 0; i < length; i++)
        key = (key ^ (unsigned char)name[i]) * UINT64_C(0x100000001B3);
    return key ? key : 1;
}

static void know(uint64_t key, uint64_t words) {
    bool fresh;
    const size_t row = key_enter(known.keys, KERNELS, key, &fresh);
    if (row < KERNELS)
        store_relaxed(&known.words[row], words);
}

void faults_know_image(const struct image *image) {
    struct rest rest = metadata_in(image);
    struct metadata_kernel kernel;
    while (metadata_next_kernel(&rest, &kernel))
        know(faults_kernel_key(image->hash, kernel.name, kernel.length), kernel.words);
}

static uint64_t words_of_cuda(hipFunction_t kernel) {
    uint64_t words = 0;
    for (unsigned i = 0; i < ARGUMENTS; i++) {
        const size_t bytes = cuda.parameter_bytes(kernel, i);
        if (!bytes)
            break;
        if (bytes == sizeof(void *))
            words |= UINT64_C(1) << i;
    }
    return words;
}

void faults_know_kernel(hipFunction_t kernel, uint64_t key) {
    if (cuda_present())
        know(key, words_of_cuda(kernel));
}

static uint64_t words_of(size_t row) {
    const size_t said =
        row < KERNELS ? key_find(known.keys, KERNELS, counts.kernel_keys[row]) : KERNELS;
    return said < KERNELS ? load_relaxed(&known.words[said]) : 0;
}

/* ---- the addresses that a call passes ---- */

static void trace_pointer(const struct call *call, size_t row, const void *address) {
    trace_add(&(struct trace_event){.kind = TRACE_POINTER,
                                    .function = (uint16_t)call->function,
                                    .begin = call->begin,
                                    .address = (uintptr_t)address,
                                    .kernel = (uint16_t)row,
                                    .stream = (uintptr_t)call->stream});
}

enum memory_life faults_memory_life(enum abi_index function) {
    switch (function) {
    case ABI_mgpuMemAlloc:
    case ABI_mgpuMemHostRegister:
    case ABI_mgpuMemHostRegisterMemRef:
        return MEMORY_BEGINS;
    case ABI_mgpuMemFree:
    case ABI_mgpuMemHostUnregister:
    case ABI_mgpuMemHostUnregisterMemRef:
        return MEMORY_ENDS;
    default:
        return MEMORY_AS_BEFORE;
    }
}

/* A memref is passed as two pointers, which are mostly equal, an offset, sizes and strides. */
void faults_trace(const struct call *call, size_t row) {
    const uint64_t words = call->params ? words_of(row) : 0;
    const char *value, *last = NULL;
    for (unsigned i = 0; i < ARGUMENTS && words >> i; i++) {
        if (!(words >> i & 1))
            continue;
        memcpy(&value, call->params[i], sizeof value);
        if ((uintptr_t)value >= LEAST_ADDRESS && value != last)
            trace_pointer(call, row, value);
        last = value;
    }
    if (call->to && faults_memory_life(call->function) == MEMORY_AS_BEFORE)
        trace_pointer(call, TRACE_NO_KERNEL, call->to);
    if (call->from)
        trace_pointer(call, TRACE_NO_KERNEL, call->from);
}

/* ---- ROCr's word of a fault ---- */

/* ROCr's hsa_amd_event_t (hsa_ext_amd.h), as far as it describes a memory fault. */
struct event {
    int kind; /* 0: a memory fault */
    uint64_t agent, address;
};
typedef int event_handler(const struct event *event, void *data);

/* ROCr calls the handler on a thread of its own. A handler that answers an error leaves the fault
 * to ROCr, which prints its line and ends the process. */
static int note_fault(const struct event *event, void *data) {
    const int not_handled = 0x1000;
    (void)data;
    if (event->kind != 0)
        return not_handled;
    store_relaxed(&counts.process.fault, event->address);
    store_release(&counts.process.faults, 1);
    return not_handled;
}

void faults_watch(void) {
    static bool watched;
    char path[PATH_MAX];
    int (*watch)(event_handler *handler, void *data);
    void *library = watched ? NULL : mapped_library("libhsa-runtime64.so", path, sizeof path);
    if (!library)
        return;
    *(void **)&watch = dlsym(library, "hsa_amd_register_system_event_handler");
    watched = watch && watch(note_fault, NULL) == 0;
    dlclose(library); /* HIP has opened ROCr */
}
