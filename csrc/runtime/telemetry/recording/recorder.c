#include "telemetry/recording/recorder.h"
#include "driver/exclusive.h"
#include "memory/blocks.h"
#include "mgpu_rt.h"
#include "mgpu_rt_private.h"
#include "modules/modules.h"
#include "process/lines.h"
#include "process/mapped.h"
#include "telemetry/keys.h"
#include "telemetry/trace.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* The current meanings of HIP's handles: 1 + the row; for an unknown handle, 0. If HIP gives a
 * released handle to a new object, the new meaning replaces the old meaning. */
enum { HANDLES = 4096 };
struct meanings {
    uint64_t handles[HANDLES];
    uint16_t meaning[HANDLES];
};
static struct meanings modules, kernels;

static void set_meaning(struct meanings *table, const void *handle, size_t meaning) {
    bool fresh;
    const size_t place =
        handle ? key_enter(table->handles, HANDLES, (uintptr_t)handle, &fresh) : HANDLES;
    if (place < HANDLES)
        store_relaxed(&table->meaning[place], (uint16_t)meaning);
}

static size_t meaning_of(const struct meanings *table, const void *handle) {
    const size_t place = handle ? key_find(table->handles, HANDLES, (uintptr_t)handle) : HANDLES;
    return place < HANDLES ? load_relaxed(&table->meaning[place]) : 0;
}

/* ---- modules ---- */

static enum unshared why_unshared(const struct image *image) {
    if (!cache_is_on(CACHE_MODULES))
        return UNSHARED_CACHE_OFF;
    if (!image->writable)
        return UNSHARED_NOT;
    return image->opaque ? UNSHARED_OPAQUE : UNSHARED_WRITABLE;
}

/* Fills an image's row, unless the row is already filled. The function stores the row's field
 * `bytes` last, because a reader of the row checks this field. No thread calls the loader under
 * tables_lock, so the place is found before. */
static void fill_row(size_t row, const struct image *image) {
    struct module_counter *counter = &counts.modules[row];
    struct place place;
    if (load_acquire(&counter->bytes))
        return;
    place.offset = mapped_place(image->bytes, place.file, sizeof place.file);
    pthread_mutex_lock(&tables_lock);
    if (!counter->bytes) {
        counter->why = why_unshared(image);
        counts.module_places[row] = place;
        store_release(&counter->bytes, image->size);
    }
    pthread_mutex_unlock(&tables_lock);
}

/* Returns 1 + the row of an image; 0 if the image cannot be read, or has no row. */
static size_t enter_image(const void *data) {
    const struct image image = image_describe(data);
    bool fresh;
    const size_t row =
        image.hash ? key_enter(counts.module_keys, MODULES, image.hash, &fresh) : MODULES;
    if (row == MODULES)
        return 0;
    if (fresh && trace_on())
        faults_know_image(&image);
    fill_row(row, &image);
    return row + 1;
}

/* A hit returns a module that an earlier call has loaded. */
static void count_load(const struct call *call, hipModule_t handle) {
    size_t image = call->how == CALL_HIT ? meaning_of(&modules, handle) : 0;
    if (!image)
        image = enter_image(call->image);
    set_meaning(&modules, handle, image);
    if (!image)
        return;
    struct module_counter *module = &counts.modules[image - 1];
    fetch_add_relaxed(&module->loads, 1);
    if (call->how == CALL_MISS || call->how == CALL_BYPASS)
        fetch_add_relaxed(&module->driver_loads, 1);
}

/* ---- kernels ---- */

/* Adds a row for a kernel that a program has looked up. */
static void enter_kernel(const struct call *call, const hipFunction_t *handle) {
    bool fresh;
    if (!*handle || !call->name)
        return;
    const size_t module = meaning_of(&modules, call->module);
    const uint64_t image = module ? counts.module_keys[module - 1] : 0;
    const uint64_t key = faults_kernel_key(image, call->name, strlen(call->name));
    const size_t row = key_enter(counts.kernel_keys, KERNELS, key, &fresh);
    if (row < KERNELS && fresh) {
        counts.kernel_names[row].image = image;
        snprintf(counts.kernel_names[row].name, KERNEL_NAME, "%s", call->name);
        if (trace_on())
            faults_know_kernel(*handle, key);
    }
    set_meaning(&kernels, *handle, row < KERNELS ? row + 1 : 0);
}

