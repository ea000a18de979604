#include "process/lines.h"
#include "telemetry/recording/recorder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH = 4096 };

static void cannot_write(const char *variable, const char *path, const char *why) {
    line_print("%s: cannot write '%s': %s", variable, path, why);
}

/* Stores the name that a pattern gives to this process's file; `attempt` counts the names that were
 * taken. Returns false if the path needs more than PATH bytes. */
static bool choose(char path[PATH], const char *pattern, long attempt) {
    const char *id = strstr(pattern, "%p");
    const int head = id ? (int)(id - pattern) : (int)strlen(pattern), rank = options_rank();
    path[0] = '\0';
    return text_append(path, PATH, "%.*s", head, pattern) &&
           (!id || text_append(path, PATH, "%d%s", getpid(), id + strlen("%p"))) &&
           (id || rank < 0 || text_append(path, PATH, ".rank%d", rank)) &&
           (!attempt || text_append(path, PATH, ".%d", getpid())) &&
           (attempt < 2 || text_append(path, PATH, ".%ld", attempt));
}

/* Creates a file with the first name that is free, and stores the name. Returns -1 if it fails,
 * after a line that says why. */
static int create(char path[PATH], const char *variable, const char *pattern) {
    enum { MOST = 1000 };
    static char first[PATH];
    struct stat found;
    int file = -1;
    (void)choose(first, pattern, 0);
    for (long attempt = 0; attempt < MOST; attempt++) {
        errno = ENAMETOOLONG;
        file = choose(path, pattern, attempt)
                   ? open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600)
                   : -1;
        if (file >= 0 || errno != EEXIST)
            break;
        if (attempt == 0 && lstat(path, &found) == 0 && !S_ISREG(found.st_mode)) {
            cannot_write(variable, path, "it exists and is not a file: name a new file");
            return -1;
        }
    }
    if (file < 0)
        cannot_write(variable, path, strerror(errno));
    else if (strcmp(first, path) != 0)
        line_print("%s: '%s' exists, so '%s' gets the recording", variable, first, path);
    return file;
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

/* Copies the counters to the first pages, which then replace the counters' pages, before any thread
 * has used them. Returns false and sets errno on failure. */
static bool replace_counters(void *pages) {
    const size_t size = sizeof counts;
    memcpy(pages, &counts, size);
    return mremap(pages, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, &counts) == &counts;
}

void *record_file(const char *variable, const char *pattern, size_t trace) {
    static char path[PATH];
    const int file = create(path, variable, pattern);
    if (file < 0)
        return NULL;
    char *const pages = allocate_file(file, sizeof counts + trace);
    if (pages != MAP_FAILED && replace_counters(pages)) {
        close(file);
        return pages + sizeof counts;
    }
    cannot_write(variable, path, strerror(errno));
    /* With %p, no later process needs the name: the empty file tells that a recording is lost. */
    if (!strstr(pattern, "%p") || ftruncate(file, 0) != 0)
        unlink(path);
    close(file);
    return NULL;
}
