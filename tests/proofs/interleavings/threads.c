#include "threads.h"

#include "mgpu.h"
#include "shared/thread.h"

#include <pthread.h>
#include <string.h>

enum {
    STACK = 1 << 16,
    LINE = 64,
    MOST_LINES = 4096,
    LINE_SLOTS = 4 * MOST_LINES,
    ARENA = 1 << 18
};

struct machine now;
const struct scenario *scenario;
bool exploring, found_shared;

static char stacks[THREADS][STACK] __attribute__((aligned(64)));
static char arenas[THREADS + 1][ARENA] __attribute__((aligned(64)));
static int self = -1;
static bool started, pruned; /* started: the state includes all writes after the start */
static char *scheduler_stack;

static struct line {
    char *at;
    char before[LINE];
} lines[MOST_LINES];
static size_t line_count;
static uint32_t line_slots[LINE_SLOTS]; /* index + 1; 0: none */

static void keep_line(uintptr_t at) {
    size_t slot = (at / LINE * UINT64_C(0x9E3779B97F4A7C15)) >> 50;
    for (; line_slots[slot]; slot = (slot + 1) % LINE_SLOTS)
        if (lines[line_slots[slot] - 1].at == (char *)at)
            return;
    if (line_count == MOST_LINES)
        explore_fail("the explorer has room for no more memory");
    __real_memcpy(lines[line_count].before, (char *)at, LINE);
    lines[line_count].at = (char *)at;
    line_slots[slot] = (uint32_t)++line_count;
}

static void keep_lines(const void *at, size_t bytes) {
    const uintptr_t begin = (uintptr_t)at / LINE * LINE, end = (uintptr_t)at + bytes;
    for (uintptr_t line = begin; line < end; line += LINE)
        keep_line(line);
}

/* The variable that each thread has of its own; the threads share one memory, so its content
 * changes when the scheduler switches. */
static char *own_variable;
static size_t own_bytes;

void explore_own(void *variable, size_t bytes) {
    explore_require(bytes <= sizeof now.threads[0].own, "a thread's own variable has room");
    own_variable = variable;
    own_bytes = bytes;
}

/* Returns whether the scheduler ignores an access, because the access is to a thread's stack, to
 * the thread's own variable, or to the program's `world`. */
static bool is_apart(const void *at) {
    const char *byte = at, *programs = (const char *)&world;
    return (byte >= stacks[0] && byte < stacks[THREADS]) ||
           (byte >= programs && byte < programs + world_size) ||
           (byte >= own_variable && byte < own_variable + own_bytes);
}

static size_t stack_bytes(int thread) {
    return now.threads[thread].status == OVER
               ? 0
               : (size_t)(stacks[thread] + STACK - now.threads[thread].stack);
}

static char *put(char *to, const void *from, size_t bytes) {
    return (char *)__real_memcpy(to, from, bytes) + bytes;
}

struct saved *threads_save(void) {
    size_t bytes = sizeof now + world_size + line_count * LINE;
    for (int thread = 0; thread < THREADS; thread++)
        bytes += stack_bytes(thread);
    struct saved *saved = __real_malloc(sizeof *saved + bytes);
    saved->bytes = bytes;
    saved->lines = line_count;
    char *to = put(put(saved->content, &now, sizeof now), &world, world_size);
    for (int thread = 0; thread < THREADS; thread++)
        to = put(to, stacks[thread] + STACK - stack_bytes(thread), stack_bytes(thread));
    for (size_t line = 0; line < line_count; line++)
        to = put(to, lines[line].at, LINE);
    return saved;
}

static const char *take(void *to, const char *from, size_t bytes) {
    __real_memcpy(to, from, bytes);
    return from + bytes;
}

void threads_restore(const struct saved *saved) {
    const char *from = take(&world, take(&now, saved->content, sizeof now), world_size);
    for (int thread = 0; thread < THREADS; thread++)
        from = take(stacks[thread] + STACK - stack_bytes(thread), from, stack_bytes(thread));
    for (size_t line = 0; line < line_count; line++)
        if (line < saved->lines)
            from = take(lines[line].at, from, LINE);
        else
            __real_memcpy(lines[line].at, lines[line].before, LINE);
}