/* Returns the row of a kernel in the counters, by HIP's handle; KERNELS if it has no row. */
static size_t row_of(const void *handle) {
    const size_t row = meaning_of(&kernels, handle) - 1;
    return row < KERNELS ? row : KERNELS;
}

/* Counts a launch; returns the kernel's row. */
static size_t count_launch(const struct call *call, uint64_t nanoseconds) {
    const size_t row = row_of(call->kernel);
    stats_call(row < KERNELS ? &counts.kernels[row] : &counts.other_kernels, nanoseconds);
    return row;
}

/* ---- copies ---- */

static enum copy_way way_of(const struct call *call) {
    const bool to = ranges_find(call->to, call->bytes) == RANGE_DEVICE;
    const bool from = ranges_find(call->from, call->bytes) == RANGE_DEVICE;
    if (to)
        return from ? COPY_ON_DEVICE : COPY_TO_DEVICE;
    return from ? COPY_FROM_DEVICE : COPY_UNKNOWN;
}

/* Counts a copy or a fill, unless it failed and moved nothing. */
static void count_copy(const struct call *call, enum copy_way way) {
    if (call->error != hipSuccess)
        return;
    fetch_add_relaxed(&counts.copies[way].calls, 1);
    fetch_add_relaxed(&counts.copies[way].bytes, call->bytes);
}

/* ---- memory ---- */

/* Records that the program gets the block of the current call (sign 1), or gives it back (-1). */
static void tell_block(const void *address, int sign) {
    struct block *block = block_find(address);
    if (!block || (!block_held_by_program(block) && !(sign < 0 && block_free_late(block))))
        return;
    call_now.device = block_device(block);
    call_now.held += sign * (ptrdiff_t)block_asked(block);
}

static void count_held(struct memory_account *memory, ptrdiff_t bytes) {
    const size_t now = add_fetch_relaxed(&memory->allocated, (size_t)bytes);
    size_t peak = load_relaxed(&memory->peak_allocated);
    fetch_add_relaxed(&memory->live, bytes > 0 ? 1 : UINT64_MAX);
    while (bytes > 0 && now > peak && !cas_weak_relaxed(&memory->peak_allocated, &peak, now))
        continue;
}

/* Traces the memory of a device, if it has changed since the last event. */
static void trace_memory(int device) {
    static size_t last_held[MOST_DEVICES], last_reserved[MOST_DEVICES];
    const size_t held = load_relaxed(&counts.memory[device].allocated);
    const size_t reserved = block_reserved(device);
    const bool changed = exchange_relaxed(&last_held[device], held) != held;
    if (exchange_relaxed(&last_reserved[device], reserved) != reserved || changed)
        trace_add(&(struct trace_event){.kind = TRACE_MEMORY,
                                        .function = (uint16_t)device,
                                        .begin = clock_ns(),
                                        .nanoseconds = held,
                                        .bytes = reserved > held ? reserved - held : 0});
}

/* Traces all devices, because a call or the manager may have released memory on any device. */
static void count_memory(const struct call *call) {
    if (call->held)
        count_held(&counts.memory[call->device], call->held);
    for (int device = 0; trace_on() && device < hip_device_count && device < MOST_DEVICES; device++)
        trace_memory(device);
}

void recorder_block(const void *address, int sign) {
    if (!runtime_counting())
        return;
    tell_block(address, sign);
    count_memory(&call_now);
    call_now.held = 0;
}

/* ---- a call ---- */

/* Begins a range for a launch. If the kernel is unknown, the range has the name of the called mgpu*
 * function. */
static void mark(struct call *call) {
    const size_t row = row_of(call->kernel);
    call->marked =
        marker_begins(row < KERNELS ? counts.kernel_names[row].name : abi_name(call->function));
}

/* Records the name of the device on which the program starts, once. */
static void name_device(void) {
    static bool known;
    char *name = counts.start.device;
    int device = 0;
    if (LIKELY(load_relaxed(&known)) || exchange_relaxed(&known, true))
        return;
    (void)thread_get(); /* thread_get also selects the device */
    if (hip_untimed.GetDevice(&device) == hipSuccess &&
        hip_untimed.DeviceGetName(name, sizeof counts.start.device - 1, device) == hipSuccess)
        return;
    name[0] = '\0';
    (void)hip_untimed.GetLastError(); /* later calls of the program will return the same error */
}

