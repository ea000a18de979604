/* Distributes the workgroups of a dispatch over the CPU cores.
 *
 * The thread that starts a dispatch always runs workgroups itself, so dispatches on different
 * queues progress without helpers. Helpers join only a long dispatch, because waking a helper costs
 * as much as a small kernel. A group that has used up its turn is parked, because the group may
 * wait for groups that must run first. */
#include "../settings.h"
#include "exec.h"

#include <stdlib.h>
#include <unistd.h>

enum {
    MAX_THREADS = 64,
    WORTH_HELP = 20000, /* helpers are woken only if more instructions than this remain */
    MAX_RESIDENT = 256, /* limit on the number of groups in memory */
};

static struct {
    pthread_once_t once;
    pthread_mutex_t lock;
    pthread_cond_t work;
    struct dispatch *dispatches; /* dispatches that need helpers */
    unsigned threads;
} pool = {
    .once = PTHREAD_ONCE_INIT, .lock = PTHREAD_MUTEX_INITIALIZER, .work = PTHREAD_COND_INITIALIZER};

static void fail(struct dispatch *d, const char *text) {
    if (!d->failed) {
        strncpy(d->fault->text, text, sizeof d->fault->text - 1);
        __atomic_store_n(&d->failed, true, __ATOMIC_RELAXED);
    }
}

/* Chooses a parked group or a new group to run; returns false if no group is left. The caller holds
 * the lock. */
static bool take(struct dispatch *d, struct group **g, uint64_t *number) {
    if (d->failed)
        return false;
    bool may_begin = d->next_group < d->group_count;
    /* New groups begin before parked groups continue, because a parked group may wait for a new
     * group. */
    if (may_begin && (d->resident < MAX_RESIDENT || !d->parked)) {
        *g = NULL;
        *number = d->next_group++;
        d->resident++;
        return true;
    }
    if (!d->parked)
        return false;
    *g = d->parked;
    d->parked = (*g)->next;
    if (!d->parked)
        d->parked_tail = &d->parked;
    return true;
}

/* Runs one group for one turn. Returns false if no group was left. */
static bool work(struct dispatch *d) {
    struct group *g;
    uint64_t number = 0;
    pthread_mutex_lock(&d->lock);
    bool any = take(d, &g, &number);
    pthread_mutex_unlock(&d->lock);
    if (!any)
        return false;
    if (!g)
        g = softgpu_group_begin(d, number);
    bool ended = !g || softgpu_group_run(g);
    if (ended && g)
        softgpu_group_end(g);
    pthread_mutex_lock(&d->lock);
    if (!g)
        fail(d, "no memory for a workgroup");
    if (ended) {
        d->done_count++;
        d->resident--;
    } else {
        g->next = NULL;
        *d->parked_tail = g;
        d->parked_tail = &g->next;
    }
    if (d->helpers && (!ended || d->done_count == d->group_count || d->failed))
        pthread_cond_broadcast(&d->changed);
    pthread_mutex_unlock(&d->lock);
    return true;
}

static bool has_work(struct dispatch *d) {
    pthread_mutex_lock(&d->lock);
    bool any = !d->failed && (d->next_group < d->group_count || d->parked);
    pthread_mutex_unlock(&d->lock);
    return any;
}

/* Returns the next dispatch that needs help, and moves the dispatch to the end of the list. */
static struct dispatch *choose(void) {
    for (struct dispatch **at = &pool.dispatches; *at; at = &(*at)->next) {
        struct dispatch *d = *at;
        if (!has_work(d))
            continue;
        *at = d->next;
        d->next = NULL;
        for (at = &pool.dispatches; *at; at = &(*at)->next)
            ;
        *at = d;
        return d;
    }
    return NULL;
}

static void *helper(void *unused) {
    (void)unused;
    pthread_mutex_lock(&pool.lock);
    for (;;) {
        struct dispatch *d = choose();
        if (!d) {
            pthread_cond_wait(&pool.work, &pool.lock);
            continue;
        }
        d->helpers++;
        pthread_mutex_unlock(&pool.lock);
        work(d);
        pthread_mutex_lock(&pool.lock);
        pthread_mutex_lock(&d->lock);
        d->helpers--;
        pthread_cond_broadcast(&d->changed);
        pthread_mutex_unlock(&d->lock);
    }
    return NULL;
}

/* Starts one thread fewer than the setting `threads` requests, or one thread fewer than there are
 * cores if the setting is absent. The threads end with the process. */
static void start_threads(void) {
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    char text[SOFTGPU_SETTING_SIZE];
    long wanted = softgpu_setting("threads", text) && atol(text) > 0 ? atol(text) : cores;
    wanted = wanted < MAX_THREADS ? wanted : MAX_THREADS;
    pthread_attr_t detached;
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    for (long n = 1; n < wanted; n++) {
        pthread_t thread;
        if (pthread_create(&thread, &detached, helper, NULL) == 0)
            pool.threads++;
    }
    pthread_attr_destroy(&detached);
}

static void publish(struct dispatch *d) {
    pthread_once(&pool.once, start_threads);
    if (!pool.threads)
        return;
    pthread_mutex_lock(&pool.lock);
    d->next = pool.dispatches;
    pool.dispatches = d;
    pthread_cond_broadcast(&pool.work);
    pthread_mutex_unlock(&pool.lock);
}

static void withdraw(struct dispatch *d) {
    pthread_mutex_lock(&pool.lock);
    struct dispatch **at = &pool.dispatches;
    while (*at && *at != d)
        at = &(*at)->next;
    if (*at)
        *at = d->next;
    pthread_mutex_unlock(&pool.lock);
    pthread_mutex_lock(&d->lock);
    while (d->helpers)
        pthread_cond_wait(&d->changed, &d->lock);
    pthread_mutex_unlock(&d->lock);
}

/* Estimates the remaining work from the instructions that the finished groups ran. */
static bool worth_help(const struct dispatch *d) {
    uint64_t left = d->group_count - d->next_group;
    if (!left && !d->parked)
        return false;
    uint64_t done = d->done_count ? d->done_count : 1;
    return d->parked || d->instructions / done * left > WORTH_HELP;
}

void softgpu_dispatch_run(struct dispatch *d) {
    bool published = false;
    d->parked_tail = &d->parked;
    for (;;) {
        if (work(d)) {
            if (!published && worth_help(d)) {
                publish(d);
                published = true;
            }
            continue;
        }
        pthread_mutex_lock(&d->lock);
        bool over = d->failed || d->done_count == d->group_count;
        /* Waits while helpers run the last groups, because a helper may park a group that needs
         * another turn. */
        if (!over && !d->parked && d->next_group == d->group_count)
            pthread_cond_wait(&d->changed, &d->lock);
        pthread_mutex_unlock(&d->lock);
        if (over)
            break;
    }
    if (published)
        withdraw(d);
    while (d->parked) { /* after a fault, discards the groups that are still parked */
        struct group *g = d->parked;
        d->parked = g->next;
        softgpu_group_end(g);
    }
}
