#include "environments.h"
#include "process/state.h"
#include "proof.h"
#include "sparse.h"

#include <stdlib.h>

enum { MOST_ENVIRONMENTS = 16 };

/* The newest environment comes first; tables_lock guards the list, `taken`, `stale` and `used`. */
static struct environment *environments;
static uint64_t environment_uses;

/* ---- the list ---- */

static struct environment *take_idle_environment(int device, hipStream_t stream) {
    pthread_mutex_lock(host->tables_lock);
    struct environment *found = environments;
    while (found && (DOUBT(environment_is_in_use, found->taken) || found->device != device ||
                     !PROOF(environment_is_of_the_stream, found->stream == stream)))
        found = found->next;
    if (found) {
        found->taken = true;
        found->used = ++environment_uses;
    }
    pthread_mutex_unlock(host->tables_lock);
    return found;
}

/* Removes and returns the least recently used environment that no call is using. Returns NULL if
 * the list has at most `most` environments, or if calls use all environments. */
static struct environment *remove_oldest(size_t most) {
    struct environment **oldest = NULL, *removed = NULL;
    size_t count = 0;
    pthread_mutex_lock(host->tables_lock);
    for (struct environment **link = &environments; *link; link = &(*link)->next) {
        count++;
        if (!(*link)->taken && (!oldest || (*link)->used < (*oldest)->used))
            oldest = link;
    }
    if (oldest && count > most) {
        removed = *oldest;
        *oldest = removed->next;
    }
    pthread_mutex_unlock(host->tables_lock);
    return removed;
}

/* ---- making and destroying ---- */

static int destroy_beyond(size_t most) {
    struct environment *oldest;
    int count = 0;
    for (; (oldest = remove_oldest(most)); count++) {
        PROOF_STEP(stream_may_be_gone, (void)sparse.SetStream(oldest->handle, NULL));
        (void)sparse.Destroy(oldest->handle);
        free(oldest);
    }
    return count;
}

static struct environment *environment_new(int device, hipStream_t stream, int *status) {
    struct environment *environment = calloc(1, sizeof *environment);
    *status = environment ? SPARSE_RETRY(sparse.Create(&environment->handle)) : SPARSE_NO_MEMORY;
    host->register_exit();
    if (*status == SPARSE_SUCCESS)
        *status = sparse.SetStream(environment->handle, stream);
    if (*status != SPARSE_SUCCESS) {
        free(environment);
        return NULL;
    }
    host->device_watch(device);
    environment->device = device;
    environment->stream = stream;
    environment->taken = true;
    pthread_mutex_lock(host->tables_lock);
    environment->used = ++environment_uses;
    environment->next = environments;
    environments = environment;
    pthread_mutex_unlock(host->tables_lock);
    return environment;
}

struct environment *environment_acquire(int device, hipStream_t stream, int *status) {
    *status = SPARSE_SUCCESS;
    struct environment *known = PROOF(reset_before_environment_reuse, host->device_kept(device))
                                    ? take_idle_environment(device, stream)
                                    : NULL;
    return known ? known : environment_new(device, stream, status);
}

void environment_release(struct environment *environment) {
    pthread_mutex_lock(host->tables_lock);
    environment->taken = false;
    const bool stale = environment->stale;
    pthread_mutex_unlock(host->tables_lock);
    if (stale)
        free(environment); /* the environment is in no list; its handle belongs to the device that
                            * was reset */
    else
        (void)destroy_beyond(MOST_ENVIRONMENTS);
}

/* ---- leaving ---- */

int environment_trim(int device) {
    (void)device;
    return destroy_beyond(0);
}

/* Ensures that no environment of the device is used again or destroyed. Environments that no call
 * uses are freed after the lock is released. */
void environment_invalidate(int device) {
    struct environment *stale = NULL;
    pthread_mutex_lock(host->tables_lock);
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
    pthread_mutex_unlock(host->tables_lock);
    while (stale) {
        struct environment *each = stale;
        stale = each->next;
        free(each);
    }
}
