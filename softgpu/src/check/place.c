#include "place.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <stdbool.h>
#include <stddef.h>

static void *base_of(void *address) {
    Dl_info found;
    return address && dladdr(address, &found) ? found.dli_fbase : NULL;
}

/* Returns true for an address in this library or in the mgpu_rt library. */
static bool is_between(void *address) {
    static void *own, *runtime;
    if (!own) {
        runtime = base_of(dlsym(RTLD_DEFAULT, "mgpu_rt_native"));
        own = base_of((void *)&own);
    }
    void *base = base_of(address);
    return base && (base == own || base == runtime);
}

struct softgpu_place softgpu_this_place(void) {
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
