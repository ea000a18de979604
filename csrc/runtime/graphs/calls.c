/* Handles the calls of a thread while it builds a graph. */
#include "driver/device.h"
#include "graphs/build.h"
#include "memory/blocks.h"
#include "memory/registrations.h"
#include "modules/modules.h"

static const char launch_call[] =
    "hipGraphAddKernelNode(&node, graph, dependencies, count, &params)";
static const char fill_call[] = "hipGraphAddMemsetNode(&node, graph, dependencies, count, &params)";
static const char copy_call[] =
    "hipGraphAddMemcpyNode1D(&node, graph, dependencies, count, dst, src, sizeBytes, "
    "hipMemcpyDefault)";

/* ---- streams and events ---- */

static void built_synchronize(hipStream_t stream) {
    (void)stream; /* later nodes follow the stream's nodes */
}

/* Returns true if the program created or recorded the event while it built this graph. */
static bool is_of_graph(hipEvent_t handle) {
    const struct event *event = event_held(handle);
    return event && event->graph == graph_building->number;
}

static void built_record(hipEvent_t handle, hipStream_t stream) {
    struct event *event = event_held(handle);
    (void)stream; /* later nodes follow all nodes so far */
    if (event)
        event->graph = graph_building->number;
    else
        graph_fail("it records event %p, which is no event of mgpuEventCreate", (void *)handle);
}

static hipEvent_t built_event_create(void) {
    const hipEvent_t handle = impl_mgpuEventCreate();
    if (handle)
        built_record(handle, NULL);
    return handle;
}

static void built_wait_event(hipStream_t stream, hipEvent_t handle) {
    (void)stream;
    const bool is_known = PROOF(event_is_of_the_graph, is_of_graph(handle));
    if (!is_known)
        graph_fail("it waits for event %p, which the program created before the graph",
                   (void *)handle);
}

/* LLVM 22 and older also pass streams as events. */
static void built_event_synchronize(hipEvent_t handle) {
    if (!is_of_graph(handle) && !stream_known((hipStream_t)handle))
        impl_mgpuEventSynchronize(handle);
}

static struct mgpu_elapsed built_elapsed(void *first, void *second, void *third) {
    (void)first, (void)second, (void)third;
    graph_fail("it asks for the time between events");
    return (struct mgpu_elapsed){.error = hipErrorNotSupported};
}

/* ---- memory ---- */

static void *new_block(uint64_t bytes) {
    /* The block must be ready for any stream, because the graph may be launched on any stream. */
    hipError_t error;
    PROOF_STEP(reset_before_block_reuse, (void)device_kept(graph_building->device));
    void *const address = block_search(bytes, graph_building->device, NULL, false, &error);
    const bool is_owned =
        address && PROOF(block_is_the_graphs, block_give_graph(address, graph_building->number));
    if (!is_owned)
        graph_fail_call("hipMalloc(&ptr, sizeBytes)", error);
    return address;
}

static void *built_alloc(uint64_t bytes, hipStream_t handle, bool shared) {
    if (DOUBT(host_shares_the_memory, shared && !handle))
        graph_fail("it allocates memory that the host shares");
    if (!bytes)
        return impl_mgpuMemAlloc(bytes, handle, false);
    const bool is_cached =
        PROOF(cache_has_the_graphs_memory, block_serves(bytes, graph_building->device));
    if (!is_cached) {
        graph_fail("it allocates %llu bytes, which MGPU_RT_CACHE=%s leaves to HIP",
                   (unsigned long long)bytes, options.cache);
        return NULL;
    }
    call_tell(CALL_PLAIN);
    void *address = block_serve_graph(bytes, graph_building->device, NULL, graph_building->number);
    return address ? address : new_block(bytes);
}

static void built_free(void *address, hipStream_t stream) {
    struct block *block = block_find(address);
    (void)stream; /* a later user of the block follows all nodes so far */
    if (!address)
        return;
    const bool is_freed = block && load_relaxed(&block->graph) == graph_building->number &&
                          PROOF(graph_frees_its_block_once, block_leave_to_graph(block, NULL));
    if (!is_freed)
        graph_fail("it frees %p, which it has not allocated", address);
}

/* Returns how many nodes the next node follows: the last node, or none. */
static size_t predecessors(void) {
    return PROOF_VALUE(node_follows_the_last_node, graph_building->node_count != 0, 0);
}

