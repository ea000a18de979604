/* mgpu_rt.h: the functions of mgpu_rt's libmlir_rocm_runtime.so in addition to the mgpu* ABI.
 *
 * All functions are thread-safe unless a comment says otherwise; they may be called before any
 * mgpu* function, and never throw or exit. A program that may also run with LLVM's own library
 * should look these functions up with dlsym, and work without the functions that are missing. */
#ifndef MGPU_RT_H
#define MGPU_RT_H

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

#include <stddef.h>

struct ihipStream_t; /* hipStream_t is a pointer to this type */

/* Makes mgpuStreamCreate on the calling thread return `stream` instead of a stream of the library;
 * NULL restores the library's streams. The caller owns the stream, and mgpuStreamDestroy does not
 * destroy it. The stream must live until the thread calls this function with another value, or
 * ends. Returns 0, or -1 if memory ran out. */
int mgpu_rt_use_stream(struct ihipStream_t *stream);

/* Returns HIP's name for the error of the calling thread's last failed mgpu* call, such as
 * "hipErrorInvalidValue", and clears the error. Returns NULL if no call has failed since the last
 * call of this function. Static. Most mgpu* functions return nothing, so their callers can learn
 * about a failure only in this way. Each failure is also printed on stderr, and HIP's last error is
 * unchanged. */
const char *mgpu_rt_take_error(void);

/* Makes HIP release all cached objects that are not in use: modules that the program does not hold,
 * idle streams, device memory, pinned memory. Unregisters memory that the program has unregistered.
 * Drops the graphs of `mgpu-rt lower --graph`. Objects that the program holds remain. Returns the
 * number of released objects, without pinned memory. */
int mgpu_rt_empty_cache(void);

/* Registers `make_room`. If mgpuMemAlloc finds no device memory, the library calls `make_room`, and
 * then tries the allocation once more. `make_room` gets the device and the requested bytes; the
 * library's caches are empty by then. If the second try also fails, the call fails as in stock.
 * NULL removes the function.
 *
 * `make_room` runs on the thread that allocates, so it may run on several threads at once.
 * `make_room` may free memory by mgpuMemFree or HIP, and must return with the thread's current
 * device unchanged. The library calls `make_room` neither for allocations that `make_room` makes
 * nor for a graph's memory. If an override (mgpu_rt_intercept) makes the allocation, the mgpu*
 * calls that `make_room` makes bypass the overrides. A forked child also calls `make_room`. */
void mgpu_rt_on_out_of_memory(void (*make_room)(int device, size_t bytes));

/* Returns a copy of the recording so far, which the caller frees with free(), and stores its size
 * in *bytes. Returns NULL if memory ran out. A recording begins with a head that names each field
 * and its place; the files of MGPU_RT_STATS and MGPU_RT_TRACE have the same format. `mgpu-rt stats`
 * and mgpu_rt.stats() read it, and docs/statistics.md describes their JSON.
 *
 * If neither MGPU_RT_STATS nor MGPU_RT_TRACE was set at the first call, the library counts only
 * misses, evictions and memory (docs/statistics.md). All other counts are then null. */
void *mgpu_rt_record(size_t *bytes);

/* ---- scratch buffers ----
 *
 * Device memory that a program needs repeatedly for a short time, such as the arguments or the
 * results of a launch. Each owner has one buffer. The library allocates an owner's buffer at the
 * first reservation, and replaces the buffer by a larger one when a reservation needs more bytes. A
 * release takes effect in the order of the owner's stream. Owners may be moved, but not copied.
 *
 *     struct mgpu_rt_scratch scratch = {.stream = stream};
 *     void *room = mgpu_rt_scratch_reserve(&scratch, bytes);
 *     ...
 *     mgpu_rt_scratch_release(&scratch);
 *
 * One thread at a time may use an owner; different owners need no synchronisation. */
struct mgpu_rt_scratch {
    struct ihipStream_t *stream; /* the stream in whose order the buffer is used and released; the
                                  * stream must outlive the owner. NULL: the null stream */
    void *data;                  /* device memory, or NULL */
    size_t capacity;             /* bytes at data */
};

