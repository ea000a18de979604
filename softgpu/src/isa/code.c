/* Decodes each function once, caches the result for later launches, and compares the function's
 * bytes before each use. The comparison is needed because a program may unload a module and load
 * another module at the same address. */
#include "exec.h"
#include "families.h"

#include <stdlib.h>

enum { BUCKETS = 256, CODES_KEPT = 1024, BRANCH_REACH = 1 << 15 };

static struct {
    pthread_mutex_t lock;
    struct code *buckets[BUCKETS];
    unsigned count;
} cache = {.lock = PTHREAD_MUTEX_INITIALIZER};

static unsigned bucket_of(uint64_t va) {
    return (unsigned)((va >> 8 ^ va >> 16) % BUCKETS);
}

static void free_code(struct code *c) {
    free(c->copy);
    free(c->insts);
    free(c->at);
    free(c);
}

static bool is_branch(const struct inst *i) {
    return i->row && i->encoding == E_SOPP && i->row->op >= 0x02 && i->row->op <= 0x09 &&
           i->row->op != 0x03;
}

/* Returns true for instructions after which execution never continues at the next instruction. */
static bool ends_run(const struct inst *i) {
    if (!i->row)
        return true;
    if (i->encoding == E_SOPP)
        return i->row->op == 0x01 || i->row->op == 0x02 || i->row->op == 0x1b;
    return i->encoding == E_SOP1 && i->row->op == 0x1d; /* s_setpc_b64 */
}

/* Decodes forward from the entry as far as execution can continue, so that data between functions
 * is never decoded as code. A branch to an address before the entry is resolved at run time. */
struct scan {
    const uint32_t *words;
    size_t available;
    enum target_mask target;
    uint8_t *wanted; /* words that a branch targets */
    size_t reach;    /* index after the last branch target */
    bool whole;      /* as in struct code */
    struct inst *insts;
    size_t count, capacity;
};

static bool scan_add(struct scan *s, const struct inst *i) {
    if (s->count == s->capacity) {
        size_t capacity = s->capacity ? 2 * s->capacity : 64;
        struct inst *grown = realloc(s->insts, capacity * sizeof *grown);
        if (!grown)
            return false;
        s->insts = grown;
        s->capacity = capacity;
    }
    s->insts[s->count++] = *i;
    return true;
}

static bool scan_once(struct scan *s, bool *again) {
    bool running = true;
    size_t word = 0;
    s->count = 0;
    s->whole = true;
    *again = false;
    while (running || word < s->reach) {
        if (!running && !s->wanted[word]) {
            word++;
            continue;
        }
        struct inst i;
        softgpu_decode(s->target, s->words + word, s->available - word, &i);
        i.offset = (uint32_t)(4 * word);
        if (!scan_add(s, &i))
            return false;
        if (is_branch(&i)) {
            int64_t to = (int64_t)word + 1 + i.imm;
            if (to >= 0 && (size_t)to < s->available) {
                *again |= to <= (int64_t)word && !s->wanted[to];
                s->wanted[to] = 1;
                s->reach = (size_t)to >= s->reach ? (size_t)to + 1 : s->reach;
            }
        }
        word += i.size;
        running = !ends_run(&i) && word < s->available;
        s->whole &= i.row && (running || ends_run(&i));
        if (!running) { /* adds an instruction, so that w->next has an address after the last
                           instruction */
            struct inst stop = {
                .size = 1, .run = softgpu_run_unknown, .offset = (uint32_t)(4 * word)};
            if (word < s->available)
                stop.words[0] = s->words[word];
            if (!(word < s->reach && s->wanted[word]) && !scan_add(s, &stop))
                return false;
        }
    }
    return true;
}

static struct code *build(struct scan *s, uint64_t va) {
    struct code *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    const struct inst *last = &s->insts[s->count - 1];
    c->va = va;
    c->target = s->target;
    c->words = last->offset / 4 + (last->row ? last->size : 0);
    c->whole = s->whole;
    c->insts = s->insts;
    c->count = (uint32_t)s->count;
    c->at = malloc((c->words + 1) * sizeof *c->at);
    c->copy = malloc((c->words + 1) * sizeof *c->copy);
    if (!c->at || !c->copy) {
        free_code(c);
        return NULL;
    }
    if (c->whole) /* otherwise the last word may lie behind the mapping */
        memcpy(c->copy, s->words, c->words * sizeof *c->copy);
    for (uint32_t n = 0; n <= c->words; n++)
        c->at[n] = -1;
    for (uint32_t n = 0; n < c->count; n++)
        if (c->insts[n].row || c->at[c->insts[n].offset / 4] < 0)
            c->at[c->insts[n].offset / 4] = (int32_t)n;
    for (uint32_t n = 0; n < c->count; n++) {
        struct inst *i = &c->insts[n];
        int64_t to = i->offset / 4 + 1 + (int64_t)i->imm;
        if (is_branch(i) && to >= 0 && to < c->words && c->at[to] >= 0)
            i->target = &c->insts[c->at[to]];
    }
    return c;
}

