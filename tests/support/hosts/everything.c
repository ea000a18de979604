/* In unusual situations, calls every function of mgpu_rt.h and mgpu_rt_private.h, and makes calls
 * of mgpu* functions that fail. The situations are: before the first call, after exit, in forked
 * children, in cancelled threads, with pointers to unmapped memory, and at the process limit. Run
 * this program as `everything MODE`; SIGALRM ends a run that hangs. */
#include "program.h"

#include "mgpu_rt.h"
#include "mgpu_rt_private.h"

enum { HANG = 60 /* seconds */, NOBODY = 65534 };

static const char no_image[64] = "no image at all";
static char content[1 << 16];
static void *wild; /* an unmapped address, for functions that take an address */

static void lend(void) {
    mgpu_rt_use_stream(wild);
    mgpuStreamDestroy(mgpuStreamCreate());
    mgpu_rt_use_stream(NULL);
}

static void use_scratch(void) {
    struct mgpu_rt_scratch scratch = {.stream = wild}, other = {0}, none = {.data = wild};
    mgpu_rt_scratch_reserve(&scratch, 100);
    mgpu_rt_scratch_reserve(&scratch, SIZE_MAX / 2);
    mgpu_rt_scratch_move(&other, &scratch);
    mgpu_rt_scratch_release(&other);
    mgpu_rt_scratch_release(&none);
}

static void build_graph(void) {
    mgpu_rt_graph_begin();
    void *memory = mgpuMemAlloc(64, NULL, false);
    mgpuMemcpy(memory, content, 64, NULL);
    struct mgpu_rt_graph *graph = mgpu_rt_graph_end();
    mgpu_rt_graph_launch(graph, wild);
    (void)mgpu_rt_graph_nodes(graph);
    mgpu_rt_graph_destroy(graph);
}

static void spoil_graph(void) {
    mgpu_rt_graph_begin();
    mgpu_rt_graph_begin();
    mgpuModuleLoad((void *)no_image, 0);
    mgpu_rt_graph_destroy(mgpu_rt_graph_end());
}

static void ask(void) {
    char file[64];
    unsigned long long hash;
    mgpu_rt_image_place(no_image, file, sizeof file, &hash);
    mgpu_rt_image_place(wild, file, sizeof file, &hash);
    size_t bytes;
    free(mgpu_rt_record(&bytes));
    (void)mgpu_rt_hip_path();
    (void)mgpu_rt_failures();
    (void)mgpu_rt_native("mgpuStreamCreate");
    mgpu_rt_intercept("mgpuStreamCreate", NULL);
}

static void report(void) {
    mgpu_rt_report("mine()", 1);
    (void)mgpu_rt_take_error();
}

static void fail(void) {
    mgpuModuleLoad((void *)no_image, 0);
    mgpuModuleGetFunction(NULL, "nothing");
    mgpuMemFree(wild, NULL);
    mgpuMemHostRegister((void *)8, 64);
    mgpuMemAlloc(SIZE_MAX / 2, NULL, false);
}

static void work(void) {
    void *stream = mgpuStreamCreate(), *event = mgpuEventCreate();
    void *memory = mgpuMemAlloc(sizeof content, stream, false);
    mgpuMemcpy(memory, content, sizeof content, stream);
    mgpuEventRecord(event, stream);
    mgpuStreamSynchronize(stream);
    mgpuMemFree(memory, stream);
    mgpuEventDestroy(event);
    mgpuStreamDestroy(stream);
}

static void give_back(void) {
    mgpu_rt_empty_cache();
}

static void (*const functions[])(void) = {lend,   use_scratch, build_graph, spoil_graph, ask,
                                          report, fail,        work,        give_back};
enum { FUNCTIONS = sizeof functions / sizeof *functions };

static void everything(void) {
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < FUNCTIONS; i++)
            functions[i]();
}

/* ---- pointers to nothing ---- */

static void with_wild_pointers(void) {
    static char zeros[4096];
    void *const values[] = {(void *)1, (void *)0x1234560, (void *)-8, zeros + 128, content + 64};
    memset(content, 0x41, sizeof content);
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        wild = values[i];
        lend();
        use_scratch();
        build_graph();
        ask();
    }
}

/* ---- cancellation ---- */

static void *cancelled(void *function) {
    pthread_cancel(pthread_self());
    (*(void (*const *)(void))function)();
    pthread_testcancel();
    return NULL;
}

static void in_cancelled_threads(void) {
    for (int i = 0; i < FUNCTIONS; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, cancelled, (void *)&functions[i]);
        pthread_join(thread, NULL);
        everything();
    }
}