/* Returns device memory of at least `bytes` bytes. If the buffer has grown, its content is
 * undefined. New work must not use earlier pointers into the buffer (pending work may still use
 * them). Returns NULL if there is no memory: the owner's buffer is then unchanged. For 0 bytes the
 * function returns the current buffer. While the thread builds a graph, a buffer that exists must
 * not grow: no graph is built then. */
void *mgpu_rt_scratch_reserve(struct mgpu_rt_scratch *scratch, size_t bytes);

/* Releases the buffer in its stream's order. The owner is then empty and may be used again. */
void mgpu_rt_scratch_release(struct mgpu_rt_scratch *scratch);

/* Moves the buffer and the stream of `from` to `to`, after a release of the earlier buffer of `to`.
 * Afterwards `from` has no buffer, and keeps its stream. Moving an owner to itself does nothing. */
void mgpu_rt_scratch_move(struct mgpu_rt_scratch *to, struct mgpu_rt_scratch *from);

/* ---- graphs ----
 *
 * A graph contains the GPU work of a lowered function. The program builds the graph once, and
 * submits the graph as often as needed:
 *
 *     struct mgpu_rt_graph *graph = NULL;
 *     if (mgpu_rt_graph_begin() == 0) {
 *         lowered(...);                                     nothing runs yet
 *         graph = mgpu_rt_graph_end();
 *     }
 *     if (graph)
 *         mgpu_rt_graph_launch(graph, stream);
 *     else
 *         lowered(...);                                     runs without a graph
 *
 * Between begin and end the mgpu* calls of the calling thread become nodes: launches, fills,
 * copies. The nodes form a chain in the order of the calls, even if the calls use several streams.
 * Host code between begin and end runs once, while the graph is built: this code must only submit
 * work. A node stores addresses of device memory, the source and destination of a copy,
 * and the values of a kernel's arguments. A copy from or to the host accesses host memory each time
 * the graph runs. The program must therefore not free, register or unregister this host memory. A
 * copy to the host is complete once the program has waited for the stream.
 *
 * Memory that is allocated between begin and end belongs to the graph: no other caller gets it
 * while the graph exists. A module stays loaded as long as a graph launches its kernels.
 *
 * While a thread builds a graph, the thread must not register memory, or allocate memory that host
 * and device share. The thread must not launch cooperatively, in clusters or by host symbol, must
 * not use sparse matrices, and must not begin or launch another graph. A call that fails also
 * prevents the graph. The thread must not load or unload a module with writable globals, and must
 * not free memory that was allocated before begin. A stream must not wait for an event that was
 * recorded only before begin, and no call may ask for the time between events. If a call cannot be
 * part of the graph, a line on stderr names the call. After a call that a graph cannot contain, no
 * more work runs until the end, and no graph is built. */
struct mgpu_rt_graph;

/* Begins a graph: from here on the calling thread builds the graph on the thread's current device.
 * Returns 0; or -1, with a line on stderr, if the thread is already building a graph, or cannot
 * build one. No thread can build a graph if the caches are off, or while a function of the user
 * overrides calls (mgpu_rt_intercept). After -1 the thread's calls run at once, unless an earlier
 * begin succeeded: do not make them again. Caches and overrides are reported once in a process. If
 * the thread ends before mgpu_rt_graph_end, no graph is built. */
int mgpu_rt_graph_begin(void);

/* Returns the graph that the calling thread has built, and that the caller now owns; NULL if there
 * is none. If begin returned 0, no call since begin has submitted work to the GPU. */
struct mgpu_rt_graph *mgpu_rt_graph_end(void);

