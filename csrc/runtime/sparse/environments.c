#include "sparse/environments.h"
#include "driver/hip.h"
#include "process/state.h"
#include "proof.h"
#include "shared/caches.h"
#include "shared/reset.h"
#include "sparse/sparse.h"

#include <stdlib.h>

enum { MOST_ENVIRONMENTS = 16 };

/* Newest first; under tables_lock, as are `taken`, `stale` and `used`. */
static struct environment *environments;
static uint64_t environment_uses;

/* ---- the list ---- */

static void environment_unlink(const struct environment *environment) {
    struct environment **link = &environments;
    while (*link != environment)
        link = &(*link)->next;
    *link = environment->next;
}

static struct environment *find_for(int device, hipStream_t stream) {
    struct environment *found = environments;
    while (found && (DOUBT(environment_is_in_use, found->taken) || found->device != device ||
                     !PROOF(environment_is_of_the_stream, found->stream == stream)))
        found = found->next;
    if (!found)
        return NULL;
    found->taken = true;
    found->used = ++environment_uses;
    return found;
}

/* The one that was used least recently, of more than `keep`; out of the list. */
static struct environment *unlink_oldest(size_t keep) {
    struct environment *oldest = NULL;
    size_t count = 0;
    for (struct environment *each = environments; each; each = each->next) {
        count++;
        if (!each->taken && (!oldest || each->used < oldest->used))
            oldest = each;
    }
    if (!oldest || count <= keep)
        return NULL;
    environment_unlink(oldest);
    return oldest;
}

static struct environment *environment_take_known(int device, hipStream_t stream) {
    pthread_mutex_lock(&tables_lock);
    struct environment *found = find_for(device, stream);
    pthread_mutex_unlock(&tables_lock);
    return found;
}

static struct environment *environment_take_oldest(size_t keep) {
    pthread_mutex_lock(&tables_lock);
    struct environment *oldest = unlink_oldest(keep);
    pthread_mutex_unlock(&tables_lock);
    return oldest;
}

/* ---- making and destroying ---- */

/* Its stream may be gone by now. */
static void environment_destroy(struct environment *environment) {
    PROOF_STEP(stream_may_be_gone, (void)sparse.SetStream(environment->handle, NULL));
    (void)sparse.Destroy(environment->handle);
    free(environment);
}

static int destroy_beyond(size_t keep) {
    struct environment *oldest;
    int count = 0;
    while ((oldest = environment_take_oldest(keep))) {
        environment_destroy(oldest);
        count++;
    }
    return count;
}

static int create_handle(void **handle) {
    int status = sparse.Create(handle);
    if (status == SPARSE_NO_MEMORY && caches_make_room(hipErrorOutOfMemory))
        status = sparse.Create(handle);
    return status;
}

static struct environment *environment_new(int device, hipStream_t stream, int *status) {
    struct environment *environment = calloc(1, sizeof *environment);
    *status = environment ? create_handle(&environment->handle) : SPARSE_NO_MEMORY;
    register_exit();
    if (*status == SPARSE_SUCCESS)
        *status = sparse.SetStream(environment->handle, stream);
    if (*status != SPARSE_SUCCESS) {
        free(environment);
        return NULL;
    }
    device_watch(device);
    environment->device = device;
    environment->stream = stream;
    environment->taken = true;
    pthread_mutex_lock(&tables_lock);
    environment->used = ++environment_uses;
    environment->next = environments;
    environments = environment;
    pthread_mutex_unlock(&tables_lock);
    return environment;
}

struct environment *environment_take(int device, hipStream_t stream, int *status) {
    *status = SPARSE_SUCCESS;
    struct environment *known = PROOF(reset_before_environment_reuse, device_kept(device))
                                    ? environment_take_known(device, stream)
                                    : NULL;
    return known ? known : environment_new(device, stream, status);
}

void environment_give(struct environment *environment) {
    pthread_mutex_lock(&tables_lock);
    environment->taken = false;
    const bool stale = environment->stale;
    pthread_mutex_unlock(&tables_lock);
    if (stale)
        free(environment); /* it is in no list; its handle is the reset device's */
    else
        (void)destroy_beyond(MOST_ENVIRONMENTS);
}

/* ---- leaving ---- */

int environment_give_back(int device) {
    (void)device;
    return destroy_beyond(0);
}

/* Those that no call uses, as a chain: nothing is freed under a lock. Under tables_lock. */
static struct environment *take_stale(int device) {
    struct environment *stale = NULL;
    for (struct environment **link = &environments; *link;) {
        struct environment *each = *link;
        if (!of_device(device, each->device)) {
            link = &each->next;
            continue;
        }
        *link = each->next;
        each->stale = true;
        if (each->taken)
            continue;
        each->next = stale;
        stale = each;
    }
    return stale;
}

/* None of the device's is used again or destroyed. */
static void forget_environments(int device) {
    pthread_mutex_lock(&tables_lock);
    struct environment *stale = take_stale(device);
    pthread_mutex_unlock(&tables_lock);
    while (stale) {
        struct environment *each = stale;
        stale = each->next;
        free(each);
    }
}

const struct cache environment_cache = {
    .name = "environments", .trim = environment_give_back, .invalidate = forget_environments};