static struct code *decode(enum target_mask target, uint64_t va, const uint32_t *words,
                           size_t available) {
    struct scan s = {.words = words, .available = available, .target = target};
    struct code *c = NULL;
    bool again = true;
    s.wanted = calloc(available + 1, 1);
    while (s.wanted && again)
        if (!scan_once(&s, &again))
            break;
    if (s.wanted && s.count && !again)
        c = build(&s, va);
    if (!c)
        free(s.insts);
    free(s.wanted);
    return c;
}

/* Returns whether memory still has the function. An unknown instruction may be unknown because of a
 * word that is not compared, so each launch decodes its function again. */
static bool still_true(const struct code *c, const struct softgpu_range *r) {
    uint64_t offset = c->va - r->va;
    return c->whole && r->size - offset >= 4ull * c->words &&
           memcmp(c->copy, r->host + offset, 4ull * c->words) == 0;
}

/* Evicts decoded functions that no dispatch runs, to limit the cache's size. */
static void forget_unused(void) {
    for (unsigned b = 0; b < BUCKETS; b++)
        for (struct code **at = &cache.buckets[b]; *at;) {
            struct code *c = *at;
            if (c->users) {
                at = &c->next;
                continue;
            }
            *at = c->next;
            cache.count--;
            free_code(c);
        }
}

static struct code *find_cached(enum target_mask target, uint64_t va,
                                const struct softgpu_range *r) {
    for (struct code *c = cache.buckets[bucket_of(va)]; c; c = c->next)
        if (c->va == va && c->target == target && still_true(c, r))
            return c;
    return NULL;
}

static struct code *acquire(enum target_mask target, uint64_t va) {
    struct softgpu_range r;
    if (va & 3 || !softgpu_find_range(va, &r))
        return NULL;
    pthread_mutex_lock(&cache.lock);
    struct code *c = find_cached(target, va, &r);
    if (!c) {
        size_t available = (r.size - (va - r.va)) / 4;
        /* A function is shorter than the reach of a branch, although a mapping may be gigabytes
         * long. */
        available = available < 8 * BRANCH_REACH ? available : 8 * BRANCH_REACH;
        c = decode(target, va, (const uint32_t *)(void *)(r.host + (va - r.va)), available);
        if (c) {
            if (cache.count >= CODES_KEPT)
                forget_unused();
            c->next = cache.buckets[bucket_of(va)];
            cache.buckets[bucket_of(va)] = c;
            cache.count++;
        }
    }
    if (c)
        c->users++;
    pthread_mutex_unlock(&cache.lock);
    return c;
}

static const struct inst *inst_at(const struct code *c, uint64_t pc) {
    uint64_t word = (pc - c->va) / 4;
    if (pc < c->va || word >= c->words || pc & 3 || c->at[word] < 0)
        return NULL;
    const struct inst *i = &c->insts[c->at[word]];
    return i->row ? i : NULL;
}

static bool make_room(struct dispatch *d) {
    if (d->code_count < d->code_capacity)
        return true;
    unsigned capacity = d->code_capacity ? 2 * d->code_capacity : 16;
    struct code **grown = realloc(d->codes, capacity * sizeof(struct code *));
    if (!grown)
        return false;
    d->codes = grown;
    d->code_capacity = capacity;
    return true;
}

/* Finds the code at an address: in a function that this dispatch has already used, or in a newly
 * decoded function. */
const struct inst *softgpu_code_at(struct dispatch *d, uint64_t pc, const struct code **code) {
    const struct inst *found = NULL;
    pthread_mutex_lock(&d->lock);
    for (unsigned n = 0; n < d->code_count && !found; n++) {
        found = inst_at(d->codes[n], pc);
        *code = d->codes[n];
    }
    if (!found && make_room(d)) {
        struct code *c = acquire(d->target, pc);
        if (c) {
            d->codes[d->code_count++] = c;
            *code = c;
            found = &c->insts[0];
        }
    }
    pthread_mutex_unlock(&d->lock);
    return found;
}

void softgpu_code_release(struct dispatch *d) {
    pthread_mutex_lock(&cache.lock);
    for (unsigned n = 0; n < d->code_count; n++)
        d->codes[n]->users--;
    pthread_mutex_unlock(&cache.lock);
    free(d->codes);
}