/* Adds a node. The macro calls HIP's `function`, whose last arguments are the last arguments of the
 * macro. */
#define ADD_NODE(expression, function, ...)                                                        \
    do {                                                                                           \
        hipGraphNode_t node_ = NULL;                                                               \
        pthread_mutex_lock(&graph_lock);                                                           \
        const hipError_t error_ = hip.function(                                                    \
            &node_, graph_building->graph, &graph_building->last, predecessors(), __VA_ARGS__);    \
        pthread_mutex_unlock(&graph_lock);                                                         \
        if (error_ == hipSuccess) {                                                                \
            graph_building->last = node_;                                                          \
            graph_building->node_count++;                                                          \
        } else {                                                                                   \
            graph_fail_call(expression, error_);                                                   \
        }                                                                                          \
    } while (0)

static void built_copy(void *to, void *from, size_t bytes, hipStream_t stream) {
    (void)stream;
    call_tell(CALL_PLAIN);
    if (graph_building->failed || !bytes)
        return;
    PROOF_STEP(graph_copies_no_idle_memory, registrations_yield(to, bytes));
    PROOF_STEP(graph_copies_no_idle_memory, registrations_yield(from, bytes));
    graph_note_memory(to);
    graph_note_memory(from);
    ADD_NODE(copy_call, GraphAddMemcpyNode1D, to, from, bytes, hipMemcpyDefault);
}

static void add_fill(void *to, unsigned value, size_t count, unsigned element) {
    if (graph_building->failed || !count)
        return;
    graph_note_memory(to);
    const hipMemsetParams params = {.dst = to,
                                    .elementSize = element,
                                    .height = 1,
                                    .pitch = element * count,
                                    .value = value,
                                    .width = count};
    ADD_NODE(fill_call, GraphAddMemsetNode, &params);
}

static void built_fill32(void *to, int value, size_t count, hipStream_t stream) {
    (void)stream;
    add_fill(to, (unsigned)value, count, 4);
}

static void built_fill16(void *to, uint16_t value, size_t count, hipStream_t stream) {
    (void)stream;
    add_fill(to, value, count, 2);
}

/* ---- modules and launches ---- */

/* A run without the graph loads the module again, with fresh globals; the graph's module is loaded
 * only once. */
static void refuse_globals(hipModule_t handle) {
    const struct module *module = handle ? handle_find(&module_map, handle) : NULL;
    if (module && DOUBT(module_has_globals, module_state(module) == MODULE_LIVE && !module->shared))
        graph_fail("it loads or unloads a module with writable globals, or with constants that HIP "
                   "knows by name: each run needs the values of a new load");
}

static hipModule_t loaded(hipModule_t module) {
    if (!module)
        graph_fail("a module was not loaded");
    refuse_globals(module);
    return module;
}

static hipModule_t built_load(void *image, size_t size) {
    return loaded(impl_mgpuModuleLoad(image, size));
}

static hipModule_t built_load_jit(void *assembly, int level, size_t size) {
    return loaded(impl_mgpuModuleLoadJIT(assembly, level, size));
}

static void built_unload(hipModule_t module) {
    refuse_globals(module);
    impl_mgpuModuleUnload(module);
}

/* HIP keeps the module loaded as long as the graph exists. */
static bool hold_module_of(hipFunction_t function) {
    struct module *module = module_hold_function(function);
    if (!module && cache_is_on(CACHE_MODULES) && cache_is_on(CACHE_FUNCTIONS))
        graph_fail("it launches %p, which is no function of a cached module", (void *)function);
    else if (!module)
        graph_fail("it launches a kernel, whose module MGPU_RT_CACHE=%s leaves to HIP",
                   options.cache);
    if (!module)
        return false;
    for (const struct graph_module *held = graph_building->modules; held; held = held->next)
        if (held->module == module) {
            module_let_go(module); /* the graph already holds the module */
            return true;
        }
    struct graph_module *held = graph_list_add(&graph_building->modules, sizeof *held);
    if (held)
        held->module = module;
    else
        module_let_go(module);
    return held;
}

