/* Executes ROCr's own copy and fill kernels by memmove.
 *
 * ROCr contains three kernels as machine code. ROCr uses these kernels for device-to-device copies,
 * and to move each loaded code object. This file recognises the three kernels by a hash of their
 * code, and does their work natively. Loading a module then takes microseconds, as on hardware;
 * interpreting thousands of lanes would take milliseconds. The setting copies=kernels in
 * MGPU_RT_SOFTGPU makes the interpreter run the three kernels. */
#include "native_copy.h"
#include "check/hooks.h"
#include "settings.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { ENTRY_OFFSET = 16, MAX_WORDS = 124 };
enum kind { COPY_ALIGNED, COPY_MISALIGNED, FILL };

struct known {
    enum kind kind;
    unsigned words;
    uint64_t hash;
};

static const struct known kernels[] = {
    {FILL, 47, 0x3b00cdc7280cd708},
    {COPY_MISALIGNED, 103, 0xa1da43fa50106f1c},
    {COPY_ALIGNED, 124, 0x84b3374aa935fac9},
};

/* All three kernels begin with the two words of the instruction s_load_dwordx4 s[4:7], s[0:1], 0x0.
 * Few other kernels begin with this instruction, so few other kernels are hashed. */
static const uint32_t first_words[2] = {0xc00a0100, 0};

static bool enabled;

static void read_environment(void) {
    char copies[SOFTGPU_SETTING_SIZE];
    softgpu_setting("copies", copies);
    enabled = strcmp(copies, "kernels") != 0;
}

static bool is_enabled(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, read_environment);
    return enabled;
}

static char *host_bytes(uint64_t va, uint64_t size) {
    struct softgpu_range range;
    if (!softgpu_find_range(va, &range) || size > range.size - (va - range.va))
        return NULL;
    return range.host + (va - range.va);
}

/* Hashes words by FNV-1a. */
static uint64_t hash_words(const char *code, unsigned count) {
    uint64_t hash = 0xcbf29ce484222325;
    for (unsigned i = 0; i < count; i++) {
        uint32_t word;
        memcpy(&word, code + 4 * (size_t)i, sizeof word);
        hash = (hash ^ word) * 0x100000001b3;
    }
    return hash;
}

static const struct known *recognise(uint64_t kernel_object) {
    int64_t entry;
    const char *header = host_bytes(kernel_object + ENTRY_OFFSET, sizeof entry);
    if (!header)
        return NULL;
    memcpy(&entry, header, sizeof entry);
    const char *code = host_bytes(kernel_object + (uint64_t)entry, 4 * MAX_WORDS);
    if (!code || memcmp(code, first_words, sizeof first_words) != 0)
        return NULL;
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
        if (hash_words(code, kernels[i].words) == kernels[i].hash)
            return &kernels[i];
    return NULL;
}

/* The kernels split a copy into consecutive phases. The arguments contain the start of the first
 * phase and the end of the last phase. */
static bool copy(const uint64_t *arguments, int source_end) {
    uint64_t size = arguments[source_end] - arguments[0];
    const char *source = host_bytes(arguments[0], size);
    char *target = host_bytes(arguments[1], size);
    if (!source || !target)
        return false;
    memmove(target, source, size);
    CHECK_COPIED(arguments[1], arguments[0], size);
    return true;
}

static bool fill(const uint64_t *arguments) {
    uint64_t size = arguments[2] - arguments[0];
    uint32_t value = (uint32_t)arguments[3];
    char *target = host_bytes(arguments[0], size);
    for (uint64_t i = 0; target && i + 4 <= size; i += 4)
        memcpy(target + i, &value, 4);
    CHECK_FILLED(arguments[0], size);
    return target != NULL;
}

bool softgpu_native_copy(const struct softgpu_dispatch_packet *packet) {
    enum { ARGUMENTS = 10 };
    if (!is_enabled())
        return false;
    const struct known *kernel = recognise(packet->kernel_object);
    uint64_t arguments[ARGUMENTS];
    const char *bytes = kernel ? host_bytes(packet->kernarg_address, sizeof arguments) : NULL;
    if (!bytes)
        return false;
    memcpy(arguments, bytes, sizeof arguments);
    switch (kernel->kind) {
    case COPY_ALIGNED:
        return copy(arguments, 8);
    case COPY_MISALIGNED:
        return copy(arguments, 4);
    default:
        return fill(arguments);
    }
}
