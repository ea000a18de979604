/* Writes files so that no write waits for ever, for any kind of path. */
#ifndef MGPU_RT_OUTPUT_WRITE_H
#define MGPU_RT_OUTPUT_WRITE_H

#include <stdio.h>

/* A stream's first error, as an errno value; 0: none. */
struct output_write {
    int file, error;
};

/* Opens a stream over a descriptor; closing the stream closes the descriptor. On failure, returns
 * NULL, sets errno and closes the descriptor.
 *
 * A limit on file sizes and a reader that has gone are reported as errors, EFBIG and EPIPE, and not
 * as signals. A reader that reads nothing for OUTPUT_PATIENCE causes ETIMEDOUT, if the descriptor
 * was opened with O_NONBLOCK. */
FILE *output_write_open(struct output_write *to, int file);

enum { OUTPUT_PATIENCE = 10 }; /* seconds */

#endif