static void mix(struct name *name, const char *bytes, size_t count) {
    for (; count >= 8; count -= 8, bytes += 8) {
        uint64_t word;
        __real_memcpy(&word, bytes, 8);
        const __uint128_t product = (__uint128_t)(name->words[0] ^ word) * 0x9E3779B97F4A7C15u;
        name->words[0] = (uint64_t)product ^ (name->words[1] += (uint64_t)(product >> 64) + word);
    }
}

struct name threads_name(const struct saved *saved) {
    struct name name = {{0x243F6A8885A308D3u, 0x13198A2E03707344u}};
    const size_t fixed = saved->bytes - saved->lines * LINE;
    mix(&name, saved->content, fixed);
    const char *content = saved->content + fixed;
    /* The name of the state (a hash) ignores each cache line that still has its initial content. */
    for (uint64_t line = 0; line < saved->lines; line++, content += LINE)
        if (memcmp(content, lines[line].before, LINE) != 0) {
            mix(&name, (const char *)&line, sizeof line);
            mix(&name, content, LINE);
        }
    return name;
}

/* ---- coroutines ---- */

/* Saves a function's registers on the coroutine's stack, and switches to another coroutine. */
void explore_switch(char **save, char *load);
__asm__(".text\n.globl explore_switch\nexplore_switch:\n"
        "push %rbp\npush %rbx\npush %r12\npush %r13\npush %r14\npush %r15\n"
        "mov %rsp, (%rdi)\nmov %rsi, %rsp\n"
        "pop %r15\npop %r14\npop %r13\npop %r12\npop %rbx\npop %rbp\nret\n");

static void leave(int status) {
    now.threads[self].status = status;
    explore_switch(&now.threads[self].stack, scheduler_stack);
}

static void run_thread(void) {
    struct coroutine *own = &now.threads[self];
    while (own->left > 0) {
        own->choices = scenario->operations;
        leave(AT_OPERATION);
        own->left--;
        scenario->play(own->chosen);
    }
    leave(OVER);
}

bool threads_run(int thread) {
    self = thread;
    thread_self = now.threads[thread].block;
    pruned = false;
    if (own_bytes)
        __real_memcpy(own_variable, now.threads[thread].own, own_bytes);
    explore_switch(&scheduler_stack, now.threads[thread].stack);
    if (own_bytes)
        __real_memcpy(now.threads[thread].own, own_variable, own_bytes);
    self = -1;
    return !pruned;
}

static void make_thread(int thread, int operations) {
    struct coroutine *made = &now.threads[thread];
    uintptr_t *top = (uintptr_t *)(stacks[thread] + STACK) - 2;
    *top = (uintptr_t)run_thread;
    thread_self = NULL;
    made->block = thread_get();
    made->stack = (char *)(top - 6);
    made->left = operations;
    made->status = AT_START;
}

void threads_make(const int *operations) {
    for (int thread = 0; thread < THREADS; thread++)
        make_thread(thread, operations[thread]);
    started = true;
    for (int thread = 0; thread < THREADS; thread++)
        (void)threads_run(thread); /* runs the thread until its first operation */
    exploring = true;
}

int explore_self(void) {
    return self;
}

void explore_point(void) {
    if (exploring)
        leave(AT_ACCESS);
}

unsigned explore_choose(unsigned count) {
    if (!exploring)
        return 0;
    now.threads[self].choices = count;
    leave(AT_CHOICE);
    return now.threads[self].chosen;
}

unsigned explore_lone(void) {
    unsigned lone = 1;
    for (int thread = 0; thread < THREADS; thread++) {
        const struct coroutine *other = &now.threads[thread];
        if (thread != self && other->status != AT_OPERATION && other->status != OVER)
            return 0;
        lone += (unsigned)other->left;
    }
    return lone;
}

void explore_prune(void) {
    pruned = true;
    leave(OVER);
}

