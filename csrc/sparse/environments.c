#include "environments.h"
#include "process/state.h"
#include "proof.h"
#include "sparse.h"

#include <stdlib.h>

enum { MOST_ENVIRONMENTS = 16 };

/* The environment of the last call comes first; tables_lock guards the list, `taken` and `stale`.
 */
static struct environment *environments;

/* ---- the list ---- */

/* Under tables_lock. */
static void insert_taken(struct environment *environment) {
    environment->taken = true;
    environment->next = environments;
    environments = environment;
}

static bool serves(const struct environment *environment, int device, hipStream_t stream) {
    return PROOF(environment_is_idle, !environment->taken) && environment->device == device &&
           PROOF(environment_is_of_the_stream, environment->stream == stream);
}

static struct environment *take_idle_environment(int device, hipStream_t stream) {
    pthread_mutex_lock(host->tables_lock);
    struct environment **link = &environments, *found;
    while ((found = *link) && !serves(found, device, stream))
        link = &found->next;
    if (found) {
        *link = found->next;
        insert_taken(found);
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
        oldest = (*link)->taken ? oldest : link;
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
    (*host->register_exit)();
    if (*status == SPARSE_SUCCESS)
        *status = sparse.SetStream(environment->handle, stream);
    if (*status != SPARSE_SUCCESS) {
        free(environment);
        return NULL;
    }
    host->device_watch(device);
    environment->device = device;
    environment->stream = stream;
    pthread_mutex_lock(host->tables_lock);
    insert_taken(environment);
    pthread_mutex_unlock(host->tables_lock);
    return environment;
}

struct environment *environment_acquire(hipStream_t stream, int *status) {
    const int device = host->hip_current_device();
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
