/* An allocator that replaces libc's allocator, watches one library, and can make that library's
 * allocations fail.
 *
 * ALLOCATOR_LIBRARY  a part of the library's path
 * ALLOCATOR_LOG      where lines go: "held LOCK" for each call of the allocator while the library
 *                    holds a lock, "fork LOCK" for each lock that a fork waits for, both as an
 *                    offset in the library; "count N" at the end: the library's allocations
 * ALLOCATOR_FAILS    which of these fail: "5" the fifth, "5-" it and all that follow
 * ALLOCATOR_LARGEST  each calloc of more bytes fails
 * ALLOCATOR_LOCK     set: the allocator has a lock of its own, with fork handlers of its own that
 *                    are registered after all others */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_HELD = 16 };

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *address);

static uintptr_t library_begin, library_end;
static size_t first_failure = SIZE_MAX, last_failure, allocations, largest = SIZE_MAX;
static int descriptor = -1;
static __thread const void *held[MOST_HELD];
static __thread int held_count;
static __thread bool in_fork, outside; /* outside: calls by this file itself */

static void say(const char *format, ...) {
    char line[128];
    va_list words;
    va_start(words, format);
    const int length = vsnprintf(line, sizeof line, format, words);
    va_end(words);
    if (descriptor >= 0 && length > 0)
        (void)!write(descriptor, line, (size_t)length);
}

/* ---- the library ---- */

static int look_at(struct dl_phdr_info *info, size_t size, void *wanted) {
    (void)size;
    if (!info->dlpi_name || !strstr(info->dlpi_name, wanted))
        return 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        const uintptr_t end = info->dlpi_addr + part->p_vaddr + part->p_memsz;
        if (part->p_type == PT_LOAD && end > library_end)
            library_end = end;
    }
    __atomic_store_n(&library_begin, info->dlpi_addr, __ATOMIC_RELEASE);
    return 1;
}

static bool is_of_library(const void *address) {
    const char *wanted = getenv("ALLOCATOR_LIBRARY");
    if (!__atomic_load_n(&library_begin, __ATOMIC_ACQUIRE) && wanted)
        dl_iterate_phdr(look_at, (void *)(uintptr_t)wanted);
    return library_begin && (uintptr_t)address >= library_begin && (uintptr_t)address < library_end;
}

static unsigned long offset_of(const void *lock) {
    return (unsigned long)((uintptr_t)lock - library_begin);
}

/* ---- a lock of the allocator's own ---- */

static int (*real_lock)(pthread_mutex_t *), (*real_unlock)(pthread_mutex_t *);
static pthread_mutex_t arena = PTHREAD_MUTEX_INITIALIZER;
static bool has_lock;

/* Takes the arena's lock, and gives other threads time to wait for this lock while those threads
 * hold locks of their own. */
static void before_fork(void) {
    real_lock(&arena);
    usleep(2000);
}

static void after_fork(void) {
    real_unlock(&arena);
}

static void enter_arena(void) {
    if (has_lock && !outside) {
        real_lock(&arena);
        real_unlock(&arena);
    }
}

/* Registers the fork handlers after the library's handlers, because prepare handlers run in reverse
 * order of registration. */
static void register_handlers(void) {
    static bool registered;
    if (registered || !getenv("ALLOCATOR_LOCK"))
        return;
    registered = true;
    outside = true;
    pthread_atfork(before_fork, after_fork, after_fork);
    outside = false;
    has_lock = true;
}

/* ---- locks ---- */

static void find_real(void) {
    *(void **)&real_lock = dlsym(RTLD_NEXT, "pthread_mutex_lock");
    *(void **)&real_unlock = dlsym(RTLD_NEXT, "pthread_mutex_unlock");
}

int pthread_mutex_lock(pthread_mutex_t *lock) {
    if (!real_lock)
        find_real();
    const int error = real_lock(lock);
    if (is_of_library(lock)) {
        register_handlers();
        if (in_fork)
            say("fork %lx\n", offset_of(lock));
        else if (held_count < MOST_HELD)
            held[held_count++] = lock;
    }
    return error;
}

int pthread_mutex_unlock(pthread_mutex_t *lock) {
    if (!real_unlock)
        find_real();
    for (int i = held_count; i-- > 0;)
        if (held[i] == lock) {
            held[i] = held[--held_count];
            break;
        }
    return real_unlock(lock);
}