/* ---- what several threads use ----
 *
 * The scheduler can switch threads at each access to a shared word. A word is shared if several
 * threads access the word, at least one thread writes the word, and no common lock protects the
 * word. If a word turns out to be shared, the exploration restarts. */

static struct word {
    uintptr_t at; /* address / 8; 0: none */
    unsigned char readers, writers, locks;
    bool shared;
} words[1 << 16];

static struct word *word_of(uintptr_t at) {
    size_t slot = (at * UINT64_C(0x9E3779B97F4A7C15)) >> 48;
    while (words[slot].at && words[slot].at != at)
        slot = (slot + 1) % (sizeof words / sizeof *words);
    if (!words[slot].at)
        words[slot] = (struct word){.at = at, .locks = 0xFF};
    return &words[slot];
}

static bool is_shared(const void *at, size_t bytes, bool writes) {
    bool shared = false;
    for (uintptr_t i = (uintptr_t)at / 8; i <= ((uintptr_t)at + bytes - 1) / 8; i++) {
        struct word *word = word_of(i);
        *(writes ? &word->writers : &word->readers) |= (unsigned char)(1 << self);
        word->locks &= (unsigned char)now.threads[self].holds;
        const unsigned users = word->readers | word->writers;
        if (!word->shared && word->writers && (users & (users - 1)) && !word->locks)
            word->shared = found_shared = true;
        shared |= word->shared;
    }
    return shared;
}

static void note_access(const void *at, size_t bytes, bool writes) {
    if (!started || is_apart(at))
        return;
    if (writes)
        keep_lines(at, bytes);
    if (!exploring)
        return;
    if (is_shared(at, bytes, writes))
        leave(AT_ACCESS);
}

/* ---- what the compiler calls ---- */

#define PLAIN(bytes)                                                                               \
    void __tsan_read##bytes(void *at) {                                                            \
        note_access(at, bytes, false);                                                             \
    }                                                                                              \
    void __tsan_write##bytes(void *at) {                                                           \
        note_access(at, bytes, true);                                                              \
    }                                                                                              \
    void __tsan_unaligned_read##bytes(void *at) {                                                  \
        note_access(at, bytes, false);                                                             \
    }                                                                                              \
    void __tsan_unaligned_write##bytes(void *at) {                                                 \
        note_access(at, bytes, true);                                                              \
    }
PLAIN(1)
PLAIN(2)
PLAIN(4)
PLAIN(8)
PLAIN(16)

void __tsan_read_range(void *at, size_t bytes) {
    note_access(at, bytes, false);
}
void __tsan_write_range(void *at, size_t bytes) {
    note_access(at, bytes, true);
}
void __tsan_init(void) {}
void __tsan_func_entry(void *caller) {
    (void)caller;
}
void __tsan_func_exit(void) {}
void __tsan_atomic_thread_fence(int order) {
    (void)order;
}

#define ATOMIC_CHANGE(bits, type, name, expression)                                                \
    type __tsan_atomic##bits##_##name(volatile type *at, type value, int order) {                  \
        (void)order;                                                                               \
        note_access((const void *)at, sizeof(type), true);                                         \
        const type before = *at;                                                                   \
        *at = (type)(expression);                                                                  \
        return before;                                                                             \
    }
#define ATOMIC(bits, type)                                                                         \
    type __tsan_atomic##bits##_load(const volatile type *at, int order) {                          \
        (void)order;                                                                               \
        note_access((const void *)at, sizeof(type), false);                                        \
        return *at;                                                                                \
    }                                                                                              \
    void __tsan_atomic##bits##_store(volatile type *at, type value, int order) {                   \
        (void)order;                                                                               \
        note_access((const void *)at, sizeof(type), true);                                         \
        *at = value;                                                                               \
    }                                                                                              \
    ATOMIC_CHANGE(bits, type, exchange, value)                                                     \
    ATOMIC_CHANGE(bits, type, fetch_add, before + value)                                           \
    ATOMIC_CHANGE(bits, type, fetch_sub, before - value)                                           \
    ATOMIC_CHANGE(bits, type, fetch_and, before &value)                                            \
    ATOMIC_CHANGE(bits, type, fetch_or, before | value)                                            \
    int __tsan_atomic##bits##_compare_exchange_strong(volatile type *at, type *expected,           \
                                                      type value, int order, int otherwise) {      \
        (void)order;                                                                               \
        (void)otherwise;                                                                           \
        note_access((const void *)at, sizeof(type), true);                                         \
        const type before = *at;                                                                   \
        const bool swaps = before == *expected;                                                    \
        *at = swaps ? value : before;                                                              \
        *expected = before;                                                                        \
        return swaps;                                                                              \
    }                                                                                              \
    int __tsan_atomic##bits##_compare_exchange_weak(volatile type *at, type *expected, type value, \
                                                    int order, int otherwise) {                    \
        return __tsan_atomic##bits##_compare_exchange_strong(at, expected, value, order,           \
                                                             otherwise);                           \
    }
