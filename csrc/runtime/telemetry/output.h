/* Writes the files of MGPU_RT_STATS and MGPU_RT_TRACE. The program records in these files while it
 * runs, so that the results survive any end of the process. At an ordinary exit, a file with JSON
 * replaces the recording. */
#ifndef MGPU_RT_OUTPUT_H
#define MGPU_RT_OUTPUT_H

#include "telemetry/output_write.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

/* The kind of file at a path. The library records only in a regular file, and replaces the
 * recording at exit. Files of the other kinds are written only at exit. */
enum output_place {
    OUTPUT_FILE,           /* a regular file, or nothing yet */
    OUTPUT_FOREIGN_FOLDER, /* a writable file in a folder that is not writable */
    OUTPUT_DEVICE,         /* a device, a FIFO */
    OUTPUT_DESCRIPTOR,     /* a descriptor that the program has open: /dev/stdout */
    OUTPUT_LINK,           /* a link, which is never followed: any user may have created it */
};

enum { OUTPUT_PATH = 4096, OUTPUT_HEAD = 4096 };

/* A struct output is too large for a small stack. */
struct output {
    const char *variable, *pattern; /* the words as the user wrote them */
    bool forked;
    char path[OUTPUT_PATH];        /* absolute */
    char beside[OUTPUT_PATH + 32]; /* the file that will replace the recording */
    enum output_place place;
    bool failed;               /* the file cannot be written, and a message has given the reason */
    dev_t device;              /* device and inode of the recording */
    ino_t inode;               /* 0: none */
    struct output_write write; /* at exit */
};

/* Chooses the file that a pattern names for this process: %p is the process id, %r the rank. If the
 * pattern does not separate ranks or forked children, each process gets its own name. */
void output_choose(struct output *output, const char *variable, const char *pattern, bool forked);

/* Returns memory of `size` bytes (whole pages) that is mapped from the file; NULL if no file is
 * mapped. The file begins with a text head that names the file's kind. Later writes to the memory
 * make no system calls. If `content` is not NULL, the file gets a copy of the pages at `content`,
 * and the mapping replaces these pages. If the file cannot be written, a message gives the reason.
 * A file that can be written but not mapped is written only at exit (output_open).
 *
 * The file's blocks are allocated in advance, so no record is lost if the disk becomes full
 * later. */
void *output_record(struct output *output, const char *kind, void *content, size_t size);

/* Stops writing to the output after an error, and prints one message that reports the error. */
void output_give_up(struct output *output, int error);

/* Opens the file that the library writes at exit. Returns NULL if the file cannot be written; one
 * message reports this failure. If all writes have succeeded, output_close replaces the recording
 * by the new file. */
FILE *output_open(struct output *output);
void output_close(struct output *output, FILE *file);

/* Returns whether `head` is the head of a recording of this kind, made by this version of the
 * library. */
bool output_is_record(const char head[OUTPUT_HEAD], const char *kind);

#endif
