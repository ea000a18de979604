/* Reads the recordings of processes that ended before they wrote their JSON. */
#include "telemetry/recording/recordings.h"
#include "process/cancel.h"
#include "proof.h"
#include "telemetry/counters.h"
#include "telemetry/output.h"
#include "telemetry/recording/statistics.h"
#include "telemetry/recording/trace_json.h"
#include "telemetry/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Writes a 0 to the end of a text's array, because a damaged file may lack the 0 that ends a
 * text. */
#define END_TEXT(text) ((text)[sizeof(text) - 1] = '\0')

static void end_kernel_names(struct kernel_name names[KERNELS]) {
    for (size_t i = 0; i < KERNELS; i++) {
        END_TEXT(names[i].module);
        END_TEXT(names[i].name);
    }
}

static void print_stats_record(FILE *out, struct counts *record) {
    END_TEXT(record->process.program);
    END_TEXT(record->start.device);
    end_kernel_names(record->kernel_names);
    for (size_t i = 0; i < MODULES; i++)
        END_TEXT(record->modules[i].name);
    statistics_print_record(out, record);
}

static void print_trace_record(FILE *out, struct trace *record) {
    END_TEXT(record->process.program);
    end_kernel_names(record->kernel_names);
    for (size_t i = 0; i < TRACE_THREADS; i++)
        END_TEXT(record->thread_names[i]);
    (void)trace_print(out, record, "unfinished");
}

/* Returns the rest of a file if it has the expected length; otherwise returns NULL and sets errno.
 */
static void *read_rest(FILE *file, size_t size) {
    void *rest = malloc(size);
    if (rest && fread(rest, 1, size, file) == size && fgetc(file) == EOF)
        return rest;
    if (rest && !ferror(file))
        errno = EBADMSG;
    free(rest);
    return NULL;
}

static bool print_record(FILE *out, FILE *file) {
    char head[OUTPUT_HEAD];
    errno = EBADMSG;
    if (fread(head, 1, sizeof head, file) != sizeof head)
        return false;
    const bool stats = output_is_record(head, "statistics");
    if (!stats && !output_is_record(head, "a trace"))
        return false;
    void *record = read_rest(file, stats ? sizeof(struct counts) : sizeof(struct trace));
    if (!record)
        return false;
    if (stats)
        print_stats_record(out, record);
    else
        print_trace_record(out, record);
    free(record);
    return true;
}

/* Opens without waiting, because a FIFO, a terminal or a device is no recording. Returns NULL and
 * sets errno on failure. */
static FILE *open_regular(const char *path) {
    struct stat found;
    const int file = path ? open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC) : -1;
    if (file < 0)
        return NULL;
    if (fstat(file, &found) == 0 && PROOF(recording_is_a_file, S_ISREG(found.st_mode)))
        return fdopen(file, "r");
    close(file);
    errno = EBADMSG;
    return NULL;
}

static char *read_recording(const char *path) {
    char *text = NULL;
    size_t size;
    FILE *file = open_regular(path);
    FILE *out = file ? open_memstream(&text, &size) : NULL;
    const bool printed = out && print_record(out, file);
    const int error = errno;
    if (file)
        fclose(file);
    if (out && fclose(out) == 0 && printed)
        return text;
    free(text);
    errno = error;
    return NULL;
}

char *recording_json(const char *path) {
    const int before =
        PROOF_VALUE(reader_closes_the_recording, cancel_forbid(), PTHREAD_CANCEL_ENABLE);
    char *const text = read_recording(path);
    cancel_allow(before);
    return text;
}
