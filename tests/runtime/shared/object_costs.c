/* Measures calls beside many objects: a call's cost should not depend on their number.
 *
 *     object_costs RUNTIME NUMBER CALLS [KIND]   runs `measured` once for each kind, for callgrind
 *     object_costs kinds                         JSON: the kinds, in that order
 *
 * The variable STREAMS says on how many streams idle blocks were freed (1), and BYTES how many
 * bytes a block has (256).
 *
 * NUMBER is at most MOST. The calls of a round visit the objects in an order without locality. The
 * stub of HIP has no cost of its own that depends on the number of objects. */
#include "bench/native/runtime.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#define MOST 100000
#define EXTRA 256 /* names and blocks beyond MOST, for calls that each need a new one */
#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)
enum {
    IMAGE_BYTES = 256,
    BUNDLE_BYTES = 64 << 10,
    NAME_BYTES = 8,
    STRIDE = 7919, /* a prime */
    MOST_STREAMS = 256,
    MOST_USED_STREAMS = 2000,
    FIRST_FREES = 16, /* the first evictions order all blocks, which costs each block once */
};

/* Constants of the program: code objects that differ in 8 bytes, and names of kernels. An image has
 * a header, a section of 64 bytes, and the headers of an empty section and of this section. As in
 * images of LLD, the headers come last. */
__asm__(".section .rodata\n"
        ".balign 64\n"
        "object_images:\n"
        ".set object_index, 0\n"
        ".rept " TEXT(
            MOST) "\n"
                  ".quad 0x00010102464c457f, 0, 0x0000000100e00003, 0, 0, 128, "
                  "0x0038004000000000\n"
                  ".quad 0x0001000200400000, 0, 0, 0, 0, 0, 0, 0, object_index\n"
                  ".quad 0, 0, 0, 0, 0, 0, 0, 0, 0x0000000300000001, 0, 0, 64, 64, 0, 1, 0\n"
                  ".set object_index, object_index + 1\n"
                  ".endr\n"
                  "object_names:\n"
                  ".set object_index, 0\n"
                  ".rept " TEXT(MOST) " + " TEXT(
                      EXTRA) "\n"
                             ".byte 'k', 'a' + (object_index & 15), 'a' + (object_index >> 4 & "
                             "15), 'a' + (object_index >> 8 & 15)\n"
                             ".byte 'a' + (object_index >> 12 & 15), 'a' + (object_index >> 16 & "
                             "15), 'z', 0\n"
                             ".set object_index, object_index + 1\n"
                             ".endr\n"
                             ".previous\n");
extern const char object_images[][IMAGE_BYTES] __attribute__((visibility("hidden")));
extern const char object_names[][NAME_BYTES] __attribute__((visibility("hidden")));

static struct runtime runtime;
static void *(*MemAlloc)(uint64_t bytes, void *stream, bool host_shared);
static void (*MemFree)(void *address, void *stream);
static void (*Memcpy)(void *to, const void *from, size_t bytes, void *stream);
static void *(*EventCreate)(void);
static void (*EventDestroy)(void *event);
static void (*empty_cache)(void);

static long number;
static void *objects[MOST];
static void *module, *stream;
static void *streams[MOST_STREAMS], *extra[EXTRA];
static long stream_count = 1;
static uint64_t block_bytes = 256;
static char (*heap_images)[IMAGE_BYTES];
static char *bundle;
static char host[64];

static long object_of(long call) {
    return call * STRIDE % number;
}

/* ---- the calls ---- */

static void load(const char *image) {
    runtime.ModuleUnload(runtime.ModuleLoad(image, IMAGE_BYTES));
}

static void load_constant(long call) {
    load(object_images[object_of(call)]);
}

static void load_heap(long call) {
    load(heap_images[object_of(call)]);
}

static void load_bundle(long call) {
    (void)call;
    runtime.ModuleUnload(runtime.ModuleLoad(bundle, BUNDLE_BYTES));
}

static void load_and_hold(long call) {
    (void)call;
    (void)runtime.ModuleLoad(object_images[0], IMAGE_BYTES);
}

