#include "graphs/build.h"
#include "driver/device.h"
#include "memory/blocks.h"
#include "process/lines.h"

#include <stdio.h>
#include <stdlib.h>

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
    line_print("the graph is not built: %s", reason);
}

void graph_report_failure(bool of_function, const char *expression, hipError_t error) {
    if (DOUBT(failed_call_runs_again, of_function)) {
        const char *name = hip.GetErrorName(error);
        device_clear_error(error);
        line_print("a function runs without its graph: '%s' failed with '%s'", expression,
                   name ? name : "<unknown>");
    } else {
        report_failure(expression, error, NULL);
    }
}

void graph_fail_call(const char *expression, hipError_t error) {
    if (graph_building->failed)
        return;
    graph_report_failure(graph_building->of_function, expression, error);
    if (graph_building->of_function)
        graph_building->failed = true;
    else
        PROOF_STEP(failed_call_ends_the_graph, graph_fail("the call above failed"));
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

/* ---- memory ---- */

uint64_t graph_memory_number(void *address) {
    uint64_t number = 0;
    return device_memory_number(address, &number) ? number : 0;
}

void graph_note_memory(void *address) {
    const struct block *block = block_around(address);
    if (block && load_relaxed(&block->graph) == graph_building->number)
        return; /* the graph's own */
    const uint64_t number = graph_memory_number(address);
    struct graph_memory *memory = graph_building->memory;
    while (memory && memory->address != address && !(number && memory->number == number))
        memory = memory->next;
    if (memory || !(memory = graph_list_add(&graph_building->memory, sizeof *memory)))
        return;
    memory->address = address;
    memory->number = number;
    if (block && !graph_building->of_function && block_held_by_program(block)) {
        memory->block = block;
        memory->uses = load_relaxed(&block->uses);
    }
}