void recorder_begins(struct call *call) {
    if (runtime_counting() && call->function != ABI_mgpuSetDefaultDevice)
        name_device();
    if (runtime_counting() && call->function == ABI_mgpuMemFree)
        tell_block(call->to, -1);
    if (options.trace_markers_on && call->kernel)
        mark(call);
    call->begin = clock_ns();
    if (trace_on() && runtime_counting())
        faults_trace(call, row_of(call->kernel));
}

/* Counts the details of a call, if its function has details. Returns the kernel's row;
 * TRACE_NO_KERNEL if the call launches no kernel. */
static size_t count_details(const struct call *call, const void *result, uint64_t nanoseconds) {
    switch (call->function) {
    case ABI_mgpuModuleLoad:
    case ABI_mgpuModuleLoadJIT:
        if (*(const hipModule_t *)result)
            count_load(call, *(const hipModule_t *)result);
        break;
    case ABI_mgpuModuleGetFunction:
        if (call->how != CALL_HIT)
            enter_kernel(call, result);
        break;
    case ABI_mgpuLaunchKernel:
    case ABI_mgpuLaunchKernelCooperative:
    case ABI_mgpuLaunchClusterKernel:
    case ABI_mgpuLaunchKernelRT:
        return count_launch(call, nanoseconds);
    case ABI_mgpuMemcpy:
        count_copy(call, way_of(call));
        break;
    case ABI_mgpuMemset16:
    case ABI_mgpuMemset32:
        count_copy(call, COPY_FILL);
        break;
    default:
        break;
    }
    return TRACE_NO_KERNEL;
}

static void trace_call(const struct call *call, const void *result, uint64_t nanoseconds,
                       size_t kernel) {
    const enum memory_life life = faults_memory_life(call->function);
    const void *memory = call->function == ABI_mgpuMemAlloc ? *(void *const *)result
                         : life == MEMORY_AS_BEFORE         ? NULL
                                                            : call->to;
    const bool begins = life == MEMORY_BEGINS && memory;
    trace_add(
        &(struct trace_event){.kind = TRACE_PROGRAM,
                              .function = (uint16_t)call->function,
                              .begin = call->begin,
                              .nanoseconds = nanoseconds,
                              .bytes = call->bytes,
                              .address = (uintptr_t)memory,
                              .kernel = (uint16_t)kernel,
                              .stream = call->in_stream ? (uintptr_t)call->stream : TRACE_NO_STREAM,
                              .detail = (uint16_t)call->how,
                              .error = (uint16_t)call->error,
                              .place = begins ? trace_place(call->site) : 0});
}

/* Misses are counted where they happen (stats_miss). Nothing bypasses a cache that is off. */
static void count_answer(enum cache_kind cache, enum call_how how) {
    if (how == CALL_HIT)
        fetch_add_relaxed(&counts.caches[cache].hits, 1);
    else if (how == CALL_BYPASS && cache_is_on(cache))
        fetch_add_relaxed(&counts.caches[cache].bypasses, 1);
}

void recorder_ended(const struct call *call, const void *result) {
    if (call->marked)
        marker_ended();
    if (!runtime_counting())
        return; /* the process's first call, or a call after the exit */
    const uint64_t nanoseconds = clock_ns() - call->begin;
    stats_call(&counts.abi[call->function], nanoseconds);
    if (call->cache && call->cache <= CACHE_COUNT)
        count_answer(call->cache - 1, call->how);
    if (call->error != hipSuccess)
        stats_failure(call->function, call->error);
    if (call->overridden && !call->native)
        fetch_add_relaxed(&counts.overridden, 1);
    store_relaxed(&counts.process.last, call->begin + nanoseconds);
    if (call->function == ABI_mgpuMemAlloc)
        tell_block(*(void *const *)result, 1);
    count_memory(call);
    const size_t kernel = count_details(call, result, nanoseconds);
    if (trace_on())
        trace_call(call, result, nanoseconds, kernel);
}

/* ---- the recording ---- */

static bool is_open;

