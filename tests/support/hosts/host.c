/* A host program without Python, for tests of the manager: host LIBRARY IMAGE KERNEL MODE.
 *
 * Prints "ok" if every call succeeded. The program opens the library by dlopen, so one binary tests
 * every way of loading. */
#include "program.h"

#include <locale.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#define EACH_FUNCTION(X)                                                                           \
    X(ModuleLoad)                                                                                  \
    X(ModuleUnload)                                                                                \
    X(ModuleGetFunction) X(StreamCreate) X(StreamDestroy) X(StreamSynchronize) X(LaunchKernel)

static struct {
#define DECLARE(name) __typeof__(&mgpu##name) name;
    EACH_FUNCTION(DECLARE)
} mgpu;

static const char *(*manager)(void);
static void *library;
static char *image;
static size_t image_size;
static const char *kernel;

static void open_library(const char *path, int flags) {
    library = dlopen(path, flags);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        exit(3);
    }
#define FIND(name) *(void **)&mgpu.name = dlsym(library, "mgpu" #name);
    EACH_FUNCTION(FIND)
    *(void **)&manager = dlsym(library, "mgpu_rt_manager");
}

static void read_image(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file)
        exit(3);
    fseek(file, 0, SEEK_END);
    image_size = (size_t)ftell(file);
    rewind(file);
    image = malloc(image_size);
    if (!image || fread(image, 1, image_size, file) != image_size)
        exit(3);
    fclose(file);
}

/* Launches once as LLVM 20 and older do; returns true if every call succeeded. */
static bool launch_once(void) {
    void *module = mgpu.ModuleLoad(image, 0);
    void *function = mgpu.ModuleGetFunction(module, kernel);
    void *stream = mgpu.StreamCreate();
    mgpu.LaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL, 0);
    mgpu.StreamSynchronize(stream);
    mgpu.StreamDestroy(stream);
    mgpu.ModuleUnload(module);
    return module && function && stream;
}

static void *launch_in_thread(void *good) {
    *(bool *)good = launch_once();
    return NULL;
}

static bool in_threads(int count) {
    pthread_t threads[16];
    bool good[16] = {false}, all = true;
    for (int i = 0; i < count; i++)
        pthread_create(&threads[i], NULL, launch_in_thread, &good[i]);
    for (int i = 0; i < count; i++) {
        pthread_join(threads[i], NULL);
        all &= good[i];
    }
    return all;
}

/* Causes many events for the policy: every image is new. */
static _Atomic bool stop;
static void *miss_for_ever(void *unused) {
    (void)unused;
    char *copy = malloc(image_size);
    for (unsigned i = 0; copy && !stop; i++) {
        memcpy(copy, image, image_size);
        memcpy(copy + 9, &i, sizeof i); /* new padding in e_ident makes a new, valid image */
        mgpu.ModuleUnload(mgpu.ModuleLoad(copy, 0));
    }
    free(copy);
    return NULL;
}

#ifndef HANG
#define HANG 600 /* seconds: tests/support/patience.py */
#endif

/* Forks; returns the child's exit status, 0 if its own launch succeeded, or -1 if a signal ended
 * it. A child that hangs counts as a failure. */
static int status_of_child(void) {
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        alarm(HANG);
        const bool good = launch_once();
        exit(good ? 0 : 1);
    }
    int status;
    waitpid(child, &status, 0);
    if (WIFSIGNALED(status))
        fprintf(stderr, "child ended by signal %d\n", WTERMSIG(status));
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static bool in_child(void) {
    return status_of_child() == 0;
}

static bool fork_while_busy(void) {
    pthread_t busy;
    bool good = launch_once();
    pthread_create(&busy, NULL, miss_for_ever, NULL);
    for (int i = 0; i < 20 && good; i++)
        good = in_child();
    stop = true;
    pthread_join(busy, NULL);
    return good;
}

/* Waits until the manager's start is over; returns whether the manager is in the wanted state. */
static bool manager_is(const char *wanted) {
    for (;; usleep(5000))
        if (strcmp(manager(), wanted) == 0 || strcmp(manager(), "starting") != 0)
            return strcmp(manager(), wanted) == 0;
}

static bool is_served(void) {
    return manager_is("serving");
}

/* Waits until the manager stops serving. */
static void linger(void) {
    while (is_served())
        usleep(5000);
}

static void launch_late(void) {
    puts(launch_once() ? "late ok" : "late failed");
}

/* ---- what a program could notice ---- */

static _Atomic int child_signals;
static void count_signal(int number) {
    (void)number;
    child_signals++;
}

/* Writes the number of each open descriptor, and the name of its file, into `out`. */
static void describe_descriptors(char *out, size_t size) {
    char name[64], target[256];
    size_t used = 0;
    for (int fd = 0; fd < 1024; fd++) {
        snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
        const ssize_t length = readlink(name, target, sizeof target - 1);
        if (length < 0)
            continue;
        target[length] = '\0';
        used += (size_t)snprintf(out + used, size - used, "%d %s\n", fd, target);
    }
}

