/* A graph while it is being built.
 *
 * A graph is a chain: each node follows the node before, in the order of the calls. No call can
 * wait for a later call, so this order is right for all streams. Streams, events and waits
 * therefore add nothing to a graph. One thread builds a graph, and no other thread
 * accesses the graph before its end. */
#ifndef MGPU_RT_GRAPH_BUILD_H
#define MGPU_RT_GRAPH_BUILD_H

#include "mgpu.h"
#include "mgpu_rt.h"

#include <pthread.h>

/* The first member of an entry in a graph's lists is a pointer to the next entry. */
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

struct mgpu_rt_graph {
    hipGraph_t graph;
    hipGraphExec_t executable; /* NULL: the graph has no nodes */
    uint64_t number; /* in the entries of the graph's blocks and events; no other graph and no
                      * capture has this number */
    int device;
    bool of_function; /* mgpu-rt lower --graph: if the graph cannot be built, the function's calls
                       * run without a graph */
    bool failed;      /* the graph cannot be built: calls do nothing until the graph is ended */
    bool launched;    /* launched at least once */
    hipGraphNode_t last;
    size_t node_count;
    void *memory, *modules; /* lists of the structs above */
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

/* Adds an entry of a given size, zero except for its link, to a list of the graph. Returns NULL if
 * memory is missing: then the graph has failed. */
void *graph_list_add(void **list, size_t size);
void graph_list_free(void **list);

/* Records memory that the next node copies or fills, unless the graph owns that memory. */
void graph_note_memory(void *address);
/* Returns HIP's number for the memory at an address; 0: HIP knows no memory there. */
uint64_t graph_memory_number(void *address);

/* Returns the function that answers a call while the calling thread builds a graph. The returned
 * function adds a node, does nothing, or marks the graph as failed. Returns NULL if the usual
 * implementation answers the call. Returns graph_no_answer, which must not be called, if the call
 * cannot be in a graph: the graph has then failed, and the call returns zero. */
mgpu_rt_function graph_call(enum abi_index function);
void graph_no_answer(void);

#endif
