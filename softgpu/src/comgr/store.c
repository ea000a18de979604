/* Caches compilation results: a file for each request, in the user's cache folder.
 *
 * A file contains the whole request, and a lookup compares the request, so file names need not be
 * unique. If two requests have equal file names, the newer request replaces the file. Each file is
 * written under a temporary name, then renamed, and never changed afterwards. */
#include "../settings.h"
#include "comgr.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define FOLDER "mgpu_rt/softgpu"
#define MAGIC UINT64_C(0x31656c69706d6f63) /* "compile1" */

struct header {
    uint64_t magic, request, result,
        checksum; /* `request` and `result` are sizes in bytes; `checksum` covers first the request,
                     then the result */
};

/* ---- bytes ---- */

void *bytes_add(struct bytes *bytes, size_t size) {
    if (bytes->failed || size > SIZE_MAX / 4 - bytes->size) {
        bytes->failed = true;
        return NULL;
    }
    if (bytes->size + size > bytes->room) {
        const size_t room = 2 * (bytes->size + size) + 4096;
        void *at = realloc(bytes->at, room);
        if (!at) {
            bytes->failed = true;
            return NULL;
        }
        bytes->at = at;
        bytes->room = room;
    }
    bytes->size += size;
    return bytes->at + bytes->size - size;
}

void bytes_add_word(struct bytes *bytes, uint64_t word) {
    void *at = bytes_add(bytes, sizeof word);
    if (at)
        memcpy(at, &word, sizeof word);
}

void bytes_free(struct bytes *bytes) {
    free(bytes->at);
    *bytes = (struct bytes){0};
}

/* Each step is a bijection of the previous checksum, so a change of one word always changes the
 * checksum. */
static uint64_t checksum(uint64_t sum, const struct bytes *bytes) {
    for (size_t at = 0; at < bytes->size; at += sizeof sum) {
        const size_t left = bytes->size - at;
        uint64_t word = 0;
        memcpy(&word, bytes->at + at, left < sizeof word ? left : sizeof word);
        sum = (sum ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        sum ^= sum >> 32;
    }
    return sum ^ bytes->size;
}

/* ---- the folder ---- */

/* Returns true if a folder lies in a home that does not exist. */
static bool home_is_missing(const char *folder, const char *home) {
    struct stat found;
    const size_t length = home ? strlen(home) : 0;
    return length > 0 && strncmp(folder, home, length) == 0 &&
           (folder[length] == '/' || folder[length] == '\0') && stat(home, &found) != 0;
}

/* Finds $XDG_CACHE_HOME, or ~/.cache if $XDG_CACHE_HOME is not an absolute path. Returns false if
 * $HOME is not an absolute path either, or if the home does not exist: nobody may make the home. */
static bool cache_folder(char *path, size_t room) {
    const char *cache = secure_getenv("XDG_CACHE_HOME"), *home = secure_getenv("HOME");
    int length = -1;
    if (cache && cache[0] == '/')
        length = snprintf(path, room, "%s", cache);
    else if (home && home[0] == '/')
        length = snprintf(path, room, "%s/.cache", home);
    return length > 0 && (size_t)length < room && !home_is_missing(path, home);
}

bool store_usable(void) {
    char path[PATH_MAX], asked[SOFTGPU_SETTING_SIZE];
    softgpu_setting("compiler_cache", asked);
    return strcmp(asked, "off") != 0 && cache_folder(path, sizeof path);
}

static bool file_of(const struct bytes *request, char *path, size_t room) {
    char cache[PATH_MAX];
    if (!cache_folder(cache, sizeof cache))
        return false;
    const int length = snprintf(path, room, "%s/" FOLDER "/%016llx", cache,
                                (unsigned long long)checksum(0, request));
    return length > 0 && (size_t)length < room;
}

/* Creates the parent folders of a file. */
static void make_folders(const char *file) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s", file);
    for (char *end = strchr(path + 1, '/'); end; end = strchr(end + 1, '/')) {
        *end = '\0';
        (void)mkdir(path, 0700);
        *end = '/';
    }
}

/* ---- files ---- */

static bool write_all(int file, const void *from, size_t size) {
    for (size_t done = 0; done < size;) {
        const ssize_t put = write(file, (const char *)from + done, size - done);
        if (put < 0 && errno != EINTR)
            return false;
        done += put > 0 ? (size_t)put : 0;
    }
    return true;
}

/* Finds the result in a file's content. */
static bool find_result(const struct mapped *file, const struct bytes *request,
                        struct bytes *result) {
    struct header header;
    if (file->size < sizeof header)
        return false;
    memcpy(&header, file->at, sizeof header);
    const size_t left = file->size - sizeof header;
    if (header.magic != MAGIC || header.request != request->size || header.request > left ||
        header.result != left - header.request)
        return false;
    unsigned char *at = file->at + sizeof header;
    *result = (struct bytes){.at = at + header.request, .size = header.result};
    return memcmp(at, request->at, request->size) == 0 &&
           header.checksum == checksum(checksum(MAGIC, request), result);
}

/* The kernel maps what it has cached at once: to read 12 MB took a sixteenth of HIP's start. */
static bool map_file(const char *path, struct mapped *to) {
    /* If the file is a FIFO, O_NONBLOCK keeps open() from waiting for a writer. */
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat info;
    void *at = MAP_FAILED;
    if (file >= 0 && fstat(file, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0)
        at = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, file, 0);
    if (file >= 0)
        (void)close(file);
    if (at != MAP_FAILED)
        *to = (struct mapped){at, (size_t)info.st_size};
    return at != MAP_FAILED;
}

bool store_read(const struct bytes *request, struct mapped *file, struct bytes *result) {
    char path[PATH_MAX];
    if (!file_of(request, path, sizeof path) || !map_file(path, file))
        return false;
    const bool done = find_result(file, request, result);
    if (!done) {
        store_close(file);
        *result = (struct bytes){0};
    }
    return done;
}

void store_close(struct mapped *file) {
    (void)munmap(file->at, file->size);
}

void store_write(const struct bytes *request, const struct bytes *result) {
    char path[PATH_MAX], part[PATH_MAX];
    if (!file_of(request, path, sizeof path) ||
        snprintf(part, sizeof part, "%s.XXXXXX", path) >= (int)sizeof part)
        return;
    make_folders(path);
    const int file = mkostemp(part, O_CLOEXEC);
    if (file < 0)
        return;
    const struct header header = {MAGIC, request->size, result->size,
                                  checksum(checksum(MAGIC, request), result)};
    const bool written = write_all(file, &header, sizeof header) &&
                         write_all(file, request->at, request->size) &&
                         write_all(file, result->at, result->size);
    if (close(file) != 0 || !written || rename(part, path) != 0)
        (void)unlink(part);
}
