#include "shared/caches.h"
#include "driver/hip.h"
#include "process/options.h"
#include "proof.h"
#include "shared/limits.h"

struct cache_limits cache_limits;
unsigned care_of_frees;

void limits_set(void) {
    cache_limits.module_bytes = options.module_limit_bytes;
    cache_limits.streams = (size_t)options.stream_limit_count;
}

static const struct cache *none;
static const struct cache *const *caches = &none;

void caches_set(const struct cache *const *table) {
    caches = table;
}

int caches_trim(void) {
    int count = 0;
    for (const struct cache *const *cache = caches; *cache; cache++)
        if ((*cache)->trim)
            count += (*cache)->trim(ALL_DEVICES);
    return count;
}

/* Held by a thread that has seen a reset. All that is entered after it has let go is of the time
 * after. */
static pthread_mutex_t forgetting = PTHREAD_MUTEX_INITIALIZER;

void caches_invalidate_if(int device, bool (*is_unseen)(void *), void *what) {
    PROOF_STEP(one_thread_forgets_at_a_time, pthread_mutex_lock(&forgetting));
    if (PROOF(reset_was_not_seen_before, is_unseen(what)))
        caches_invalidate(device);
    PROOF_STEP(one_thread_forgets_at_a_time, pthread_mutex_unlock(&forgetting));
}

void caches_forked(void) {
    forgetting = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}

void caches_invalidate(int device) {
    const struct cache *const *cache = caches;
    while (*cache)
        cache++;
    while (cache-- != caches)
        if ((*cache)->invalidate)
            (*cache)->invalidate(device);
}

void caches_thread_ends(struct thread *thread) {
    for (const struct cache *const *cache = caches; *cache; cache++)
        if ((*cache)->thread_ends)
            (*cache)->thread_ends(thread);
}

void caches_stream_begins(struct stream *stream) {
    for (const struct cache *const *cache = caches; *cache; cache++)
        if ((*cache)->stream_begins)
            (*cache)->stream_begins(stream);
}

void caches_stream_ends(struct stream *stream) {
    for (const struct cache *const *cache = caches; *cache; cache++)
        if ((*cache)->stream_ends)
            (*cache)->stream_ends(stream);
}

/* How HIP says that memory is short. A module that finds none is answered with 303 by 5.2.3 and
 * 5.7.1, and with 209 by 6.4.3 and 7.2.4. */
static bool is_shortage(hipError_t error) {
    return error == hipErrorOutOfMemory ||
           DOUBT(hip_5_found_no_memory_for_a_module, error == hipErrorSharedObjectInitFailed) ||
           DOUBT(hip_6_found_no_memory_for_a_module, error == hipErrorNoBinaryForGpu);
}

bool caches_make_room(hipError_t error) {
    if (!caches_on() || !PROOF(memory_was_short, is_shortage(error)))
        return false;
    limit_reached();
    (void)caches_trim();
    (void)hip.GetLastError(); /* of the call, or of what was asked meanwhile */
    return true;
}
