#include "base/trace.h"
#include "base/atomics.h"
#include "base/output.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { CHUNK = 1 << 14, CHUNKS = 1 << 6 };

struct call {
    const char *name, *layer;
    uint64_t begin, nanoseconds;
    long thread; /* 0: not written to the end */
};

static struct call *chunks[CHUNKS];
static size_t used; /* calls, those that were not kept included */

static long this_thread(void) {
    static __thread long known __attribute__((tls_model("initial-exec")));
    if (!known)
        known = syscall(SYS_gettid);
    return known;
}

/* NULL without memory. */
static struct call *chunk_at(size_t number) {
    struct call *chunk = load_acquire(&chunks[number]);
    if (chunk)
        return chunk;
    struct call *fresh = calloc(CHUNK, sizeof *fresh);
    if (!fresh || cas_acq_rel_acquire(&chunks[number], &chunk, fresh))
        return fresh;
    free(fresh);
    return chunk;
}

void trace_call(const char *name, const char *layer, uint64_t begin, uint64_t nanoseconds) {
    const size_t place = fetch_add_relaxed(&used, 1);
    struct call *chunk = place < (size_t)CHUNKS * CHUNK ? chunk_at(place / CHUNK) : NULL;
    if (!chunk)
        return;
    struct call *call = &chunk[place % CHUNK];
    call->name = name;
    call->layer = layer;
    call->begin = begin;
    call->nanoseconds = nanoseconds;
    store_release(&call->thread, this_thread());
}

void trace_reset(void) {
    used = 0;
    for (size_t i = 0; i < CHUNKS; i++)
        chunks[i] = NULL; /* the parent's; freeing would copy its pages */
}

/* ---- the file ---- */

/* A program's name may hold anything. */
static void print_text(FILE *out, const char *text) {
    for (; *text; text++)
        if (*text == '"' || *text == '\\')
            fprintf(out, "\\%c", *text);
        else
            fputc((unsigned char)*text < ' ' ? ' ' : *text, out);
}

/* Chrome counts in microseconds. */
static void print_call(FILE *out, const struct call *call, long process) {
    fprintf(out,
            ",\n{\"ph\": \"X\", \"name\": \"%s\", \"cat\": \"%s\", \"pid\": %ld, \"tid\": %ld, "
            "\"ts\": %" PRIu64 ".%03u, \"dur\": %" PRIu64 ".%03u}",
            call->name, call->layer, process, call->thread, call->begin / 1000,
            (unsigned)(call->begin % 1000), call->nanoseconds / 1000,
            (unsigned)(call->nanoseconds % 1000));
}

static size_t print_calls(FILE *out, long process) {
    size_t printed = 0;
    for (size_t i = 0; i < CHUNKS && chunks[i]; i++)
        for (size_t j = 0; j < CHUNK; j++)
            if (load_acquire(&chunks[i][j].thread)) {
                print_call(out, &chunks[i][j], process);
                printed++;
            }
    return printed;
}

void trace_write(const char *path) {
    const long process = (long)getpid();
    FILE *out = output_open("MGPU_RT_TRACE", path);
    if (!out)
        return;
    fprintf(out,
            "{\"displayTimeUnit\": \"ns\", \"traceEvents\": [\n{\"ph\": \"M\", \"name\": "
            "\"process_name\", \"pid\": %ld, \"args\": {\"name\": \"",
            process);
    print_text(out, program_invocation_short_name);
    fputs("\"}}", out);
    const size_t kept = print_calls(out, process);
    const size_t lost = used - kept;
    fprintf(out, "\n], \"otherData\": {\"kept\": %zu, \"lost\": %zu}}\n", kept, lost);
    output_close("MGPU_RT_TRACE", path, out);
    if (lost)
        fprintf(stderr, "mgpu_rt: MGPU_RT_TRACE: of %zu calls the first %zu were kept\n",
                kept + lost, kept);
}