static void get_function(long call) {
    (void)runtime.ModuleGetFunction(module, object_names[object_of(call)]);
}

static void get_new_function(long call) {
    (void)runtime.ModuleGetFunction(module, object_names[MOST + call % EXTRA]);
}

static void launch_and_wait(void *on) {
    runtime.LaunchKernel(module, 1, 1, 1, 1, 1, 1, 0, on, NULL, NULL, 0);
    runtime.StreamSynchronize(on);
}

static void create_stream(long call) {
    (void)call;
    void *created = runtime.StreamCreate();
    launch_and_wait(created);
    runtime.StreamDestroy(created);
}

static void use_stream(long call) {
    launch_and_wait(objects[object_of(call)]);
}

static void allocate(long call) {
    (void)call;
    MemFree(MemAlloc(block_bytes, stream, false), stream);
}

/* Beyond the limit of memory the free evicts a block, and the allocation misses. */
static void free_and_allocate(long call) {
    const long object = object_of(call);
    MemFree(objects[object], stream);
    objects[object] = MemAlloc(block_bytes, stream, false);
}

static void copy_on_device(long call) {
    Memcpy(objects[object_of(call)], objects[object_of(call + 1)], sizeof host, stream);
}

static void copy_to_device(long call) {
    Memcpy(objects[object_of(call)], host, sizeof host, stream);
    runtime.StreamSynchronize(stream);
}

static void create_event(long call) {
    (void)call;
    EventDestroy(EventCreate());
}

static void *stream_at(long i) {
    return streams[i % stream_count];
}

/* With a limit of NUMBER blocks the free evicts a block. */
static void free_extra(long call) {
    MemFree(extra[call], stream_at(call));
    extra[call] = NULL;
}

static void allocate_new_size(long call) {
    extra[call] = MemAlloc(block_bytes * (uint64_t)(2 + call), stream_at(call), false);
}

static void allocate_elsewhere(long call) {
    MemFree(MemAlloc(block_bytes, stream, false), stream_at(call));
}

/* A program that leaves its streams behind, as gpu.wait async does. */
static void free_on_new_stream(long call) {
    (void)call;
    void *created = runtime.StreamCreate();
    MemFree(MemAlloc(block_bytes, stream, false), created);
}

/* All objects of a lowered function, which destroys what it creates. */
static void use_own_objects(long call) {
    (void)call;
    void *created = runtime.StreamCreate();
    void *block = MemAlloc(block_bytes, created, false);
    launch_and_wait(created);
    MemFree(block, created);
    runtime.StreamDestroy(created);
}

/* ---- the objects ---- */

static void hold_nothing(void) {}

/* Later kinds then begin without work on this stream, and below the limit of memory. */
static void release_held_blocks(void) {
    runtime.StreamSynchronize(stream);
    for (long i = 0; i < number; i++)
        MemFree(objects[i], stream);
    empty_cache();
}

static void copy_images(void) {
    heap_images = malloc((size_t)number * IMAGE_BYTES);
    if (!heap_images)
        fail("no memory", "for the images");
    memcpy(heap_images, object_images, (size_t)number * IMAGE_BYTES);
}

/* The bundle has one entry without a name, which begins with an image. */
static void make_bundle(void) {
    enum { AT = 4096 };
    const uint64_t count_and_entry[] = {1, AT, BUNDLE_BYTES - AT, 0};
    bundle = calloc(1, BUNDLE_BYTES);
    if (!bundle)
        fail("no memory", "for the bundle");
    memcpy(bundle, "__CLANG_OFFLOAD_BUNDLE__", 24);
    memcpy(bundle + 24, count_and_entry, sizeof count_and_entry);
    memcpy(bundle + AT, object_images[0], IMAGE_BYTES);
}

static void hold_modules(void) {
    for (long i = 0; i < number; i++)
        objects[i] = runtime.ModuleLoad(object_images[0], IMAGE_BYTES);
}

static void release_modules(void) {
    for (long i = 0; i < number; i++)
        runtime.ModuleUnload(objects[i]);
}