static bool maps_python(void) {
    char line[1024];
    bool found = false;
    FILE *maps = fopen("/proc/self/maps", "re");
    while (maps && fgets(line, sizeof line, maps))
        found |= strstr(line, "libpython") != NULL || strstr(line, "_cffi") != NULL;
    if (maps)
        fclose(maps);
    return found;
}

struct host_state {
    void (*handlers[NSIG])(int);
    int flags[NSIG];
    sigset_t mask;
    char locale[256], directory[256], descriptors[8192];
    int nice;
    mode_t umask;
    pid_t session, group;
};

static void note_state(struct host_state *state) {
    memset(state, 0, sizeof *state);
    for (int number = 1; number < NSIG; number++) {
        struct sigaction action = {0};
        sigaction(number, NULL, &action);
        state->handlers[number] = action.sa_handler;
        state->flags[number] = action.sa_flags;
    }
    sigprocmask(SIG_BLOCK, NULL, &state->mask);
    snprintf(state->locale, sizeof state->locale, "%s", setlocale(LC_ALL, NULL));
    if (!getcwd(state->directory, sizeof state->directory))
        state->directory[0] = '\0';
    describe_descriptors(state->descriptors, sizeof state->descriptors);
    state->nice = getpriority(PRIO_PROCESS, 0);
    state->umask = umask(022);
    umask(state->umask);
    state->session = getsid(0);
    state->group = getpgrp();
}

static bool keeps_host_state(void) {
    static struct host_state before, after;
    setlocale(LC_ALL, "");
    signal(SIGCHLD, count_signal);
    const bool first = launch_once(); /* makes HIP open its files */
    do /* another thread reads at that time which Python was recorded */
        note_state(&before);
    while (strstr(before.descriptors, "/mgpu_rt.python"));
    const bool served = is_served();
    note_state(&after);
    if (strcmp(before.descriptors, after.descriptors) != 0)
        fprintf(stderr, "descriptors were\n%sand are\n%s", before.descriptors, after.descriptors);
    const bool childless = waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD;
    return first && served && childless && child_signals == 0 && !maps_python() &&
           !dlsym(RTLD_DEFAULT, "crc32") && !dlsym(RTLD_DEFAULT, "XML_ParserCreate") &&
           memcmp(&before, &after, sizeof before) == 0;
}

/* Another thread checks all the time that the locale is unchanged. */
static _Atomic bool locale_lost;
static void *watch_locale(void *own) {
    while (!stop)
        locale_lost |= strcmp(setlocale(LC_ALL, NULL), own) != 0;
    return NULL;
}

static bool keeps_locale_meanwhile(void) {
    pthread_t watcher;
    char *own = strdup(setlocale(LC_ALL, "C"));
    pthread_create(&watcher, NULL, watch_locale, own);
    const bool good = launch_once();
    (void)is_served(); /* by then the manager has started or has failed to start */
    stop = true;
    pthread_join(watcher, NULL);
    return good && !locale_lost;
}

/* ---- ways to end ---- */

static bool end_at_once(const char *how) {
    fputs("ok\n", stdout);
    fflush(stdout);
    if (strcmp(how, "exit") == 0)
        _exit(0);
    if (strcmp(how, "kill") == 0)
        kill(getpid(), SIGKILL);
    if (strcmp(how, "exec") == 0) /* cat runs until standard input ends */
        execl("/bin/cat", "cat", (char *)NULL);
    return false;
}

/* Returns whether all threads of the process block the signals of the set. */
static bool all_threads_block(uint64_t set) {
    char path[300], line[256];
    uint64_t blocked;
    unsigned threads = 0, blocking = 0;
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *task; tasks && (task = readdir(tasks));) {
        snprintf(path, sizeof path, "/proc/self/task/%s/status", task->d_name);
        FILE *status = task->d_name[0] == '.' ? NULL : fopen(path, "re");
        threads += status != NULL;
        while (status && fgets(line, sizeof line, status))
            if (sscanf(line, "SigBlk: %" SCNx64, &blocked) == 1)
                blocking += (blocked & set) == set;
        if (status)
            fclose(status);
    }
    if (tasks)
        closedir(tasks);
    return threads > 1 && blocking == threads;
}

/* Counts the signals that arrive; a signal stays pending if every thread of the program blocks
 * it. */
static _Atomic int signals_taken;
static void take_signal(int number) {
    (void)number;
    signals_taken++;
}

static bool leaves_signals_alone(void) {
    sigset_t mine, pending;
    sigemptyset(&mine);
    sigaddset(&mine, SIGUSR1);
    sigaddset(&mine, SIGALRM);
    const bool good = launch_once() && is_served();
    signal(SIGUSR1, take_signal);
    signal(SIGALRM, take_signal);
    pthread_sigmask(SIG_BLOCK, &mine, NULL);
    kill(getpid(), SIGUSR1);
    kill(getpid(), SIGALRM);
    sigpending(&pending);
    return good && signals_taken == 0 && sigismember(&pending, SIGUSR1) &&
           sigismember(&pending, SIGALRM) &&
           all_threads_block(UINT64_C(1) << (SIGUSR1 - 1) | UINT64_C(1) << (SIGALRM - 1));
}

