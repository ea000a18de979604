/* Writes the head of a recording: it describes the recording, so that a reader of any release can
 * read it (mgpu_rt/_record.py). */
#include "telemetry/recording/recorder.h"
#include "telemetry/trace.h"

#include <stdio.h>
#include <string.h>

/* ---- the columns: a field of all rows of a table ---- */

struct column {
    char table[20], name[20];
    uint32_t kind, size; /* 'u': an unsigned number, 'i': a signed number, 't': a text that ends
                          * with 0 */
    uint64_t offset, stride, rows; /* of the first row; from row to row; how many */
};

/* The type of a table's rows, the table's place in the recording, and the number of its rows. */
#define MANY(name, type, count, fields)                                                            \
    typedef type row_##name;                                                                       \
    enum { base_##name = offsetof(struct counts, name), rows_##name = (count) };
#define RECORD_COUNTS
#include "telemetry/record.def"
#define MANY(name, type, count, fields)                                                            \
    typedef type row_##name;                                                                       \
    enum {                                                                                         \
        base_##name = sizeof(struct counts) + offsetof(struct trace, name),                        \
        rows_##name = (count)                                                                      \
    };
#define RECORD_TRACE
#include "telemetry/record.def"

#define KIND(type) _Generic((type)0, char: 't', int64_t: 'i', default: 'u')
#define COLUMN(table, type, name, length)                                                          \
    {#table,                                                                                       \
     #name,                                                                                        \
     KIND(type),                                                                                   \
     sizeof(((row_##table *)0)->name),                                                             \
     (uint64_t)base_##table + offsetof(row_##table, name),                                         \
     sizeof(row_##table),                                                                          \
     rows_##table},
#define MANY(name, type, count, fields) fields(COLUMN, name)
#define VALUES(name, count)                                                                        \
    {#name, "value", 'u', sizeof(uint64_t), base_##name, sizeof(uint64_t), count},

static const struct column columns[] = {
#define RECORD_COUNTS
#define RECORD_TRACE
#include "telemetry/record.def"
};

/* ---- the names of a table's rows, and of the values of a field ---- */

static const char *const errors[] = {
#define HIP_ERROR(number, name) #number " " #name,
#include "../../../hip_errors.def"
};
static const char *const copy_ways[COPY_WAYS] = {[COPY_TO_DEVICE] = "to_device",
                                                 [COPY_FROM_DEVICE] = "from_device",
                                                 [COPY_ON_DEVICE] = "on_device",
                                                 [COPY_UNKNOWN] = "unknown",
                                                 [COPY_FILL] = "fill"};
static const char *const unshared_reasons[UNSHARED_REASONS] = {
    [UNSHARED_NOT] = "",
    [UNSHARED_CACHE_OFF] = "MGPU_RT_CACHE=off",
    [UNSHARED_WRITABLE] = "globals that kernels or the host can write",
    [UNSHARED_OPAQUE] = "it may have writable globals, in parts that cannot be read",
};
static const char *const hows[CALL_HOWS] = {[CALL_PLAIN] = "",          [CALL_HIT] = "hit",
                                            [CALL_MISS] = "miss",       [CALL_BYPASS] = "bypass",
                                            [CALL_REFUSED] = "refused", [CALL_FAILED] = "failed"};
static const char *const trace_kinds[TRACE_KINDS] = {
    [TRACE_PROGRAM] = "program", [TRACE_DRIVER] = "driver", [TRACE_START] = "start",
    [TRACE_GRAPH] = "graph",     [TRACE_MEMORY] = "memory", [TRACE_POINTER] = "pointer"};

static const struct list {
    const char *name;
    const char *const *rows;
    size_t count;
} lists[] = {{"abi", abi_names, ABI_COUNT},
             {"hip", hip_names, HIP_COUNT},
             {"error", errors, sizeof errors / sizeof *errors},
             {"cache", cache_names, CACHE_COUNT},
             {"copy", copy_ways, COPY_WAYS},
             {"why", unshared_reasons, UNSHARED_REASONS},
             {"how", hows, CALL_HOWS},
             {"kind", trace_kinds, TRACE_KINDS}};

/* ---- the head ---- */

enum { LAYOUT = 1 };
struct head {
    char magic[16], version[32];
    uint32_t layout, column_count;
    uint64_t size; /* of the recording */
};
_Static_assert(sizeof(struct head) + sizeof columns < RECORD_HEAD / 2, "texts fit behind them");

/* A line for each name: the list's name, a space, the name. A 0 ends the texts. */
void record_head(char out[RECORD_HEAD], uint64_t size) {
    const struct head head = {.magic = "mgpu_rt record\n",
                              .version = MGPU_RT_VERSION,
                              .layout = LAYOUT,
                              .column_count = sizeof columns / sizeof *columns,
                              .size = size};
    memcpy(out, &head, sizeof head);
    memcpy(out + sizeof head, columns, sizeof columns);
    size_t used = sizeof head + sizeof columns;
    for (const struct list *list = lists; list < lists + sizeof lists / sizeof *lists; list++)
        for (size_t i = 0; i < list->count && used < RECORD_HEAD; i++)
            used += (size_t)snprintf(out + used, RECORD_HEAD - used, "%s %s\n", list->name,
                                     list->rows[i]);
}
