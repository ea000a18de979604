/* Steps whose calls fail, because HIP refuses the call. */
#include "steps.h"

#include <string.h>

/* ---- calls that HIP refuses ---- */

enum refused { NO_BLOCK, NO_MODULE, NO_FUNCTION, NO_STREAM, NO_EVENT, NO_FILL, NO_RECORD };

/* For each kind of fault, the text that makes every call of a function of the stub fail. */
static const char *const faults[] = {
    [NO_BLOCK] = "hipMalloc:*:2",
    [NO_MODULE] = "hipModuleLoadData:*:2",
    [NO_FUNCTION] = "hipModuleGetFunction:*:2",
    [NO_STREAM] = "hipStreamCreate:*:2,hipStreamCreateWithFlags:*:2",
    [NO_EVENT] = "hipEventCreateWithFlags:*:2",
    [NO_FILL] = "hipMemsetD32Async:*:2",
    [NO_RECORD] = "hipEventRecord:*:2",
};

static void set_fault(const char *text) {
    int (*set)(const char *);
    *(void **)&set = foreign_symbol("hipstub_set_fault");
    if (set == NULL || set(text) != 0)
        give_up("the stub of HIP does not know how to fail: %s", text);
}

/* Returns the requested memory, or NULL if the call failed. The caller decides whether to free the
 * memory. */
static void *ask_for(const struct step *step) {
    size_t bytes;
    const void *image;
    switch (ARGUMENT(0)) {
    case NO_BLOCK:
        return mgpuMemAlloc((uint64_t)ARGUMENT(3), STREAM(2), false);
    case NO_MODULE:
        image = image_content((int)ARGUMENT(1), &bytes);
        return mgpuModuleLoad((void *)(uintptr_t)image, bytes);
    case NO_FUNCTION:
        return mgpuModuleGetFunction(MODULE(1), "mix");
    case NO_STREAM:
        return mgpuStreamCreate();
    case NO_EVENT:
        return mgpuEventCreate();
    case NO_FILL:
        mgpuMemset32(BUFFER(1), 0, 0, STREAM(2));
        return NULL;
    default:
        mgpuEventRecord(EVENT(1), STREAM(2));
        return NULL;
    }
}

static void give_back(const struct step *step, void *thing) {
    if (thing == NULL)
        return;
    if (ARGUMENT(0) == NO_BLOCK)
        mgpuMemFree(thing, STREAM(2));
    else if (ARGUMENT(0) == NO_MODULE)
        mgpuModuleUnload(thing);
    else if (ARGUMENT(0) == NO_STREAM)
        mgpuStreamDestroy(thing);
    else if (ARGUMENT(0) == NO_EVENT)
        mgpuEventDestroy(thing);
}

/* refused KIND OBJECT STREAM BYTES: prints what the call returned, and the thread's last error. If
 * the runtime has an idle object of this kind, the runtime may return this object without a call to
 * HIP (sequences.py). */
static void play_refused(const struct step *step) {
    HIP(hipGetLastError, void)();
    set_fault(faults[ARGUMENT(0)]);
    void *thing = ask_for(step);
    set_fault("");
    const int error = HIP(hipGetLastError, void)();
    say(step, "%s %d", thing != NULL ? "had" : "refused", error);
    give_back(step, thing);
}

/* hoard STREAM BYTES: the foreign user allocates all of the device's memory; then the program tries
 * to allocate BYTES bytes, and all memory is freed */
static void play_hoard(const struct step *step) {
    enum { MOST = 4096 };
    void *hoard[MOST];
    size_t count = 0;
    for (size_t bytes = (size_t)1 << 24; bytes >= 256; bytes /= 2)
        while (count < MOST && HIP(hipMalloc, void **, size_t)(&hoard[count], bytes) == 0)
            ++count;
    HIP(hipGetLastError, void)();
    void *thing = mgpuMemAlloc((uint64_t)ARGUMENT(1), STREAM(0), false);
    const int error = HIP(hipGetLastError, void)();
    say(step, "%s %d", thing != NULL ? "had" : "refused", error);
    while (count > 0)
        check(step, HIP(hipFree, void *)(hoard[--count]));
    if (thing != NULL)
        mgpuMemFree(thing, STREAM(0));
}

/* attributes BUFFER: prints what HIP tells the foreign user of an address */
static void play_attributes(const struct step *step) {
    int attributes[64] = {0}; /* HIP's struct begins with the kind of memory */
    HIP(hipGetLastError, void)();
    const int error = HIP(hipPointerGetAttributes, void *, const void *)(attributes, BUFFER(0));
    HIP(hipGetLastError, void)();
    say(step, "%d %d", error, error == 0 ? attributes[0] : 0);
}

/* misuse: prints how often the stub has detected a use of dead handles or freed memory */
static void play_misuse(const struct step *step) {
    uint64_t (*misuse)(void);
    *(void **)&misuse = foreign_symbol("hipstub_misuse");
    static uint64_t before;
    if (misuse == NULL)
        return;
    const uint64_t now = misuse();
    if (now != before)
        say(step, "misuse %llu", (unsigned long long)(now - before));
    before = now;
}

/* ---- the steps ---- */

const struct step_kind fault_steps[] = {
    {"refused", play_refused}, {"hoard", play_hoard}, {"attributes", play_attributes},
    {"misuse", play_misuse},   {NULL, NULL},
};

const struct step_kind *const more_steps[] = {fault_steps, limit_steps, replay_steps, error_steps,
                                              NULL};