static void hold_module(void) {
    module = runtime.ModuleLoad(object_images[MOST - 1], IMAGE_BYTES);
    for (long i = 0; i < number; i++)
        get_function(i);
}

static void hold_streams(void) {
    for (long i = 0; i < number; i++)
        launch_and_wait(objects[i] = runtime.StreamCreate());
    stream = runtime.StreamCreate();
}

/* The program has freed blocks on the streams. */
static void hold_used_streams(void) {
    hold_streams();
    launch_and_wait(stream);
    for (long i = 0; i < number && i < MOST_USED_STREAMS; i++)
        MemFree(MemAlloc(block_bytes, stream, false), objects[i]);
}

static void release_streams(void) {
    runtime.StreamDestroy(stream);
    for (long i = 0; i < number; i++)
        runtime.StreamDestroy(objects[i]);
}

static void hold_events(void) {
    for (long i = 0; i < number; i++)
        objects[i] = EventCreate();
}

static void release_events(void) {
    for (long i = 0; i < number; i++)
        EventDestroy(objects[i]);
}

static void hold_blocks(void) {
    stream = runtime.StreamCreate();
    for (long i = 0; i < number; i++)
        objects[i] = MemAlloc(block_bytes, stream, false);
}

static void release_extra(void) {
    for (long i = 0; i < EXTRA; i++) {
        MemFree(extra[i], stream_at(i));
        extra[i] = NULL;
    }
}

/* NUMBER idle blocks, and EXTRA blocks that the program holds. */
static void hold_idle_blocks(void) {
    launch_and_wait(stream = runtime.StreamCreate());
    for (long i = 0; i < stream_count; i++)
        launch_and_wait(streams[i] = runtime.StreamCreate());
    for (long i = 0; i < stream_count; i++) /* the first free on a stream costs more */
        MemFree(MemAlloc(block_bytes, streams[i], false), streams[i]);
    for (long i = 0; i < number; i++)
        objects[i] = MemAlloc(block_bytes, stream_at(i), false);
    for (long i = 0; i < EXTRA; i++)
        extra[i] = MemAlloc(block_bytes, stream_at(i), false);
    void *first[FIRST_FREES];
    for (long i = 0; i < FIRST_FREES; i++)
        first[i] = MemAlloc(block_bytes, stream, false);
    for (long i = 0; i < number; i++)
        MemFree(objects[i], stream_at(i));
    for (long i = 0; i < FIRST_FREES; i++)
        MemFree(first[i], stream);
}

static void hold_only_idle_blocks(void) {
    hold_idle_blocks();
    release_extra();
}

static void release_blocks(void) {
    release_extra();
    for (long i = 0; i < stream_count; i++)
        runtime.StreamDestroy(streams[i]);
    runtime.StreamDestroy(stream);
    empty_cache();
}

/* A second thread, which holds objects of its own. */
static pthread_t second;
static pthread_barrier_t used, ended;

static void *use_and_wait(void *nothing) {
    for (int i = 0; i < 20; i++)
        use_own_objects(i);
    void *created = runtime.StreamCreate();
    void *block = MemAlloc(block_bytes, created, false);
    launch_and_wait(created);
    pthread_barrier_wait(&used);
    pthread_barrier_wait(&ended);
    MemFree(block, created);
    runtime.StreamDestroy(created);
    return nothing;
}

static void start_second(void) {
    pthread_barrier_init(&used, NULL, 2);
    pthread_barrier_init(&ended, NULL, 2);
    if (pthread_create(&second, NULL, use_and_wait, NULL) != 0)
        fail("no thread", "pthread_create");
    pthread_barrier_wait(&used);
}

static void end_second(void) {
    pthread_barrier_wait(&ended);
    pthread_join(second, NULL);
}