/* Submits a graph to a stream of its device, even while an earlier launch of the graph runs: the
 * launches run one after the other. Another device may be current. Returns 0; or -1, with a line on
 * stderr, if the launch fails: then no work runs. A launch fails if the graph is NULL, the stream
 * belongs to another device, HIP refuses the launch, or the device was reset. A launch also fails
 * if the program has registered, unregistered, freed or reallocated memory that the graph copies or
 * fills. The library asks HIP about that memory, once for each allocation.
 *
 * Before HIP 6.3, make all calls on one thread. If another thread launches a kernel of the graph
 * without a graph, HIP may run both kernels with wrong arguments. A line on stderr says once that
 * other threads make calls. */
int mgpu_rt_graph_launch(struct mgpu_rt_graph *graph, struct ihipStream_t *stream);

/* Destroys a graph (NULL: does nothing); no thread may use it afterwards. Waits for the device if
 * the graph was ever launched: afterwards other callers may get the graph's memory. Memory that the
 * program has not freed still belongs to the program. */
void mgpu_rt_graph_destroy(struct mgpu_rt_graph *graph);

/* Returns the number of the graph's nodes; 0 for NULL. */
size_t mgpu_rt_graph_nodes(const struct mgpu_rt_graph *graph);

/* ---- functions of `mgpu-rt lower --graph` ----
 *
 * `mgpu-rt lower --graph` wraps functions. Each wrapped function first calls mgpu_rt_graph_enter,
 * which decides how the current call runs. A call with the arguments of an earlier call builds a
 * graph, and later calls with these arguments replay the graph. The library remembers the arguments
 * of four calls. Concurrent and recursive calls run without the graph. */
struct mgpu_rt_graph_function {
    const char *name; /* for messages */
    void *state;      /* the library's state for the function; NULL at first */
};

enum mgpu_rt_graph_way {
    MGPU_RT_GRAPH_DONE,     /* the graph was replayed and its work is complete, so the function
                             * returns */
    MGPU_RT_GRAPH_PLAINLY,  /* the function must run its body */
    MGPU_RT_GRAPH_BUILDING, /* the function must run its body, and then call mgpu_rt_graph_leave */
};

/* Returns an enum mgpu_rt_graph_way. `arguments` are the arguments of the current call, as bytes;
 * each call of a function passes the same number of bytes. */
int mgpu_rt_graph_enter(struct mgpu_rt_graph_function *function, const void *arguments,
                        size_t bytes);

/* Ends the function's graph, and launches the graph. Returns 0; or -1 if nothing was done: then the
 * function must run once more, without a graph. */
int mgpu_rt_graph_leave(struct mgpu_rt_graph_function *function);

/* ---- a runtime of your own ----
 *
 * An override is a function that handles the program's calls of one mgpu* function, instead of the
 * library. MGPU_RT_RUNTIME uses overrides for a runtime in Python. While an override is set, every
 * other call takes about 10 ns longer; without overrides calls cost nothing more.
 *
 * The library itself handles the creation and destruction of an external stream
 * (mgpu_rt_use_stream). While an external stream is captured, the library itself handles all calls
 * of the thread that uses the stream. No graph is built while overrides are set. A graph that was
 * built earlier is replayed without calls to the overrides. */
typedef void (*mgpu_rt_function)(void); /* a caller casts to the mgpu* function's own type */

/* Returns this library's own function with a name ("mgpuStreamCreate"), even if an override has
 * replaced it; NULL if no function has that name. An override calls this function in place of its
 * own name, which would call the override again. Statistics count the program's call, but do not
 * count an override's calls of the returned function. */
mgpu_rt_function mgpu_rt_native(const char *name);

/* Makes `instead` handle the program's calls of a function from now on; with NULL, the library
 * handles these calls again. The function for "end" is called without arguments when the process
 * ends and HIP still works. In a forked child there is no override. A call in progress finishes in
 * the function in which it began. Returns 0, or -1 if there is no such function. */
int mgpu_rt_intercept(const char *name, mgpu_rt_function instead);

/* Prints, in stock's words, that a call to HIP failed with this hipError_t, and stores the error
 * for mgpu_rt_take_error. */
void mgpu_rt_report(const char *call, int error);

/* Returns the version as "major.minor.patch"; the caller must not free this text. */
const char *mgpu_rt_version(void);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif
#endif