pid_t fork(void) {
    pid_t (*real)(void) = (pid_t (*)(void))(uintptr_t)dlsym(RTLD_NEXT, "fork");
    in_fork = true;
    const pid_t process = real();
    in_fork = false;
    return process;
}

/* ---- allocating ---- */

static void note_held(void) {
    if (outside || in_fork)
        return;
    for (int i = 0; i < held_count; i++)
        say("held %lx\n", offset_of(held[i]));
}

/* Returns true if this allocation, which the code at `caller` requests, must fail. */
static bool fails(const void *caller) {
    note_held();
    enter_arena();
    if (!is_of_library(caller))
        return false;
    const size_t number = __atomic_add_fetch(&allocations, 1, __ATOMIC_RELAXED);
    if (number < first_failure || number > last_failure)
        return false;
    errno = ENOMEM;
    return true;
}
#define FAILS() fails(__builtin_extract_return_addr(__builtin_return_address(0)))

void *malloc(size_t size) {
    return FAILS() ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size) {
    const bool too_large =
        count * size > largest && size &&
        is_of_library(__builtin_extract_return_addr(__builtin_return_address(0)));
    return FAILS() || too_large ? NULL : __libc_calloc(count, size);
}

void *realloc(void *old, size_t size) {
    return FAILS() ? NULL : __libc_realloc(old, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
    return FAILS() ? NULL : __libc_memalign(alignment, size);
}

void *memalign(size_t alignment, size_t size) {
    return FAILS() ? NULL : __libc_memalign(alignment, size);
}

int posix_memalign(void **out, size_t alignment, size_t size) {
    if (FAILS())
        return ENOMEM;
    void *memory = __libc_memalign(alignment, size);
    if (!memory)
        return ENOMEM;
    *out = memory;
    return 0;
}

void free(void *address) {
    note_held();
    enter_arena();
    __libc_free(address);
}

/* The following functions of libc allocate for their caller. */
char *strdup(const char *text) {
    const size_t size = strlen(text) + 1;
    char *copy = FAILS() ? NULL : __libc_malloc(size);
    return copy ? memcpy(copy, text, size) : NULL;
}

int vasprintf(char **out, const char *format, va_list words) {
    va_list again;
    va_copy(again, words);
    const int length = FAILS() ? -1 : vsnprintf(NULL, 0, format, words);
    *out = length < 0 ? NULL : __libc_malloc((size_t)length + 1);
    if (*out)
        vsnprintf(*out, (size_t)length + 1, format, again);
    va_end(again);
    return *out ? length : -1;
}

int asprintf(char **out, const char *format, ...) {
    if (FAILS()) {
        *out = NULL;
        return -1;
    }
    va_list words;
    va_start(words, format);
    const int length = vasprintf(out, format, words);
    va_end(words);
    return length;
}

char *realpath(const char *path, char *resolved) {
    char *(*real)(const char *, char *) =
        (char *(*)(const char *, char *))(uintptr_t)dlsym(RTLD_NEXT, "realpath");
    return !resolved && FAILS() ? NULL : real(path, resolved);
}

DIR *opendir(const char *path) {
    DIR *(*real)(const char *) = (DIR * (*)(const char *))(uintptr_t)dlsym(RTLD_NEXT, "opendir");
    return FAILS() ? NULL : real(path);
}

/* ---- begin and end ---- */

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("ALLOCATOR_LOG"), *which = getenv("ALLOCATOR_FAILS"),
               *bytes = getenv("ALLOCATOR_LARGEST");
    if (path)
        descriptor = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (bytes)
        largest = strtoul(bytes, NULL, 10);
    if (which) {
        char *rest;
        first_failure = strtoul(which, &rest, 10);
        last_failure = *rest ? SIZE_MAX : first_failure;
    }
}

/* Forks at the end, to find out for which locks a fork waits. */
__attribute__((destructor)) static void end(void) {
    if (descriptor < 0)
        return;
    say("count %zu\n", allocations);
    const pid_t process = fork();
    if (process == 0)
        _exit(0);
    if (process > 0)
        (void)waitpid(process, NULL, 0);
}