static const struct kind {
    const char *name;
    void (*set_up)(void);
    void (*call)(long call);
    void (*tear_down)(void);
    enum {
        EACH, /* the calls visit all objects; two such rounds precede the measured calls */
        ONE,  /* each call uses the same objects */
        NEW,  /* each call meets a new object, so no call precedes */
    } visits;
} kinds[] = {
    {"load, constant images", hold_nothing, load_constant, hold_nothing, EACH},
    {"load, images on the heap", copy_images, load_heap, hold_nothing, EACH},
    {"load, a bundle on the heap", make_bundle, load_bundle, hold_nothing, ONE},
    {"look-up, kernels of a module", hold_module, get_function, hold_nothing, EACH},
    {"first look-up, kernels of a module", hold_nothing, get_new_function, hold_nothing, NEW},
    {"allocate, free, blocks", hold_blocks, allocate, hold_nothing, ONE},
    {"free, allocate, held blocks", hold_blocks, free_and_allocate, hold_nothing, EACH},
    {"copy on the device, blocks", hold_nothing, copy_on_device, hold_nothing, EACH},
    {"copy to the device, blocks", hold_nothing, copy_to_device, release_held_blocks, EACH},
    {"create, launch, wait, destroy, streams", hold_streams, create_stream, hold_nothing, ONE},
    {"launch, wait, streams", hold_nothing, use_stream, hold_nothing, EACH},
    {"allocate, free, streams", hold_nothing, allocate, release_streams, ONE},
    {"first load, held modules of an image", hold_modules, load_and_hold, release_modules, NEW},
    {"create, destroy, events", hold_events, create_event, release_events, ONE},
    {"own objects, one thread", hold_nothing, use_own_objects, hold_nothing, ONE},
    {"own objects, two threads", start_second, use_own_objects, end_second, ONE},
    {"free, idle blocks", hold_idle_blocks, free_extra, release_blocks, NEW},
    {"allocate a new size, idle blocks", hold_only_idle_blocks, allocate_new_size, release_blocks,
     NEW},
    {"allocate on another stream, idle blocks", hold_only_idle_blocks, allocate_elsewhere,
     release_blocks, ONE},
    {"first free on a stream, streams", hold_used_streams, free_on_new_stream, release_streams,
     NEW},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* ---- measuring ---- */

/* Callgrind counts while this function runs, and finds this function by name. */
void measured(const struct kind *kind, long first, long calls);
__attribute__((noinline, noclone)) void measured(const struct kind *kind, long first, long calls) {
    for (long call = first; call < first + calls; call++)
        kind->call(call);
}

static void print_kinds(void) {
    for (int i = 0; i < KINDS; i++)
        printf("%s\"%s\"", i ? ", " : "[", kinds[i].name);
    puts("]");
}

int main(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[1], "kinds") == 0) {
        print_kinds();
        return 0;
    }
    const char *only = argc == 5 ? argv[4] : NULL;
    if (argc < 4)
        fail("usage", "see the head of object_costs.c");
    void *library = open_library(argv[1]);
    resolve_runtime(&runtime, library);
    *(void **)&MemAlloc = symbol(library, "mgpuMemAlloc");
    *(void **)&MemFree = symbol(library, "mgpuMemFree");
    *(void **)&Memcpy = symbol(library, "mgpuMemcpy");
    *(void **)&EventCreate = symbol(library, "mgpuEventCreate");
    *(void **)&EventDestroy = symbol(library, "mgpuEventDestroy");
    *(void **)&empty_cache = symbol(library, "mgpu_rt_empty_cache");
    if (getenv("BYTES"))
        block_bytes = strtoull(getenv("BYTES"), NULL, 10);
    if (getenv("STREAMS"))
        stream_count = atol(getenv("STREAMS"));
    number = atol(argv[2]);
    const long calls = atol(argv[3]);
    if (number < 2 || number > MOST || calls < 1 || calls > EXTRA)
        fail("wrong number", argv[2]);
    if (stream_count < 1 || stream_count > MOST_STREAMS)
        fail("wrong number", "STREAMS");
    for (const struct kind *kind = kinds; kind < kinds + KINDS; kind++) {
        const long before[] = {2 * number, 20, 0};
        if (only && strcmp(only, kind->name) != 0)
            continue;
        kind->set_up();
        for (long call = 0; call < before[kind->visits]; call++)
            kind->call(call);
        measured(kind, 0, calls);
        kind->tear_down();
    }
    return 0;
}
