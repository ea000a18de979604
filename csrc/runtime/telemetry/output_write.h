/* Writes that come to an end, wherever a path leads. */
#ifndef MGPU_RT_OUTPUT_WRITE_H
#define MGPU_RT_OUTPUT_WRITE_H

#include <stdio.h>

/* A stream's first error stays here, as errno has it; 0: none. */
struct output_write {
    int file, error;
};

/* Opens a stream over a descriptor; closing the stream closes the descriptor. Returns NULL with
 * errno, and the descriptor is closed.
 *
 * A limit on the size of files and a reader that has gone are errors, EFBIG and EPIPE, and no
 * signal. A reader that takes nothing for OUTPUT_PATIENCE is ETIMEDOUT, if the descriptor was
 * opened with O_NONBLOCK. */
FILE *output_write_open(struct output_write *to, int file);

enum { OUTPUT_PATIENCE = 10 }; /* seconds */

#endif
