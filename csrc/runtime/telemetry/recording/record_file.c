#include "telemetry/recording/record_file.h"
#include "telemetry/process.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH = 4096 };

static void cannot_write(const char *variable, const char *path, const char *why) {
    fprintf(stderr, "mgpu_rt: %s: cannot write '%s': %s\n", variable, path, why);
}

/* ---- the name of a file ---- */

/* Appends a text to a path, cut off at PATH bytes. */
static void append(char path[PATH], const char *text, size_t length) {
    const size_t used = strlen(path), room = PATH - 1 - used;
    const size_t taken = length < room ? length : room;
    memcpy(path + used, text, taken);
    path[used + taken] = '\0';
}

static void append_number(char path[PATH], long number) {
    char text[24];
    append(path, text, (size_t)snprintf(text, sizeof text, "%ld", number));
}

static void expand(char path[PATH], const char *pattern) {
    for (const char *at = pattern; *at; at++) {
        if (at[0] == '%' && at[1] == 'p')
            append_number(path, getpid());
        else if (at[0] == '%' && at[1] == 'r')
            append_number(path, process_rank() < 0 ? 0 : process_rank());
        else
            append(path, at, 1);
        at += at[0] == '%' && (at[1] == 'p' || at[1] == 'r');
    }
}

/* Inserts words before the extension of a path: stats.json becomes stats.rank3.12345.json. */
static void insert_words(char path[PATH], long rank, long process, long number) {
    static char ending[PATH]; /* too large for a small stack */
    char *name = strrchr(path, '/'), words[80];
    name = name ? name + 1 : path;
    char *dot = name[0] ? strrchr(name + 1, '.') : NULL;
    int used = 0;
    if (!dot)
        dot = path + strlen(path);
    strcpy(ending, dot);
    *dot = '\0';
    words[0] = '\0';
    if (rank >= 0)
        used += snprintf(words, sizeof words, ".rank%ld", rank);
    if (process)
        used += snprintf(words + used, sizeof words - (size_t)used, ".%ld", process);
    if (number)
        snprintf(words + used, sizeof words - (size_t)used, ".%ld", number);
    append(path, words, strlen(words));
    append(path, ending, strlen(ending));
}

/* Stores the name that a pattern gives to this process's file; `attempt` counts the names that were
 * taken. */
static void choose(char path[PATH], const char *pattern, long attempt) {
    path[0] = '\0';
    expand(path, pattern);
    const bool ranked = !strstr(pattern, "%r") && !strstr(pattern, "%p");
    insert_words(path, ranked ? process_rank() : -1, attempt ? getpid() : 0,
                 attempt > 1 ? attempt : 0);
}

/* ---- the file ---- */

typedef int make_file(const char *path, const char *from);

static int create(const char *path, const char *from) {
    (void)from;
    if (strlen(path) == PATH - 1) { /* cut off */
        errno = ENAMETOOLONG;
        return -1;
    }
    return open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
}

static int link_to(const char *path, const char *from) {
    return link(from, path);
}

/* Calls `make` with the first name that is free, and stores the name. Returns -1 if it fails, after
 * a line that says why. */
static int take_name(char path[PATH], const char *variable, const char *pattern, make_file *make,
                     const char *from) {
    enum { MOST = 1000 };
    static char first[PATH];
    struct stat found;
    int result = -1;
    choose(first, pattern, 0);
    for (long attempt = 0; attempt < MOST; attempt++) {
        choose(path, pattern, attempt);
        result = make(path, from);
        if (result >= 0 || errno != EEXIST)
            break;
        if (attempt == 0 && lstat(path, &found) == 0 && !S_ISREG(found.st_mode)) {
            cannot_write(variable, path, "it exists and is not a file: name a new file");
            return -1;
        }
    }
    if (result < 0)
        cannot_write(variable, path, strerror(errno));
    else if (strcmp(first, path) != 0)
        fprintf(stderr, "mgpu_rt: %s: '%s' exists, so '%s' gets the recording\n", variable, first,
                path);
    return result;
}

/* Allocates the file's blocks and maps them; returns MAP_FAILED and sets errno on failure. A file
 * beyond the limit of file sizes would send SIGXFSZ. */
static void *allocate_file(int file, size_t size) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < size)
        errno = EFBIG;
    else
        while ((errno = posix_fallocate(file, 0, (off_t)size)) == EINTR)
            continue;
    return errno ? MAP_FAILED : mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
}

/* Copies the content to the first pages, which then replace the content's pages, before any thread
 * has used them. Returns false and sets errno on failure. */
static bool replace(void *content, void *pages, size_t part) {
    memcpy(pages, content, part);
    return mremap(pages, part, part, MREMAP_MAYMOVE | MREMAP_FIXED, content) == content;
}

void *record_file(const struct record_names *names, void *content, size_t part, size_t size) {
    static char path[PATH], second[PATH];
    const int file = take_name(path, names->variables[0], names->patterns[0], create, NULL);
    if (file < 0)
        return NULL;
    char *const pages = allocate_file(file, size);
    const bool is_mapped = pages != MAP_FAILED && replace(content, pages, part);
    close(file);
    if (!is_mapped) {
        cannot_write(names->variables[0], path, strerror(errno));
        unlink(path);
        return NULL;
    }
    if (names->count > 1)
        (void)take_name(second, names->variables[1], names->patterns[1], link_to, path);
    return pages + part;
}
