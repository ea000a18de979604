#include "telemetry/output_name.h"
#include "telemetry/process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Finds the value of a letter behind a %; false if it has none. */
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

bool output_name_insert(char *path, size_t size, const char *word) {
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

/* The program may change its directory before it ends. */
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

void output_name(char *path, size_t size, const char *pattern, bool forked) {
    char word[24];
    expand(path, size, pattern);
    const bool told_apart = strstr(pattern, "%p") != NULL;
    /* A device or a pipe has no siblings. */
    if (strncmp(path, "/dev/", 5) != 0 && !told_apart) {
        if (process_rank() >= 0 && !strstr(pattern, "%r")) {
            snprintf(word, sizeof word, "rank%d", process_rank());
            (void)output_name_insert(path, size, word);
        }
        if (forked && substitute('p', word, sizeof word))
            (void)output_name_insert(path, size, word);
    }
    make_absolute(path, size);
}
