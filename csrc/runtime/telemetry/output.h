/* The files of MGPU_RT_STATS and MGPU_RT_TRACE. The program records in them while it runs, so that
 * the results outlive any end of it. At an ordinary exit JSON replaces them. */
#ifndef MGPU_RT_OUTPUT_H
#define MGPU_RT_OUTPUT_H

#include "telemetry/output_write.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

/* The kind of file that a path leads to. The library records only in a file, and replaces it; the
 * others are written at exit.
 */
enum output_place {
    OUTPUT_FILE,           /* or nothing yet */
    OUTPUT_FOREIGN_FOLDER, /* a file that may be written, in a folder that may not */
    OUTPUT_DEVICE,         /* a device, a FIFO */
    OUTPUT_DESCRIPTOR,     /* a descriptor that the program has open: /dev/stdout */
    OUTPUT_LINK,           /* never followed: any user may have put it there */
};

enum { OUTPUT_PATH = 4096, OUTPUT_HEAD = 4096 };

/* An output is too large for the stack of a small thread. */
struct output {
    const char *variable, *pattern; /* as the user wrote them */
    bool forked;
    char path[OUTPUT_PATH];        /* absolute */
    char beside[OUTPUT_PATH + 32]; /* the file that is to replace it */
    enum output_place place;
    bool failed;               /* the file cannot be written; a message has told why */
    dev_t device;              /* of the recording */
    ino_t inode;               /* 0: none */
    struct output_write write; /* at exit */
};

/* Chooses the file that a pattern names for this process: %p is the process id, %r the rank. If the
 * pattern does not separate ranks, or children of fork, each process gets a name of its own. */
void output_choose(struct output *output, const char *variable, const char *pattern, bool forked);

/* Returns memory of `size` bytes (whole pages) that the file contains from now on, behind a text
 * head that names its kind. Makes a few system calls now, and none later. `content`: pages that the
 * file is to contain from now on, as they are; NULL: fresh ones. Returns NULL if there is no such
 * file. A message tells why a file cannot be written. If the file cannot be mapped, output_open
 * still writes at exit.
 *
 * The file's blocks are allocated from the start: a disk that fills up later takes nothing away. */
void *output_record(struct output *output, const char *kind, void *content, size_t size);

/* Writes nothing there from now on, because of this error. A message says so. */
void output_give_up(struct output *output, int error);

/* Returns the file to write at exit, which takes the recording's place when it is closed whole.
 * Returns NULL if it cannot be written; a message tells so once. */
FILE *output_open(struct output *output);
void output_close(struct output *output, FILE *file);

/* Returns whether a file of this head and size is a recording of this kind, by this version. */
bool output_is_record(const char head[OUTPUT_HEAD], const char *kind);

#endif
