/* A graph while it is built: nodes, and what each of them comes after.
 *
 * A stream's work is a chain. An event, a wait of the host's and memory that serves again make one
 * chain come after another. A vector clock says of each stream up to which of its nodes. One thread
 * builds, and the graph is its own until it is ended. */
#ifndef MGPU_RT_GRAPH_BUILD_H
#define MGPU_RT_GRAPH_BUILD_H

#include "mgpu.h"
#include "mgpu_rt.h"

#include <pthread.h>
#include <stdbool.h>

enum { GRAPH_STREAMS = 32 };

/* The number of each stream's last node that is over by then, from 1 on; 0: none. */
struct vector_clock {
    int node[GRAPH_STREAMS];
};

struct graph_stream {
    hipStream_t handle;        /* NULL: the null stream, which comes after and before all others */
    struct vector_clock clock; /* of its next node */
};

/* An entry of a list of the graph's begins with the next one. */
struct graph_event {
    void *next;
    hipEvent_t handle;
    bool recorded;
    struct vector_clock clock;
};

/* Memory of the graph's own: nobody else gets it while the graph lives. */
struct graph_block {
    void *next;
    void *address;
    size_t bytes;
    bool freed;                /* by the program, and not handed out again */
    struct vector_clock clock; /* of all streams at the free: stock's hipFree waits for all */
};

/* Memory that a graph copies or fills, and that is not the graph's own: one address in each
 * allocation or registration. HIP 6 and 7 look up what lies there when they make the node. */
struct graph_memory {
    void *next;
    void *address;
    uint64_t number; /* HIP's, of the allocation or registration that it lies in; 0: none */
    const struct block *block; /* of the cache; NULL: none, or the graph is a function's, whose
                                  arguments say what the program holds */
    uint64_t uses;             /* how often the block was handed out by then */
};

struct graph_module {
    void *next;
    struct module *module;
};

struct graph_node {
    hipGraphNode_t handle;
    char label[64];
    int after[GRAPH_STREAMS], after_count;
};

struct mgpu_rt_graph {
    hipGraph_t graph;
    hipGraphExec_t executable; /* NULL: it has no nodes */
    int device;
    bool of_function; /* mgpu-rt lower --graph: where it cannot be built, its calls run plainly */
    bool failed;      /* it cannot be built: calls do nothing until it is ended */
    bool launched;    /* once at least */
    bool lost; /* HIP has nothing of it any more: the device was reset, or the process ends */
    struct graph_node *nodes;
    int node_count, node_room;
    struct graph_stream streams[GRAPH_STREAMS];
    int stream_count;
    struct vector_clock host; /* what every node comes after, as the host has waited for it */
    void *events, *blocks, *memory, *modules; /* lists of graph_event and so on */
    struct mgpu_rt_graph *next;               /* of all that were built; under tables_lock */
};

/* The graph that the calling thread builds; NULL: none. */
extern __thread struct mgpu_rt_graph *graph_building __attribute__((tls_model("initial-exec")));

/* One call of HIP's for graphs at a time: 5.2.3 deadlocks, and 7.2 builds wrong ones, where two
 * threads make them. */
extern pthread_mutex_t graph_lock;

/* Says why the graph cannot be built, once, and that it is not. */
void graph_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Notes that a call of HIP's has failed, so that there is no graph. A call of a function fails once
 * more, plainly, if it is the program's fault. */
void graph_fail_call(const char *expression, hipError_t error);
/* Reports a failed call of HIP's outside of the building. A function runs plainly then. */
void graph_report_failure(bool of_function, const char *expression, hipError_t error);

/* Returns the stream of a handle; NULL where there is no room for one more, and the graph has
 * failed. */
struct graph_stream *graph_stream(hipStream_t handle);
/* Returns the event of a handle that was created or recorded while this graph is built; NULL: none.
 */
struct graph_event *graph_event(hipEvent_t handle);
struct graph_event *graph_event_insert(hipEvent_t handle);
void graph_event_remove(hipEvent_t handle);

/* Adds an entry of so many bytes, all zero but its link, to a list of the graph's. NULL without
 * memory: the graph has failed. */
void *graph_list_add(void **list, size_t size);
void graph_list_free(void **list);

/* Notes memory that the next node copies or fills, unless it is the graph's own. */
void graph_note_memory(void *address);
/* Returns HIP's number of what lies at an address; 0: it knows of nothing there. */
uint64_t graph_memory_number(void *address);

/* Moves a clock on, to come after another one. */
void clock_join(struct vector_clock *clock, const struct vector_clock *other);
/* Returns all that the graph has so far. */
struct vector_clock graph_now(void);

/* The nodes that the next one of a stream comes after. */
struct graph_place {
    hipGraphNode_t after[GRAPH_STREAMS];
    int numbers[GRAPH_STREAMS], count;
};
struct graph_place graph_place(struct graph_stream *stream);
/* Takes a node that HIP has made there. */
void graph_add(struct graph_stream *stream, const struct graph_place *place, hipGraphNode_t node,
               const char *label);

/* Returns what answers a call of the thread that builds: a function that makes a node or an edge of
 * it, or ends the building. NULL: the call's implementation. */
mgpu_rt_function graph_call(enum abi_index function);

#endif
