#include "telemetry/output.h"
#include "proof.h"
#include "telemetry/output_write.h"
#include "telemetry/process.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char *why(int error) {
    switch (error) {
    case ELOOP:
        return "it is a symbolic link, which the library does not follow: name the file itself";
    case ENXIO:
        return "no process has opened it to read";
    case ETIMEDOUT:
        return "its reader has read nothing for 10 seconds";
    default:
        return strerror(error);
    }
}
_Static_assert(OUTPUT_PATIENCE == 10, "why says so");

void output_give_up(struct output *output, int error) {
    if (!output->failed)
        fprintf(stderr, "mgpu_rt: %s: cannot write '%s': %s\n", output->variable, output->path,
                why(error));
    output->failed = true;
}

/* ---- the name of a file ---- */

/* Finds the value of a letter after a %; returns false if the letter has no value. */
static bool substitute(char letter, char *text, size_t size) {
    if (letter == 'p')
        snprintf(text, size, "%ld", (long)getpid());
    else if (letter == 'r')
        snprintf(text, size, "%d", process_rank() < 0 ? 0 : process_rank());
    else
        return false;
    return true;
}

static void expand(char *path, size_t size, const char *pattern) {
    size_t used = 0;
    for (const char *at = pattern; *at && used + 1 < size; at++) {
        char text[24];
        if (at[0] == '%' && substitute(at[1], text, sizeof text)) {
            const size_t length = strlen(text);
            const size_t room = size - 1 - used;
            memcpy(path + used, text, length < room ? length : room);
            used += length < room ? length : room;
            at++;
        } else {
            path[used++] = *at;
        }
    }
    path[used] = '\0';
}

/* Inserts `word` before the extension of a path; with the word 2, stats.json becomes stats.2.json.
 * Returns false if the path becomes too long. */
static bool insert_word(char *path, size_t size, const char *word) {
    char *name = strrchr(path, '/');
    name = name ? name + 1 : path;
    char *ending = name[0] ? strrchr(name + 1, '.') : NULL;
    if (!ending)
        ending = path + strlen(path);
    const size_t length = strlen(word) + 1;
    if (strlen(path) + length >= size)
        return false;
    memmove(ending + length, ending, strlen(ending) + 1);
    ending[0] = '.';
    memcpy(ending + 1, word, length - 1);
    return true;
}

/* A path is made absolute, because the program may change its directory before it ends. */
static void make_absolute(char *path, size_t size) {
    char *here = path[0] == '/' ? NULL : getcwd(NULL, 0);
    const size_t length = here ? strlen(here) : 0;
    if (here && length + 1 + strlen(path) < size) {
        memmove(path + length + 1, path, strlen(path) + 1);
        memcpy(path, here, length);
        path[length] = '/';
    }
    free(here);
}

/* Stores in `path` the absolute path that a pattern names. */
static void choose_name(char *path, size_t size, const char *pattern, bool forked) {
    char word[24];
    expand(path, size, pattern);
    const bool told_apart = strstr(pattern, "%p") != NULL;
    /* A path in /dev names a device or a pipe, so the rank and the process id are not inserted. */
    if (strncmp(path, "/dev/", 5) != 0 && !told_apart) {
        if (process_rank() >= 0 && !strstr(pattern, "%r")) {
            snprintf(word, sizeof word, "rank%d", process_rank());
            (void)insert_word(path, size, word);
        }
        if (forked && substitute('p', word, sizeof word))
            (void)insert_word(path, size, word);
    }
    make_absolute(path, size);
}

/* ---- what a path leads to ---- */

/* Returns true if the path is one of the kernel's links to the program's open files. No other user
 * can create such a link. */
static bool names_a_descriptor(const char *path) {
    return strcmp(path, "/dev/stdout") == 0 || strcmp(path, "/dev/stderr") == 0 ||
           ((strncmp(path, "/dev/fd/", 8) == 0 || strncmp(path, "/proc/", 6) == 0) &&
            !strstr(path, "/../"));
}

static enum output_place place_of(const char *path) {
    struct stat found;
    if (lstat(path, &found) != 0)
        return OUTPUT_FILE;
    if (S_ISLNK(found.st_mode))
        return names_a_descriptor(path) ? OUTPUT_DESCRIPTOR
                                        : PROOF_VALUE(path_is_no_link, OUTPUT_LINK, OUTPUT_FILE);
    return S_ISREG(found.st_mode) ? OUTPUT_FILE : OUTPUT_DEVICE;
}

/* Chooses the path for this process: the plain path for `number` 1, otherwise the path with the
 * number inserted. Returns false if the path becomes too long. */
static bool name_it(struct output *output, int number) {
    char word[24];
    choose_name(output->path, sizeof output->path, output->pattern, output->forked);
    snprintf(word, sizeof word, "%d", number);
    return number == 1 || insert_word(output->path, sizeof output->path, word);
}

void output_choose(struct output *output, const char *variable, const char *pattern, bool forked) {
    memset(output, 0, sizeof *output);
    output->variable = variable;
    output->pattern = pattern;
    output->forked = forked;
    (void)name_it(output, 1);
    output->place = place_of(output->path);
}

