#include "memory/pinned_limit.h"
#include "memory/page_watch.h"
#include "process/options.h"

#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

/* Returns whether the kernel counts HIP's pinned memory against RLIMIT_MEMLOCK. */
static bool pins_count_as_locked(void) {
    char line[128];
    unsigned long kilobytes = 0;
    FILE *status = fopen("/proc/self/status", "re");
    while (status && fgets(line, sizeof line, status) &&
           sscanf(line, "VmPin: %lu", &kilobytes) != 1)
        continue;
    if (status)
        fclose(status);
    return kilobytes != 0;
}

size_t most_pinned_bytes(void) {
    struct rlimit locked;
    size_t most = options.memory_limit_bytes;
    if (!most)
        most = (size_t)((double)sysconf(_SC_PHYS_PAGES) * (double)page_bytes *
                        options.memory_limit_fraction);
    if (getrlimit(RLIMIT_MEMLOCK, &locked) == 0 && locked.rlim_cur / 2 < most &&
        pins_count_as_locked())
        most = locked.rlim_cur / 2;
    return most;
}
