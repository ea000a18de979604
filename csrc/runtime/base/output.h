/* The files of MGPU_RT_STATS and MGPU_RT_TRACE: recorded in while the program runs, so that what
 * was measured outlives whatever ends it, and replaced by JSON at an ordinary exit. */
#ifndef MGPU_RT_OUTPUT_H
#define MGPU_RT_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum { OUTPUT_PATH = 4096, OUTPUT_HEAD = 4096 };

/* Too large for the stack of a small thread. */
struct output {
    const char *variable, *pattern; /* as the user has them */
    bool forked;
    char path[OUTPUT_PATH];        /* absolute */
    char beside[OUTPUT_PATH + 32]; /* what is to take its place */
    bool direct;                   /* a device, a pipe: written at exit alone, and never replaced */
    bool failed;                   /* it cannot be written, which was said */
};

/* Chooses the file that a pattern names for this process: %p is the process id, %r the rank. Where
 * the pattern tells ranks, or children of fork, not apart, a name of its own is made for each. */
void output_choose(struct output *output, const char *variable, const char *pattern, bool forked);

/* Memory of `size` bytes (whole pages) that the file holds from now on, behind a head of text that
 * says what it is; a few system calls, none later. `content`: pages that the file is to hold from
 * now on, as they are; NULL: fresh ones. NULL if there is no such file: what cannot be written is
 * said; where the place cannot be mapped, output_open writes at exit all the same.
 *
 * The file's blocks are there from the start: a place that fills up later takes nothing away. */
void *output_record(struct output *output, const char *kind, void *content, size_t size);

/* The file to write at exit, which takes the recording's place when it is closed whole. NULL if it
 * cannot be written, which is said once. */
FILE *output_open(struct output *output);
void output_close(struct output *output, FILE *file);

/* Whether a file of this head and size is a recording of this kind, by this version. */
bool output_is_record(const char head[OUTPUT_HEAD], const char *kind);

#endif
