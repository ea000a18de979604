#include "base/output.h"
#include "base/output_name.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static void say_cannot_write(struct output *output, int error) {
    if (!output->failed)
        fprintf(stderr, "mgpu_rt: %s: cannot write '%s': %s\n", output->variable, output->path,
                strerror(error));
    output->failed = true;
}

/* Under a name of its own, for what is to take the file's place. */
static int create_beside(struct output *output) {
    snprintf(output->beside, sizeof output->beside, "%s.%ld.new", output->path, (long)getpid());
    const int flags = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC;
    const int file = open(output->beside, flags, 0666);
    if (file >= 0 || errno != EEXIST)
        return file;
    unlink(output->beside); /* of a process with this id that was killed just then */
    return open(output->beside, flags, 0666);
}

/* The name for this process: the plain one, or the second, third ... of that. */
static bool name_it(struct output *output, int number) {
    char word[24];
    output_name(output->path, sizeof output->path, output->pattern, output->forked);
    snprintf(word, sizeof word, "%d", number);
    return number == 1 || output_name_insert(output->path, sizeof output->path, word);
}

void output_choose(struct output *output, const char *variable, const char *pattern, bool forked) {
    struct stat status;
    memset(output, 0, sizeof *output);
    output->variable = variable;
    output->pattern = pattern;
    output->forked = forked;
    (void)name_it(output, 1);
    output->direct = stat(output->path, &status) == 0 && !S_ISREG(status.st_mode);
}

/* ---- the head ---- */

static const char head_format[] = "mgpu_rt " MGPU_RT_VERSION " recording of %s";

bool output_is_record(const char head[OUTPUT_HEAD], const char *kind) {
    char begin[128];
    snprintf(begin, sizeof begin, head_format, kind);
    return strncmp(head, begin, strlen(begin)) == 0;
}

/* When a process was started, in the kernel's ticks: what tells it from a later one with its id. 0
 * if there is none. */
static unsigned long long started(long process) {
    char path[64], line[1024];
    unsigned long long ticks = 0;
    snprintf(path, sizeof path, "/proc/%ld/stat", process);
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    const char *at = fgets(line, sizeof line, file) ? strrchr(line, ')') : NULL;
    enum { FIELDS_BETWEEN = 20 }; /* the name's end is field 2, the start is field 22 */
    for (int i = 0; at && i < FIELDS_BETWEEN; i++)
        at = strchr(at + 1, ' ');
    if (at)
        ticks = strtoull(at, NULL, 10);
    fclose(file);
    return ticks;
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

/* Whether a process that lives still records there, this one before an exec included. */
static bool is_taken(const char *path) {
    char head[256] = "";
    long process;
    unsigned long long since;
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    const char *line = fgets(head, sizeof head, file);
    fclose(file);
    line = line && strncmp(line, "mgpu_rt ", 8) == 0 ? strstr(line, " by process ") : NULL;
    return line && sscanf(line, " by process %ld since %llu", &process, &since) == 2 && since &&
           started(process) == since;
}

/* ---- recording ---- */

/* Gives the finished file its name, or with a number the first that no living process records
 * under. */
static bool publish(struct output *output) {
    for (int number = 2; link(output->beside, output->path) != 0; number++) {
        if (errno != EEXIST || !is_taken(output->path))
            return rename(output->beside, output->path) == 0;
        if (!name_it(output, number))
            return false;
    }
    unlink(output->beside);
    return true;
}

/* Whole or not at all; errno says why not. */
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

/* Over the pages of `content`, if there are some: they are left alone until the file is mapped. */
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

/* A limit on the size of files would end the program by SIGXFSZ. */
static bool is_within_limit(size_t size) {
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur >= OUTPUT_HEAD + size;
}

void *output_record(struct output *output, const char *kind, void *content, size_t size) {
    if (output->direct || !is_within_limit(size))
        return NULL;
    const int file = create_beside(output);
    if (file < 0) {
        const int error = errno;
        output->direct = access(output->path, W_OK) == 0; /* in a folder that is not ours */
        if (!output->direct)
            say_cannot_write(output, error);
        return NULL;
    }
    void *pages = NULL;
    if (!fill(file, kind, content, size))
        say_cannot_write(output, errno);
    else if ((pages = map(file, content, size)) && !publish(output))
        say_cannot_write(output, errno);
    if (!pages || output->failed)
        unlink(output->beside);
    close(file);
    return pages;
}

/* ---- at exit ---- */

FILE *output_open(struct output *output) {
    if (output->failed)
        return NULL;
    const int file = output->direct
                         ? open(output->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)
                         : create_beside(output);
    FILE *stream = file < 0 ? NULL : fdopen(file, "w");
    if (!stream)
        say_cannot_write(output, errno);
    return stream;
}

void output_close(struct output *output, FILE *file) {
    errno = EIO; /* an error while it was written is not known any more */
    const bool whole = !ferror(file);
    const bool closed = fclose(file) == 0;
    if (whole && closed && (output->direct || rename(output->beside, output->path) == 0))
        return;
    say_cannot_write(output, errno);
    if (!output->direct)
        unlink(output->beside);
}