/* ---- fork ---- */

enum how { CALLS, LEAVES, EXITS, FORKS, EXECUTES, ENDS };

static void be_child(enum how how) {
    int status;
    alarm(HANG);
    if (how == CALLS)
        everything();
    if (how == LEAVES)
        _exit(0);
    if (how == EXECUTES)
        execl("/bin/true", "true", NULL);
    if (how == FORKS && fork() == 0)
        everything();
    else if (how == FORKS)
        _exit(wait(&status) < 0 || status);
    if (how == ENDS) /* destroys the parent's graph, and begins another one */
        mgpu_rt_graph_destroy(mgpu_rt_graph_end());
    if (how == ENDS)
        mgpu_rt_graph_begin();
    exit(0);
}

static void fork_in_state(const char *state) {
    for (enum how how = CALLS; how <= ENDS; how++) {
        int status;
        const pid_t child = fork();
        if (child == 0)
            be_child(how);
        if (waitpid(child, &status, 0) != child || status) {
            printf("%s: child %d ended with %#x\n", state, (int)how, (unsigned)status);
            _exit(1);
        }
    }
}

static bool over;
static void *stay_busy(void *unused) {
    while (!__atomic_load_n(&over, __ATOMIC_RELAXED))
        everything();
    return unused;
}

static void in_children(void) {
    pthread_t threads[2];
    fork_in_state("before the first call");
    mgpuStreamDestroy(mgpuStreamCreate());
    fork_in_state("after it");
    void *stream = mgpuStreamCreate(), *memory = mgpuMemAlloc(1 << 20, stream, false);
    mgpu_rt_use_stream(stream);
    fork_in_state("a stream is lent");
    mgpu_rt_use_stream(NULL);
    mgpu_rt_graph_begin();
    fork_in_state("a graph is built");
    mgpu_rt_graph_destroy(mgpu_rt_graph_end());
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, stay_busy, NULL);
    for (int i = 0; i < 5; i++)
        fork_in_state("others are at work");
    __atomic_store_n(&over, true, __ATOMIC_RELAXED);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    mgpuMemFree(memory, stream);
    mgpuStreamDestroy(stream);
}

/* ---- no processes and no threads to be had ---- */

static bool is_starting(void) {
    return strcmp(mgpu_rt_manager(), "starting") == 0;
}

static void be_limited(rlim_t processes) {
    const struct rlimit limit = {processes, processes};
    if ((getuid() == 0 && setuid(NOBODY) != 0) || setrlimit(RLIMIT_NPROC, &limit) != 0)
        _exit(1);
    alarm(HANG);
    everything();
    while (is_starting())
        usleep(1000);
    everything();
    exit(0);
}

static void without_processes(void) {
    for (rlim_t processes = 0; processes < 4; processes++) {
        int status;
        const pid_t child = fork();
        if (child == 0)
            be_limited(processes);
        if (waitpid(child, &status, 0) != child || status)
            _exit(1);
    }
}

/* ---- before and after ---- */

static bool late, early;
static struct mgpu_rt_graph *kept;

__attribute__((constructor)) static void before_main(void) {
    early = getenv("EARLY") != NULL;
    alarm(HANG);
    if (early)
        everything();
}

static void after_main(void) {
    if (!late)
        return;
    everything();
    mgpu_rt_graph_launch(kept, NULL);
    mgpu_rt_graph_destroy(kept);
    kept = NULL;
}

__attribute__((destructor)) static void at_the_end(void) {
    after_main();
    if (late)
        puts("over");
}

static void after_exit(void) {
    late = true;
    atexit(after_main); /* runs after the library's own handler, which the library registers at its
                         * first call */
    mgpu_rt_graph_begin();
    mgpuMemcpy(mgpuMemAlloc(64, NULL, false), content, 64, NULL);
    kept = mgpu_rt_graph_end();
    mgpu_rt_graph_begin(); /* the program never ends this second graph */
}

int main(int count, char **words) {
    static const struct {
        const char *name;
        void (*run)(void);
    } modes[] = {{"wild", with_wild_pointers},
                 {"cancelled", in_cancelled_threads},
                 {"forks", in_children},
                 {"processes", without_processes},
                 {"exit", after_exit}};
    for (size_t i = 0; count > 1 && i < sizeof modes / sizeof *modes; i++)
        if (strcmp(words[1], modes[i].name) == 0)
            modes[i].run();
    if (!late)
        puts("over");
    return 0;
}
