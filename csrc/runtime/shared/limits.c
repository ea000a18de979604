#include "shared/limits.h"
#include "process/options.h"

struct cache_limits cache_limits;
unsigned care_of_frees;

void limits_set(void) {
    cache_limits.module_bytes = options.module_limit_bytes;
    cache_limits.streams = (size_t)options.stream_limit_count;
}