ATOMIC(8, uint8_t)
ATOMIC(16, uint16_t)
ATOMIC(32, uint32_t)
ATOMIC(64, uint64_t)

/* ---- what the runtime calls ---- */

static pthread_mutex_t *locks[MOST_LOCKS];

static unsigned lock_number(pthread_mutex_t *lock) {
    unsigned number = 0;
    while (locks[number] && locks[number] != lock)
        if (++number == MOST_LOCKS)
            explore_fail("the explorer has room for no more locks");
    locks[number] = lock;
    return number;
}

bool explore_held(const void *lock) {
    for (unsigned number = 0; number < MOST_LOCKS; number++)
        if (locks[number] == lock && now.owners[number])
            return true;
    return false;
}

int __wrap_pthread_mutex_lock(pthread_mutex_t *lock) {
    if (!exploring)
        return 0;
    struct coroutine *own = &now.threads[self];
    own->waits = lock_number(lock);
    leave(AT_LOCK);
    explore_require(!now.owners[own->waits], "a lock that is held was taken");
    now.owners[own->waits] = self + 1;
    own->holds |= 1u << own->waits;
    return 0;
}

int __wrap_pthread_mutex_timedlock(pthread_mutex_t *lock, const struct timespec *limit) {
    (void)limit;
    return __wrap_pthread_mutex_lock(lock);
}

int __wrap_pthread_mutex_unlock(pthread_mutex_t *lock) {
    if (!exploring)
        return 0;
    const unsigned number = lock_number(lock);
    explore_require(now.owners[number] == self + 1, "a lock that others hold was left");
    now.owners[number] = 0;
    now.threads[self].holds &= ~(1u << number);
    return 0;
}

static size_t allocated_before;

/* Each thread allocates from its own arena, so addresses do not depend on the threads' order. */
static void *allocate(size_t bytes, size_t alignment) {
    size_t *used = self < 0 ? &allocated_before : &now.threads[self].allocated;
    char *arena = arenas[self < 0 ? THREADS : self];
    *used = (*used + alignment - 1) / alignment * alignment;
    char *found = arena + *used;
    if ((*used += bytes) > ARENA)
        explore_fail("the explorer has room for no more allocations");
    return found;
}

void *__wrap_malloc(size_t bytes) {
    return allocate(bytes, 16);
}
void *__wrap_calloc(size_t count, size_t bytes) {
    return allocate(count * bytes, 16); /* the arena never reuses memory, so new memory is zero */
}
void *__wrap_aligned_alloc(size_t alignment, size_t bytes) {
    return allocate(bytes, alignment);
}
void *__wrap_realloc(void *old, size_t bytes) {
    void *larger = allocate(bytes, 16);
    return old ? __real_memcpy(larger, old, bytes) : larger;
}
/* Does nothing, because freed memory is never reused. No thread may read freed memory. */
void __wrap_free(void *memory) {
    (void)memory;
}

void *__wrap_memcpy(void *to, const void *from, size_t bytes) {
    if (bytes) {
        note_access(from, bytes, false);
        note_access(to, bytes, true);
    }
    return __real_memcpy(to, from, bytes);
}
void *__wrap_memset(void *to, int value, size_t bytes) {
    if (bytes)
        note_access(to, bytes, true);
    return __real_memset(to, value, bytes);
}
