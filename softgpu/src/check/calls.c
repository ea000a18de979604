/* The program's calls that load modules, allocate, free, copy and fill. The checker overrides them
 * by mgpu_rt_intercept, as any runtime of a user's may, so the library knows nothing of it. */
#include "hooks.h"
#include "images.h"
#include "report.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <string.h>

typedef void (*function)(void);

static struct {
    void *(*load)(void *, size_t);
    void *(*alloc)(uint64_t, void *, bool);
    void (*free)(void *, void *);
    void (*copy)(void *, void *, size_t, void *);
    void (*fill32)(void *, int, size_t, void *);
    void (*fill16)(void *, uint16_t, size_t, void *);
} native;

/* True for an address in this library or in the one that calls it. */
static bool is_between(void *address) {
    static void *own, *runtime;
    Dl_info found;
    if (!own && dladdr((void *)&native, &found))
        own = found.dli_fbase;
    if (!runtime && dladdr(*(void **)&native.free, &found))
        runtime = found.dli_fbase;
    return dladdr(address, &found) && (found.dli_fbase == own || found.dli_fbase == runtime);
}

static struct softgpu_place this_place(void) {
    enum { DEPTH = SOFTGPU_FRAMES + 8 };
    void *frames[DEPTH];
    struct softgpu_place place = {0};
    int count = backtrace(frames, DEPTH), first = 0;
    while (first < count && is_between(frames[first]))
        first++;
    for (int n = first; n < count && place.count < SOFTGPU_FRAMES; n++)
        place.frames[place.count++] = frames[n];
    return place;
}

void softgpu_check_registered(uint64_t va, uint64_t size) {
    softgpu_shadow_add(va, size, true, NULL);
}

void softgpu_check_unregistered(uint64_t va) {
    softgpu_shadow_end(va, NULL);
}

static void *load(void *image, size_t size) {
    softgpu_image_add(image);
    return native.load(image, size);
}

static void *alloc(uint64_t size, void *stream, bool shared) {
    void *memory = native.alloc(size, stream, shared);
    struct softgpu_place place = this_place();
    if (memory && size)
        softgpu_shadow_add((uintptr_t)memory, size, false, &place);
    return memory;
}

static void report_call(const char *kind, const char *call, uint64_t address, uint64_t bytes,
                        const char *access, const struct softgpu_place *place,
                        const struct softgpu_block *block) {
    struct softgpu_report report;
    const uint64_t key[] = {(uintptr_t)kind, (uintptr_t)call,
                            place->count ? (uintptr_t)place->frames[0] : 0};
    if (!softgpu_report_new(key, sizeof key / sizeof *key))
        return;
    softgpu_report_begin(&report, kind);
    softgpu_report_text(&report, "call", call);
    softgpu_report_place(&report, "place", place);
    if (access)
        softgpu_report_text(&report, "access", access);
    if (bytes)
        softgpu_report_number(&report, "bytes", bytes);
    softgpu_report_number(&report, "address", address);
    softgpu_report_block(&report, block);
    softgpu_report_end(&report);
}

/* HIP's free waits for the device, so kernels that were launched before may use the memory until it
 * returns. A wrong free is left out: HIP's record of the memory stays as it is. */
static void free_block(void *memory, void *stream) {
    struct softgpu_block block;
    struct softgpu_place place = this_place();
    enum softgpu_end end = softgpu_shadow_judge((uintptr_t)memory, &block);
    if (end == SOFTGPU_LIVE || end == SOFTGPU_NO_BLOCK) {
        native.free(memory, stream);
        softgpu_shadow_end((uintptr_t)memory, &place);
    } else {
        report_call(end == SOFTGPU_ENDED_BEFORE ? "double-free" : "free-inside", "mgpuMemFree",
                    (uintptr_t)memory, 0, NULL, &place, &block);
    }
}

/* The bytes at an address that a call may access. Memory of which nothing is known is the host's,
 * or HIP's: HIP judges it. */
static size_t usable(const char *call, const char *access, void *memory, size_t bytes) {
    uint64_t va = (uintptr_t)memory;
    struct softgpu_finding finding = softgpu_shadow_find(va, bytes);
    if (!bytes || finding.verdict == SOFTGPU_ALLOWED || finding.verdict == SOFTGPU_UNMAPPED)
        return bytes;
    struct softgpu_place place = this_place();
    const struct softgpu_block *block = &finding.block;
    const char *late = block->registered ? "use-after-unregister" : "use-after-free";
    report_call(finding.verdict == SOFTGPU_FREED ? late : "out-of-bounds", call, va, bytes, access,
                &place, block);
    bool inside = finding.verdict == SOFTGPU_OUTSIDE && va - block->va < block->size;
    return inside ? block->va + block->size - va : 0;
}

/* Leaves out the bytes that lie outside. */
static void copy(void *to, void *from, size_t bytes, void *stream) {
    size_t stores = usable("mgpuMemcpy", "store", to, bytes);
    size_t loads = usable("mgpuMemcpy", "load", from, bytes);
    size_t least = stores < loads ? stores : loads;
    if (least || !bytes)
        native.copy(to, from, least, stream);
}

static void fill32(void *to, int value, size_t count, void *stream) {
    size_t fits = usable("mgpuMemset32", "store", to, 4 * count) / 4;
    if (fits || !count)
        native.fill32(to, value, fits, stream);
}

static void fill16(void *to, uint16_t value, size_t count, void *stream) {
    size_t fits = usable("mgpuMemset16", "store", to, 2 * count) / 2;
    if (fits || !count)
        native.fill16(to, value, fits, stream);
}

/* The library opens HIP, which opens this one, at the program's start or at its first call: so this
 * comes before the first answer. */
__attribute__((constructor)) static void stand_before(void) {
    function (*find)(const char *) = NULL;
    int (*intercept)(const char *, function) = NULL;
    *(void **)&find = dlsym(RTLD_DEFAULT, "mgpu_rt_native");
    *(void **)&intercept = dlsym(RTLD_DEFAULT, "mgpu_rt_intercept");
    if (!find || !intercept)
        return;
    const struct {
        const char *name;
        void **native;
        function instead;
    } calls[] = {
        {"mgpuModuleLoad", (void **)&native.load, (function)load},
        {"mgpuMemAlloc", (void **)&native.alloc, (function)alloc},
        {"mgpuMemFree", (void **)&native.free, (function)free_block},
        {"mgpuMemcpy", (void **)&native.copy, (function)copy},
        {"mgpuMemset32", (void **)&native.fill32, (function)fill32},
        {"mgpuMemset16", (void **)&native.fill16, (function)fill16},
    };
    for (size_t n = 0; n < sizeof calls / sizeof *calls; n++) {
        function found = find(calls[n].name);
        memcpy(calls[n].native, &found, sizeof found);
        intercept(calls[n].name, calls[n].instead);
    }
    struct softgpu_report report;
    softgpu_report_begin(&report, "begun");
    softgpu_report_end(&report);
}
