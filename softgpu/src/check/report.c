#include "report.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { KEYS = 4096 };

static struct {
    pthread_mutex_t lock;
    uint64_t keys[KEYS];
    unsigned count;
} seen = {.lock = PTHREAD_MUTEX_INITIALIZER};

static uint64_t hash(const uint64_t *key, unsigned words) {
    uint64_t value = 0xcbf29ce484222325;
    for (unsigned n = 0; n < words; n++)
        value = (value ^ key[n]) * 0x100000001b3, value ^= value >> 29;
    return value ? value : 1;
}

bool softgpu_report_new(const uint64_t *key, unsigned words) {
    uint64_t wanted = hash(key, words);
    bool fresh = true;
    pthread_mutex_lock(&seen.lock);
    for (unsigned n = 0; n < seen.count && fresh; n++)
        fresh = seen.keys[n] != wanted;
    fresh = fresh && seen.count < KEYS;
    if (fresh)
        seen.keys[seen.count++] = wanted;
    pthread_mutex_unlock(&seen.lock);
    return fresh;
}

/* ---- JSON ---- */

static void put(struct softgpu_report *report, const char *format, ...) {
    size_t room = sizeof report->text - report->used;
    va_list arguments;
    va_start(arguments, format);
    int wanted = vsnprintf(report->text + report->used, room, format, arguments);
    va_end(arguments);
    if (wanted > 0)
        report->used += (size_t)wanted < room ? (unsigned)wanted : (unsigned)room - 1;
}

static void put_string(struct softgpu_report *report, const char *value) {
    put(report, "\"");
    for (; *value; value++) {
        unsigned char c = (unsigned char)*value;
        if (c == '"' || c == '\\')
            put(report, "\\%c", c);
        else if (c < ' ')
            put(report, "\\u%04x", c);
        else
            put(report, "%c", c);
    }
    put(report, "\"");
}

static void put_name(struct softgpu_report *report, const char *name) {
    bool first = report->used == 0 || report->text[report->used - 1] == '{';
    put(report, "%s\"%s\": ", first ? "" : ", ", name);
}

void softgpu_report_begin(struct softgpu_report *report, const char *kind) {
    report->used = 0;
    put(report, "{");
    softgpu_report_text(report, "kind", kind);
}

void softgpu_report_text(struct softgpu_report *report, const char *name, const char *value) {
    put_name(report, name);
    put_string(report, value);
}

void softgpu_report_number(struct softgpu_report *report, const char *name, uint64_t value) {
    put_name(report, name);
    put(report, "%llu", (unsigned long long)value);
}

static void put_frame(struct softgpu_report *report, void *frame) {
    Dl_info found = {0};
    /* The return address of a function's last call may lie in the next function. So the byte before
     * the return address locates the call. */
    const char *call = (const char *)frame - 1;
    if (!dladdr(call, &found) || !found.dli_fname)
        return;
    put(report, "{");
    softgpu_report_text(report, "object", found.dli_fname);
    softgpu_report_number(report, "offset", (uint64_t)(call - (const char *)found.dli_fbase));
    if (found.dli_sname)
        softgpu_report_text(report, "symbol", found.dli_sname);
    put(report, "}, ");
}

void softgpu_report_place(struct softgpu_report *report, const char *name,
                          const struct softgpu_place *place) {
    put_name(report, name);
    put(report, "[");
    for (unsigned n = 0; n < place->count; n++)
        put_frame(report, place->frames[n]);
    if (report->text[report->used - 1] == ' ')
        report->used -= 2;
    put(report, "]");
}

void softgpu_report_open(struct softgpu_report *report, const char *name) {
    put_name(report, name);
    put(report, "{");
}

void softgpu_report_close(struct softgpu_report *report) {
    put(report, "}");
}

void softgpu_report_block(struct softgpu_report *report, const struct softgpu_block *block) {
    softgpu_report_open(report, "allocation");
    softgpu_report_number(report, "number", block->number);
    softgpu_report_number(report, "address", block->va);
    softgpu_report_number(report, "bytes", block->size);
    const char *memory = block->registered ? "registered" : block->number ? "device" : "host";
    softgpu_report_text(report, "memory", memory);
    softgpu_report_text(report, "state", block->freed ? "freed" : "live");
    softgpu_report_place(report, "allocated", &block->made);
    softgpu_report_place(report, "freed", &block->ended);
    softgpu_report_close(report);
}

static uint64_t frame_of(const struct softgpu_place *place) {
    return place->count ? (uintptr_t)place->frames[0] : 0;
}

bool softgpu_report_pair_new(const char *kind, const struct softgpu_place *place, uint32_t other,
                             enum softgpu_waits waits) {
    const uint64_t key[] = {(uintptr_t)kind, frame_of(place),
                            frame_of(&softgpu_op_at(other)->place)};
    softgpu_order_reported(other, waits);
    return softgpu_report_new(key, sizeof key / sizeof *key);
}

void softgpu_report_op(struct softgpu_report *report, uint32_t number) {
    static const char *const kinds[] = {
        [SOFTGPU_OP_UNKNOWN] = "work",
        [SOFTGPU_OP_LAUNCH] = "launch",
        [SOFTGPU_OP_COPY] = "copy",
        [SOFTGPU_OP_FILL] = "fill",
    };
    const struct softgpu_op *op = softgpu_op_at(number);
    softgpu_report_text(report, "op", kinds[op->kind]);
    softgpu_report_number(report, "stream", op->stream);
    softgpu_report_place(report, "place", &op->place);
}

static int file = STDERR_FILENO;

static void open_file(void) {
    const char *path = secure_getenv("MGPU_RT_CHECK");
    int opened =
        path && *path ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666) : STDERR_FILENO;
    if (opened >= 0)
        file = opened;
}

void softgpu_report_end(struct softgpu_report *report) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, open_file);
    put(report, "}\n");
    if (write(file, report->text, report->used) < 0)
        return; /* no process reads the report */
}
