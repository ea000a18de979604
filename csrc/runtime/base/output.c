#include "base/output.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* The path with each %p replaced by the process id, for programs of several processes. */
static void expand(const char *pattern, char *path, size_t size) {
    size_t used = 0;
    for (const char *at = pattern; *at && used + 1 < size; at++) {
        if (at[0] == '%' && at[1] == 'p') {
            const int length = snprintf(path + used, size - used, "%ld", (long)getpid());
            used = used + (size_t)length < size ? used + (size_t)length : size - 1;
            at++;
        } else {
            path[used++] = *at;
        }
    }
    path[used] = '\0';
}

static void say_cannot_write(const char *variable, const char *pattern) {
    fprintf(stderr, "mgpu_rt: %s: cannot write '%s': %s\n", variable, pattern, strerror(errno));
}

FILE *output_open(const char *variable, const char *pattern) {
    char path[4096];
    expand(pattern, path, sizeof path);
    FILE *out = fopen(path, "we");
    if (!out)
        say_cannot_write(variable, path);
    return out;
}

void output_close(const char *variable, const char *pattern, FILE *file) {
    if (fclose(file) != 0)
        say_cannot_write(variable, pattern);
}