/* MGPU_RT_STATS is a path, "1" for the table, or both: "1,PATH". */
static bool wants_table(void) {
    return strcmp(options.stats, "1") == 0 || strncmp(options.stats, "1,", 2) == 0;
}

/* The path /dev/null asks for counts without a file. */
static bool names_file(const char *path) {
    return path[0] && strcmp(path, "/dev/null") != 0;
}

/* Returns new pages for the trace, after the counters have got the recording's pages. Returns NULL
 * if there is no recording. */
static void *recording_pages(size_t trace) {
    const char *stats = wants_table() ? options.stats + (options.stats[1] ? 2 : 1) : options.stats;
    const bool is_traced = names_file(options.trace);
    if (is_traced && names_file(stats) && strcmp(stats, options.trace) != 0)
        line_print("MGPU_RT_STATS: the statistics are in the recording that MGPU_RT_TRACE names");
    if (is_traced || names_file(stats)) {
        record_head(counts.head, sizeof counts + trace);
        return record_file(is_traced ? "MGPU_RT_TRACE" : "MGPU_RT_STATS",
                           is_traced ? options.trace : stats, trace);
    }
    void *pages = trace ? mmap(NULL, trace, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
                        : MAP_FAILED;
    return pages == MAP_FAILED ? NULL : pages;
}

void recorder_start(uint64_t begin, uint64_t nanoseconds) {
    fetch_add_relaxed(&counts.start.nanoseconds, nanoseconds);
    faults_watch();
    call_now.begin += nanoseconds;
    if (trace_on() && nanoseconds)
        trace_add(&(struct trace_event){.kind = TRACE_START,
                                        .begin = begin,
                                        .nanoseconds = nanoseconds,
                                        .kernel = TRACE_NO_KERNEL,
                                        .stream = TRACE_NO_STREAM});
}

/* Returns a description of this process, with the current time as `date`. */
static struct process describe_process(uint64_t begin) {
    struct process process = {
        .id = getpid(), .rank = options_rank(), .begin = begin, .date = time(NULL)};
    snprintf(process.program, sizeof process.program, "%s", program_invocation_short_name);
    return process;
}

void recorder_open(uint64_t begin) {
    is_open = true;
    counts.start.counted = 1;
    counts.start.exclusive = exclusive_hip();
    counts.process = describe_process(begin ? begin : clock_ns());
    void *pages = recording_pages(options.trace[0] ? sizeof(struct trace) : 0);
    trace_into(options.trace[0] ? pages : NULL);
    witness_record();
}

void recorder_leave(void) {
    is_open = false;
    stats_reset();
    counts.start.counted = stats_wanted();
    trace_into(NULL);
    memset(&modules, 0, sizeof modules);
    memset(&kernels, 0, sizeof kernels);
}

/* Adds what is only counted at the end. */
static void complete(struct counts *record) {
    if (!record->process.id)
        record->process = describe_process(clock_ns());
    snprintf(record->process.manager, MANAGER_NAME, "%s", mgpu_rt_manager());
    block_count_held(record->memory);
    store_relaxed(&record->process.last, clock_ns());
}

void *mgpu_rt_record(size_t *bytes) {
    const struct trace *trace = trace_now;
    const uint64_t next = trace ? load_acquire(&trace->next) : 0;
    const uint64_t events = next < TRACE_EVENTS ? next : TRACE_EVENTS;
    const size_t traced =
        trace ? offsetof(struct trace, events) + events * sizeof trace->events[0] : 0;
    *bytes = sizeof counts + traced;
    char *copy = aligned_alloc(COUNT_PAGE, (*bytes + COUNT_PAGE - 1) / COUNT_PAGE * COUNT_PAGE);
    if (!copy)
        return NULL;
    memcpy(copy, &counts, sizeof counts);
    if (trace)
        memcpy(copy + sizeof counts, trace, traced);
    record_head(copy, *bytes);
    complete((struct counts *)(void *)copy);
    return copy;
}

void recorder_close(void) {
    if (!is_open)
        return;
    is_open = false;
    recorder_block(NULL, 0);
    fetch_and_release(&runtime_mode, ~(unsigned)MODE_TIMED); /* other threads may be within calls */
    complete(&counts);
    counts.process.exited = 1;
    if (wants_table())
        statistics_print_tables();
}