/* ---- what is to take a file's place ---- */

/* A new file is readable only by its owner; an existing file of this user keeps its mode. A file of
 * another user is replaced: its owner could end the program by truncating the mapped file. */
static void copy_mode(int file, const char *path) {
    struct stat old;
    if (lstat(path, &old) == 0 && S_ISREG(old.st_mode) &&
        PROOF(mode_is_of_this_user, old.st_uid == geteuid()))
        PROOF_STEP(file_keeps_its_mode, (void)fchmod(file, old.st_mode & 0777));
}

/* Creates the new file in the old file's folder. The short name contains the process id and the
 * time, because processes in two containers may have the same id. */
static int create_beside(struct output *output) {
    enum { TRIES = 100 };
    const char *name = strrchr(output->path, '/');
    const int folder = name ? (int)(name + 1 - output->path) : 0;
    int file = -1;
    for (int i = 0; i < TRIES && file < 0 && (i == 0 || errno == EEXIST); i++) {
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        snprintf(output->beside, sizeof output->beside, "%.*s.mgpu_rt-%lx-%lx.new", folder,
                 output->path, (long)getpid(), now.tv_nsec + i);
        file = open(output->beside, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    }
    if (file >= 0)
        copy_mode(file, output->path);
    return file;
}

/* ---- the head ---- */

static const char head_format[] = "mgpu_rt " MGPU_RT_VERSION " recording of %s";

bool output_is_record(const char head[OUTPUT_HEAD], const char *kind) {
    char begin[128];
    snprintf(begin, sizeof begin, head_format, kind);
    return strncmp(head, begin, strlen(begin)) == 0;
}

/* Returns the start time of a process, which distinguishes the process from a later process with an
 * equal id. */
static unsigned long long started(long process) {
    return process_field(process, PROCESS_STARTED);
}

enum { HEAD_TEXT = 256 };

static void compose_head(char text[HEAD_TEXT], const char *kind) {
    const char *command = strcmp(kind, "a trace") == 0 ? "trace" : "stats";
    const int begun = snprintf(text, HEAD_TEXT, head_format, kind);
    snprintf(
        text + begun, HEAD_TEXT - (size_t)begun,
        " by process %ld since %llu, which has not ended by exit: `mgpu-rt %s FILE` shows it\n",
        (long)getpid(), started(getpid()), command);
}

/* Returns true if the process that the file's head names still runs. A process that has called exec
 * still runs, but no longer holds the lock of the file. */
static bool is_of_the_living(int file) {
    char head[HEAD_TEXT] = "";
    long process;
    unsigned long long since;
    if (pread(file, head, sizeof head - 1, 0) <= 0 || strncmp(head, "mgpu_rt ", 8) != 0)
        return false;
    const char *line = strstr(head, " by process ");
    return line && sscanf(line, " by process %ld since %llu", &process, &since) == 2 && since &&
           started(process) == since;
}

/* ---- taking a name ----
 *
 * A process locks the file in which it records, and locks an old file before replacing that file.
 * If several processes start and find an old file, one process replaces the old file, and the other
 * processes use the next names. A recording stays locked while the process maps the recording,
 * because the mapping keeps the file open. */

static bool is_at(int file, const char *path) {
    struct stat open_file, named;
    return fstat(file, &open_file) == 0 && lstat(path, &named) == 0 &&
           open_file.st_dev == named.st_dev && open_file.st_ino == named.st_ino;
}

/* Locks the file. Returns false only if another process holds the lock, so a file system without
 * locks causes no failure. */
static bool lock(int file) {
    return flock(file, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
}

enum taking { TAKEN, HELD, CHANGED, REFUSED };

static enum taking rename_over(const struct output *output) {
    return rename(output->beside, output->path) == 0 ? TAKEN : REFUSED;
}

static enum taking replace_open(const struct output *output, int old) {
    struct stat found;
    if (fstat(old, &found) != 0 || !S_ISREG(found.st_mode) ||
        !PROOF(nobody_locks_the_recording, lock(old)) ||
        DOUBT(recorder_lives, is_of_the_living(old)))
        return HELD;
    return is_at(old, output->path) ? rename_over(output) : CHANGED;
}

static enum taking replace_old(const struct output *output) {
    const int flags = O_RDONLY | PROOF_VALUE(second_name_is_no_link, O_NOFOLLOW, 0) |
                      PROOF_VALUE(second_name_is_not_waited_for, O_NONBLOCK, 0) | O_NOCTTY |
                      O_CLOEXEC;
    const int old = open(output->path, flags);
    if (old < 0 && errno == ENOENT)
        return CHANGED;
    if (old < 0 && (errno == ELOOP || errno == ENXIO))
        return HELD;
    if (old < 0)
        return rename_over(output); /* the folder's owner may replace a file that cannot be opened
                                     */
    const enum taking result = replace_open(output, old);
    const int error = errno;
    close(old);
    errno = error;
    return result;
}

static enum taking take_name(const struct output *output) {
    struct stat found;
    if (link(output->beside, output->path) == 0) {
        unlink(output->beside);
        return TAKEN;
    }
    if (errno != EEXIST && lstat(output->path, &found) != 0)
        return rename_over(output); /* a file system without links */
    return replace_old(output);
}

/* Renames the finished file from its temporary name to the output's path. If another process uses
 * the path, inserts the first number that gives a free path. */
static bool publish(struct output *output) {
    enum { MOST = 10000 };
    int number = 1;
    for (int i = 0; i < MOST; i++) {
        const enum taking result = take_name(output);
        if (result == TAKEN || result == REFUSED)
            return result == TAKEN;
        if (result == HELD && !name_it(output, ++number))
            break;
    }
    errno = EEXIST;
    return false;
}

/* ---- recording ---- */

/* Writes all bytes; returns false on failure, and errno gives the reason. */
static bool write_all(int file, const void *bytes, size_t size, off_t at) {
    for (size_t done = 0; done < size;) {
        const ssize_t written =
            pwrite(file, (const char *)bytes + done, size - done, at + (off_t)done);
        if (written < 0 && errno != EINTR)
            return false;
        done += written > 0 ? (size_t)written : 0;
    }
    return true;
}

static bool fill(int file, const char *kind, const void *content, size_t size) {
    char head[HEAD_TEXT];
    compose_head(head, kind);
    while ((errno = posix_fallocate(file, 0, (off_t)(OUTPUT_HEAD + size))) == EINTR)
        continue;
    return errno == 0 && write_all(file, head, strlen(head), 0) &&
           (!content || write_all(file, content, size, OUTPUT_HEAD));
}

/* Maps the file and returns the pages; NULL on failure. If `content` is not NULL, the new pages
 * replace the pages at `content`, before any thread has used the new pages. */
static void *map(int file, void *content, size_t size) {
    void *pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, OUTPUT_HEAD);
    if (pages == MAP_FAILED)
        return NULL;
    if (content && mremap(pages, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, content) != content) {
        munmap(pages, size);
        return NULL;
    }
    return content ? content : pages;
}

/* Returns whether the limit on file sizes permits the file. A write beyond the limit would end the
 * program by SIGXFSZ. */
static bool is_within_limit(size_t size) {
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur >= OUTPUT_HEAD + size;
}

/* Renames the recording to its final name, and stores the recording's device and inode. Returns
 * false on failure. */
static bool note_file(struct output *output, int file) {
    struct stat made;
    if (fstat(file, &made) != 0 || !publish(output))
        return false;
    output->device = made.st_dev;
    output->inode = made.st_ino;
    return true;
}

void *output_record(struct output *output, const char *kind, void *content, size_t size) {
    if (output->place == OUTPUT_LINK)
        output_give_up(output, ELOOP);
    if (output->place != OUTPUT_FILE || !PROOF(limit_allows_the_recording, is_within_limit(size)))
        return NULL;
    const int file = create_beside(output);
    if (file < 0) {
        const int error = errno;
        if (access(output->path, W_OK) == 0) /* in a folder that is not writable for this user */
            output->place = OUTPUT_FOREIGN_FOLDER;
        else
            output_give_up(output, error);
        return NULL;
    }
    void *pages = NULL;
    PROOF_STEP(recording_is_locked, (void)lock(file));
    if (!fill(file, kind, content, size))
        output_give_up(output, errno);
    else if ((pages = map(file, content, size)) && !note_file(output, file))
        output_give_up(output, errno);
    if (!pages || output->failed)
        unlink(output->beside);
    close(file);
    return pages;
}

/* ---- at exit ---- */

static int open_place(struct output *output) {
    const int flags =
        O_WRONLY | PROOF_VALUE(reader_is_not_waited_for, O_NONBLOCK, 0) | O_NOCTTY | O_CLOEXEC;
    switch (output->place) {
    case OUTPUT_FILE:
        return create_beside(output);
    case OUTPUT_FOREIGN_FOLDER:
        return open(output->path, flags | O_NOFOLLOW | O_TRUNC);
    case OUTPUT_DESCRIPTOR: /* appends, because the program may have written output to the file */
        return open(output->path, flags | O_APPEND);
    default:
        return open(output->path, flags | O_NOFOLLOW);
    }
}

FILE *output_open(struct output *output) {
    if (output->failed)
        return NULL;
    const int file = open_place(output);
    FILE *stream = file < 0 ? NULL : output_write_open(&output->write, file);
    if (!stream)
        output_give_up(output, errno);
    return stream;
}

/* Replaces the recording by the finished file. If the recording was moved or removed, another
 * process may use the recording's path, so the finished file gets a free path. */
static bool replace_recording(struct output *output) {
    struct stat found;
    if (PROOF(name_is_still_ours, lstat(output->path, &found) == 0 && output->inode &&
                                      found.st_ino == output->inode &&
                                      found.st_dev == output->device))
        return rename(output->beside, output->path) == 0;
    return publish(output);
}

void output_close(struct output *output, FILE *file) {
    (void)fclose(file);
    errno = output->write.error;
    if (!errno && (output->place != OUTPUT_FILE || replace_recording(output)))
        return;
    output_give_up(output, errno);
    if (output->place == OUTPUT_FILE)
        unlink(output->beside);
}
