/* The file in which a process records. The counters and the trace are memory that is mapped from
 * the file, so the recording survives any end of the process. While the program runs, the library
 * makes no system call for it. */
#ifndef MGPU_RT_RECORD_FILE_H
#define MGPU_RT_RECORD_FILE_H

#include "telemetry/counters.h"

/* Creates a new file, with mode 0600, which only this process records in. The file's blocks are
 * allocated on the disk. Its first pages get a copy of the counters, and replace these. Returns the
 * pages of the rest, `trace` bytes.
 *
 * A pattern names the file. A first %p is the process id. Without %p a rank is appended. If the
 * name is taken, the process id is appended, and a line names the file.
 *
 * If the file cannot be made, returns NULL after one line that says why. `variable` is the option
 * that contains the pattern. The caller holds start_lock. */
void *record_file(const char *variable, const char *pattern, size_t trace);

/* Writes the head of a recording of `size` bytes to `out`. A recording is a struct counts, which
 * contains the head, and with a trace a struct trace. The head names each field of both structs,
 * with its place in the recording. Texts follow: the names of functions, caches and errors. */
void record_head(char out[RECORD_HEAD], uint64_t size);

#endif
