/* A graph while it is being built: its nodes, and the predecessors of each node.
 *
 * The work of a stream is a chain. A node may also follow nodes of another chain, because of an
 * event, a wait by the host, or reused memory. A vector clock contains the number of the last
 * preceding node of each stream. One thread builds a graph, and no other thread accesses the graph
 * before its end. */
#ifndef MGPU_RT_GRAPH_BUILD_H
#define MGPU_RT_GRAPH_BUILD_H

#include "mgpu.h"
#include "mgpu_rt.h"

#include <pthread.h>
#include <stdbool.h>

enum { GRAPH_STREAMS = 32 };

/* A point in the order of a graph's nodes. For each stream, `node` contains the number of the
 * stream's last node before this point. Numbers begin with 1; 0 means that the stream has no node
 * before this point. */
struct vector_clock {
    int node[GRAPH_STREAMS];
};

struct graph_stream {
    hipStream_t handle;        /* NULL: the null stream, which is ordered after and before all other
                                * streams */
    struct vector_clock clock; /* the point before the stream's next node */
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
    struct vector_clock clock; /* the point after all nodes that precede the mgpuMemFree */
};

/* An allocation or registration that a graph copies or fills but does not own; `address` is one
 * address in this memory. HIP 6 and 7 look up the memory at an address when they create the node.
 */
struct graph_memory {
    void *next;
    void *address;
    uint64_t number; /* HIP's number of the allocation or registration; 0: HIP has no number */
    const struct block *block; /* the cache's block that contains the address, or NULL */
    uint64_t uses;             /* block->uses when the graph first copied or filled the block */
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
    bool lost;        /* HIP no longer has the graph (after a reset, a fork or the exit) */
    struct graph_node *nodes;
    int node_count, node_room;
    struct graph_stream streams[GRAPH_STREAMS];
    int stream_count;
    struct vector_clock host; /* the nodes for which the host has waited, and the nodes of the null
                               * stream: every new node follows these nodes */
    void *events, *blocks, *memory, *modules; /* lists of the structs above */
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
/* Records that a call to HIP has failed, so that no graph is built. A function that `mgpu-rt lower
 * --graph` has wrapped then runs without a graph. If the program is at fault, the same call fails
 * again in this run. */
void graph_fail_call(const char *expression, hipError_t error);
/* Reports a failed call to HIP that creates no node. After the failure, a function that
 * `mgpu-rt lower --graph` has wrapped runs without its graph. */
void graph_report_failure(bool of_function, const char *expression, hipError_t error);

/* Returns the graph's entry for a stream. Returns NULL if the graph already has GRAPH_STREAMS other
 * streams: then the graph has failed. */
struct graph_stream *graph_stream(hipStream_t handle);
/* Returns the graph's entry for an event; NULL if the event was not created or recorded since the
 * graph was begun. */
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

/* Moves `clock` forward, until every node before `other` is also before `clock`. */
void clock_join(struct vector_clock *clock, const struct vector_clock *other);
/* Returns the point after all nodes that the graph has so far. */
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

/* Returns the function that answers a call while the calling thread builds a graph. The returned
 * function adds a node or an edge, or marks the graph as failed. Returns NULL if the usual
 * implementation answers the call. */
mgpu_rt_function graph_call(enum abi_index function);

#endif
