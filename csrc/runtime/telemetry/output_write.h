/* Writes files of any kind without waiting for ever. */
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
 * A write fails with EFBIG if the file exceeds the limit on file sizes, and with EPIPE if the
 * reader has gone. A failed write sends no signal. If the descriptor was opened with O_NONBLOCK,
 * and a reader reads nothing for OUTPUT_PATIENCE, the write fails with ETIMEDOUT. */
FILE *output_write_open(struct output_write *to, int file);

enum { OUTPUT_PATIENCE = 10 }; /* seconds */

#endif