/* Launches after main has ended, before and after the end of the library's thread, which the end of
 * main causes. This thread is the last thread, so the end of this thread ends the program with
 * status 0. */
static pthread_t main_thread;
static void *launch_and_end(void *unused) {
    (void)unused;
    pthread_join(main_thread, NULL);
    const bool first = launch_once();
    linger();
    const bool good = first && manager_is("ended") && launch_once();
    puts(good ? "ok" : "failed");
    fflush(stdout);
    return NULL;
}

static bool end_main_first(void) {
    pthread_t thread;
    main_thread = pthread_self();
    pthread_create(&thread, NULL, launch_and_end, NULL);
    pthread_exit(NULL);
}

/* Makes four threads load images that miss the cache, for one second, while a manager runs. */
static bool miss_together(void) {
    pthread_t threads[4];
    const bool good = launch_once() && is_served();
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, miss_for_ever, NULL);
    for (int i = 0; i < 10; i++) {
        usleep(100000);
        (void)launch_once();
    }
    stop = true;
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    return good && launch_once();
}

/* At its end, waits after HIP's own exit handlers. The policy, which has created the file that
 * WAIT_FOR names, still works at that time. */
static bool ends_slowly(void) {
    const char *file = getenv("WAIT_FOR");
    bool good = atexit(linger) == 0 && launch_once() && is_served() && file;
    while (good && access(file, F_OK) != 0)
        usleep(5000);
    return good && launch_once();
}

/* Makes the first call on a thread with a small stack, as coroutines have. */
static bool on_a_small_stack(void) {
    pthread_t thread;
    pthread_attr_t attributes;
    bool good = false;
    pthread_attr_init(&attributes);
    if (pthread_attr_setstacksize(&attributes, 65536) != 0 ||
        pthread_create(&thread, &attributes, launch_in_thread, &good) != 0)
        return false;
    pthread_join(thread, NULL);
    return good;
}

/* Forks children while other threads make their first call. If a thread was within dlopen, glibc
 * may end the child at the child's own dlopen: an assertion of the loader ends with this status. */
enum { LOADER_REFUSES = 127 };
static bool fork_in_first_call(void) {
    pthread_t threads[4];
    bool good[4], all = true;
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, launch_in_thread, &good[i]);
    for (int i = 0; i < 4; i++) {
        const int status = status_of_child();
        all &= status == 0 || status == LOADER_REFUSES;
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        all &= good[i];
    }
    return all;
}

static bool run(const char *mode) {
#define MODE(name, good)                                                                           \
    if (strcmp(mode, name) == 0)                                                                   \
    return good
    MODE("plain", launch_once() && launch_once());
    MODE("nothing", true);
    MODE("thread", in_threads(1) && launch_once() && in_threads(1)); /* the first ends early */
    MODE("threads", in_threads(8) && launch_once());
    MODE("fork-before", in_child() && launch_once());
    MODE("fork-after", launch_once() && in_child() && launch_once());
    MODE("fork-busy", fork_while_busy());
    MODE("fork-first", fork_in_first_call());
    MODE("dlclose", launch_once() && dlclose(library) == 0);
    MODE("late", atexit(launch_late) == 0 && launch_once()); /* runs after the library's handler */
    MODE("state", keeps_host_state());
    MODE("locale", keeps_locale_meanwhile());
    MODE("served", launch_once() && is_served() && launch_once());
    MODE("unserved", launch_once() && manager_is("ended") && launch_once());
    MODE("signals", leaves_signals_alone());
    MODE("slow-end", ends_slowly());
    MODE("misses", miss_together());
    MODE("main-ends", end_main_first());
    MODE("served-main-ends", launch_once() && is_served() && end_main_first());
    MODE("small-stack", on_a_small_stack());
    MODE("reaper", prctl(PR_SET_CHILD_SUBREAPER, 1) == 0 && launch_once() && manager_is("ended") &&
                       waitpid(-1, NULL, WNOHANG) == -1);
    /* waits until standard input ends */
    MODE("served-until", launch_once() && is_served() && getchar() == EOF && launch_once());
    return strncmp(mode, "end-", 4) == 0 && launch_once() && is_served() && end_at_once(mode + 4);
}

int main(int argc, char **argv) {
    if (argc != 5)
        return 3;
    const char *mode = argv[4];
    const bool local = strncmp(mode, "local-", 6) == 0;
    kernel = argv[3];
    read_image(argv[2]);
    open_library(argv[1], RTLD_NOW | (local ? RTLD_LOCAL : RTLD_GLOBAL));
    const bool good = run(local ? mode + 6 : mode);
    puts(good ? "ok" : "failed");
    return good ? 0 : 1;
}