/* HIP refuses a launch with too much workgroup memory, but HIP 5.2.3 accepts it in a graph. */
static void built_launch(hipFunction_t function, intptr_t gridX, intptr_t gridY, intptr_t gridZ,
                         intptr_t blockX, intptr_t blockY, intptr_t blockZ, int32_t smem,
                         hipStream_t stream, void **params, void **extra, size_t params_count) {
    static void *none[1]; /* HIP 5.2.3 and 5.7.1 require kernelParams or extra */
    const double threads = (double)blockX * (double)blockY * (double)blockZ;
    (void)stream;
    (void)params_count;
    if (gridX < 1 || gridY < 1 || gridZ < 1 ||
        DOUBT(no_gpu_has_such_blocks, threads < 1 || threads > 1024) ||
        !device_has_group_memory(graph_building->device, smem)) {
        graph_fail("it launches a grid of %ld x %ld x %ld, blocks of %ld x %ld x %ld and %d bytes, "
                   "which no GPU runs",
                   (long)gridX, (long)gridY, (long)gridZ, (long)blockX, (long)blockY, (long)blockZ,
                   (int)smem);
        return;
    }
    if (graph_building->failed || !hold_module_of(function))
        return;
    const hipKernelNodeParams node = {
        .blockDim = {(uint32_t)blockX, (uint32_t)blockY, (uint32_t)blockZ},
        .extra = extra,
        .func = function,
        .gridDim = {(uint32_t)gridX, (uint32_t)gridY, (uint32_t)gridZ},
        .kernelParams = params || extra ? params : none,
        .sharedMemBytes = (unsigned)smem};
    ADD_NODE(launch_call, GraphAddKernelNode, &node);
}

static void built_set_device(int32_t device) {
    if (DOUBT(graph_has_another_device, device != graph_building->device))
        graph_fail("it switches to device %d", (int)device);
    else
        impl_mgpuSetDefaultDevice(device);
}

/* ---- all calls ---- */

/* Stands for the usual implementation, which answers the call even while a graph is built. */
static void usual(void) {}

/* NULL: the call is no part of a graph. */
static const mgpu_rt_function built[ABI_COUNT] = {
    [ABI_mgpuStreamCreate] = usual,
    [ABI_mgpuStreamDestroy] = usual,
    [ABI_mgpuStreamSynchronize] = (mgpu_rt_function)built_synchronize,
    [ABI_mgpuStreamWaitEvent] = (mgpu_rt_function)built_wait_event,
    [ABI_mgpuEventCreate] = (mgpu_rt_function)built_event_create,
    [ABI_mgpuEventDestroy] = usual,
    [ABI_mgpuEventRecord] = (mgpu_rt_function)built_record,
    [ABI_mgpuEventSynchronize] = (mgpu_rt_function)built_event_synchronize,
    [ABI_mgpuEventElapsedTime] = (mgpu_rt_function)built_elapsed,
    [ABI_mgpuMemAlloc] = (mgpu_rt_function)built_alloc,
    [ABI_mgpuMemFree] = (mgpu_rt_function)built_free,
    [ABI_mgpuMemcpy] = (mgpu_rt_function)built_copy,
    [ABI_mgpuMemset16] = (mgpu_rt_function)built_fill16,
    [ABI_mgpuMemset32] = (mgpu_rt_function)built_fill32,
    [ABI_mgpuModuleLoad] = (mgpu_rt_function)built_load,
    [ABI_mgpuModuleLoadJIT] = (mgpu_rt_function)built_load_jit,
    [ABI_mgpuModuleUnload] = (mgpu_rt_function)built_unload,
    [ABI_mgpuModuleGetFunction] = usual,
    [ABI_mgpuModuleGetGlobal] = usual,
    [ABI_mgpuModuleOccupancyMaxActiveBlocks] = usual,
    [ABI_mgpuLaunchKernel] = (mgpu_rt_function)built_launch,
    [ABI_mgpuSetDefaultDevice] = (mgpu_rt_function)built_set_device,
    [ABI_mgpuTensorMapEncodeTiled] = usual,
    [ABI_mgpuTensorMapEncodeTiledMemref] = usual,
};

void graph_no_answer(void) {}

mgpu_rt_function graph_call(enum abi_index function) {
    if (built[function] == usual)
        return NULL;
    const bool is_refused = PROOF_VALUE(call_is_no_part_of_a_graph, !built[function], false);
    if (is_refused)
        graph_fail("%s cannot be in a graph", abi_names[function]);
    return is_refused ? graph_no_answer : built[function];
}
