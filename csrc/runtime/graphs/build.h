/* A graph while it is being built: its nodes, and the predecessors of each node.
 *
 * The work of a stream is a chain. A node may also follow nodes of another chain, because of an
 * event, a wait by the host, or reused memory. A vector clock contains, for each stream, the last
 * node that is done. One thread builds a graph, and no other thread accesses the graph before its
 * end. */
#ifndef MGPU_RT_GRAPH_BUILD_H
#define MGPU_RT_GRAPH_BUILD_H

#include "mgpu.h"
#include "mgpu_rt.h"

#include <pthread.h>
#include <stdbool.h>

enum { GRAPH_STREAMS = 32 };

/* A point in the order of a graph's nodes: for each stream, the number of the last node before this
 * point, counted from 1. 0: no node of the stream is before this point. */
struct vector_clock {
    int node[GRAPH_STREAMS];
};

struct graph_stream {
    hipStream_t handle;        /* NULL: the null stream, which is ordered after and before all other
                                * streams */
    struct vector_clock clock; /* number of the stream's next node */
};

/* The first member of an entry in a graph's lists is a pointer to the next entry. */
struct graph_event {
    void *next;
    hipEvent_t handle;
    bool recorded;
    struct vector_clock clock;
};

/* Memory of the graph: no other caller gets it while the graph exists. */
struct graph_block {
    void *next;
    void *address;
    size_t bytes;
    bool freed;                /* freed by the program, and not handed out again */
    struct vector_clock clock; /* clock of all streams at the free: stock's hipFree waits for all
                                * streams */
};

/* Memory that a graph copies or fills but does not own: one address in each allocation or
 * registration. HIP 6 and 7 look up the memory at an address when they create the node. */
struct graph_memory {
    void *next;
    void *address;
    uint64_t number; /* HIP's number of the allocation or registration that contains the memory; 0:
                      * none */
    const struct block *block; /* the cache's block at this address; NULL: no block, or a function's
                                * graph, whose arguments show what the program holds */
    uint64_t uses;             /* how often the block had been handed out when the graph used it */
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
    hipGraphExec_t executable; /* NULL: the graph has no nodes */
    int device;
    bool of_function; /* mgpu-rt lower --graph: if the graph cannot be built, the function's calls
                       * run without a graph */
    bool failed;      /* the graph cannot be built: calls do nothing until the graph is ended */
    bool launched;    /* launched at least once */
    bool lost;        /* HIP has released the graph: the device was reset, or the process ends */
    struct graph_node *nodes;
    int node_count, node_room;
    struct graph_stream streams[GRAPH_STREAMS];
    int stream_count;
    struct vector_clock host; /* every new node follows these nodes: the host has waited for them,
                               * or they belong to the null stream */
    void *events, *blocks, *memory, *modules; /* lists of graph_event and of the other entries */
    struct mgpu_rt_graph *next;               /* list of all graphs that were built; under
                                               * tables_lock */
};

/* The graph that the calling thread is building; NULL: none. */
extern __thread struct mgpu_rt_graph *graph_building __attribute__((tls_model("initial-exec")));

/* Serialises HIP's calls for graphs: when two threads make such calls at once, HIP 5.2.3 deadlocks
 * and HIP 7.2 builds wrong graphs. */
extern pthread_mutex_t graph_lock;

/* Reports once why the graph cannot be built, and marks the graph as failed. */
void graph_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Records that a call to HIP has failed, so that no graph is built. If the program is at fault, the
 * function's call fails again when the function runs without the graph. */
void graph_fail_call(const char *expression, hipError_t error);
/* Reports a failed call to HIP that creates no node. After a failure, a function runs
 * without the graph. */
void graph_report_failure(bool of_function, const char *expression, hipError_t error);

/* Returns the stream of a handle; NULL if memory for a further stream is missing: then the graph
 * has failed. */
struct graph_stream *graph_stream(hipStream_t handle);
/* Returns the event that a handle names, if it was created or recorded while this graph is built;
 * otherwise NULL.
 */
struct graph_event *graph_event(hipEvent_t handle);
struct graph_event *graph_event_insert(hipEvent_t handle);
void graph_event_remove(hipEvent_t handle);

/* Adds an entry of a given size, zero except for its link, to a list of the graph. Returns NULL if
 * memory is missing: then the graph has failed. */
void *graph_list_add(void **list, size_t size);
void graph_list_free(void **list);

/* Records memory that the next node copies or fills, unless the graph owns that memory. */
void graph_note_memory(void *address);
/* Returns HIP's number for the memory at an address; 0: HIP knows no memory there. */
uint64_t graph_memory_number(void *address);

/* Moves a clock forward, so that the clock follows another clock. */
void clock_join(struct vector_clock *clock, const struct vector_clock *other);
/* Returns the clock of all nodes of the graph so far. */
struct vector_clock graph_now(void);

/* The predecessors of a stream's next node. */
struct graph_place {
    hipGraphNode_t after[GRAPH_STREAMS];
    int numbers[GRAPH_STREAMS], count;
};
struct graph_place graph_place(struct graph_stream *stream);
/* Adds a node that HIP has created with these predecessors. */
void graph_add(struct graph_stream *stream, const struct graph_place *place, hipGraphNode_t node,
               const char *label);

/* Returns the function that answers the building thread's call: this function adds a node or an
 * edge, or ends the graph. Returns NULL if the usual implementation answers the call. */
mgpu_rt_function graph_call(enum abi_index function);

#endif
