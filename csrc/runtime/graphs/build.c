#include "graphs/build.h"
#include "driver/cuda.h"
#include "driver/device.h"
#include "driver/hip.h"
#include "driver/report.h"
#include "memory/blocks.h"
#include "mgpu.h"
#include "proof.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__thread struct mgpu_rt_graph *graph_building;

pthread_mutex_t graph_lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- failing ---- */

void graph_fail(const char *format, ...) {
    char reason[256];
    if (graph_building->failed)
        return;
    graph_building->failed = true;
    va_list words;
    va_start(words, format);
    vsnprintf(reason, sizeof reason, format, words);
    va_end(words);
    report_line("the graph is not built: %s", reason);
}

void graph_fail_call(const char *expression, hipError_t error) {
    if (graph_building->failed)
        return;
    if (DOUBT(failed_call_runs_again, graph_building->of_function)) {
        const char *name = hip.GetErrorName(error);
        device_clear_error(error);
        graph_fail("'%s' failed with '%s'", expression, name ? name : "<unknown>");
        return;
    }
    report_failure(expression, error, NULL);
    PROOF_STEP(failed_call_ends_the_graph, graph_fail("the call above failed"));
}

void graph_report_failure(bool of_function, const char *expression, hipError_t error) {
    if (!DOUBT(failed_launch_runs_again, of_function)) {
        report_failure(expression, error, NULL);
        return;
    }
    const char *name = hip.GetErrorName(error);
    device_clear_error(error);
    report_line("a function runs without its graph: '%s' failed with '%s'", expression,
                name ? name : "<unknown>");
}

/* ---- lists ---- */

void *graph_list_add(void **list, size_t size) {
    void **entry = calloc(1, size);
    if (!entry) {
        graph_fail("out of memory");
        return NULL;
    }
    *entry = *list;
    return *list = entry;
}

void graph_list_free(void **list) {
    for (void **entry; (entry = *list); free(entry))
        *list = *entry;
}

/* ---- streams and events ---- */

struct graph_stream *graph_stream(hipStream_t handle) {
    struct mgpu_rt_graph *graph = graph_building;
    for (int i = 0; i < graph->stream_count; i++)
        if (graph->streams[i].handle == handle)
            return &graph->streams[i];
    if (graph->stream_count == GRAPH_STREAMS) {
        graph_fail("it has work on more than %d streams", GRAPH_STREAMS);
        return NULL;
    }
    struct graph_stream *stream = &graph->streams[graph->stream_count++];
    *stream = (struct graph_stream){.handle = handle};
    return stream;
}

struct graph_event *graph_event(hipEvent_t handle) {
    struct graph_event *event = graph_building->events;
    while (event && event->handle != handle)
        event = event->next;
    return event;
}

struct graph_event *graph_event_insert(hipEvent_t handle) {
    struct graph_event *event = graph_event(handle);
    if (!event && (event = graph_list_add(&graph_building->events, sizeof *event)))
        event->handle = handle;
    return event;
}

void graph_event_remove(hipEvent_t handle) {
    void **link = &graph_building->events;
    struct graph_event *event;
    while ((event = *link) && event->handle != handle)
        link = &event->next;
    if (event)
        *link = event->next;
    free(event);
}

/* ---- memory ---- */

static bool is_own(const char *address) {
    const struct graph_block *block = graph_building->blocks;
    while (block && !(address >= (const char *)block->address &&
                      address < (const char *)block->address + block->bytes))
        block = block->next;
    return block;
}

uint64_t graph_memory_number(void *address) {
    uint64_t number = 0;
    return device_memory_number(address, &number) ? number : 0;
}

void graph_note_memory(void *address) {
    if (is_own(address))
        return;
    const uint64_t number = graph_memory_number(address);
    struct graph_memory *memory = graph_building->memory;
    while (memory && memory->address != address && !(number && memory->number == number))
        memory = memory->next;
    if (memory || !(memory = graph_list_add(&graph_building->memory, sizeof *memory)))
        return;
    const struct block *block = graph_building->of_function ? NULL : block_around(address);
    memory->address = address;
    memory->number = number;
    if (block && block_held_by_program(block)) {
        memory->block = block;
        memory->uses = load_relaxed(&block->uses);
    }
}

/* ---- what comes after what ---- */

void clock_join(struct vector_clock *clock, const struct vector_clock *other) {
    for (int i = 0; i < GRAPH_STREAMS; i++)
        if (other->node[i] > clock->node[i])
            clock->node[i] = other->node[i];
}

struct vector_clock graph_now(void) {
    struct vector_clock now = graph_building->host;
    for (int i = 0; i < graph_building->stream_count; i++)
        clock_join(&now, &graph_building->streams[i].clock);
    return now;
}

/* HIP 6.4.3 and 7.2.4 crash at the launch of a graph that forks and joins. So on HIP 6 and later
 * each node follows the previous node, an order that is right for every program. */
static bool is_chain(void) {
    return DOUBT(hip_crashes_over_forks, !cuda_present() && hip_version >= HIP_6_0);
}

static void add_place(struct graph_place *place, int number) {
    place->after[place->count] = graph_building->nodes[number].handle;
    place->numbers[place->count++] = number;
}

struct graph_place graph_place(struct graph_stream *stream) {
    struct graph_place place = {.count = 0};
    const struct vector_clock all = graph_now();
    clock_join(&stream->clock, stream->handle ? &graph_building->host : &all);
    if (is_chain()) {
        if (graph_building->node_count)
            add_place(&place, graph_building->node_count - 1);
        return place;
    }
    for (int i = 0; i < GRAPH_STREAMS; i++) {
        if (stream->clock.node[i])
            add_place(&place, stream->clock.node[i] - 1);
    }
    return place;
}

void graph_add(struct graph_stream *stream, const struct graph_place *place, hipGraphNode_t handle,
               const char *label) {
    struct mgpu_rt_graph *graph = graph_building;
    if (graph->node_count == graph->node_room) {
        const int room = graph->node_room ? 2 * graph->node_room : 64;
        struct graph_node *nodes = realloc(graph->nodes, (size_t)room * sizeof *nodes);
        if (!nodes) {
            graph_fail("out of memory");
            return;
        }
        graph->nodes = nodes;
        graph->node_room = room;
    }
    struct graph_node *node = &graph->nodes[graph->node_count];
    node->handle = handle;
    snprintf(node->label, sizeof node->label, "%s", label);
    memcpy(node->after, place->numbers, sizeof node->after);
    node->after_count = place->count;
    stream->clock.node[stream - graph->streams] = ++graph->node_count;
    if (DOUBT(null_stream_is_before_all, !stream->handle))
        clock_join(&graph->host, &stream->clock);
}
