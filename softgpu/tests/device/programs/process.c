/* Tests device names, fork, exit, faults and idle processes. */
#include "cases.h"

#include <sys/wait.h>
#include <unistd.h>

static void names(void) {
    int count;
    char name[256];
    OK(hipGetDeviceCount(&count));
    for (int i = 0; i < count; i++) {
        OK(hipDeviceGetName(name, sizeof name, i));
        OK(hipSetDevice(i));
        printf("%s\n", name);
    }
}

static void no_device(void) {
    printf("hipInit: %d\n", hipInit(0));
}

static void launch_and_wait(void) {
    hipStream_t stream = new_stream();
    launch(kernel("empty"), stream, NULL);
    OK(hipStreamSynchronize(stream));
}

static int status_of(pid_t child) {
    int status;
    EXPECT(waitpid(child, &status, 0) == child);
    return status;
}

/* A child that was forked before the first call may use the device. */
static void fork_before(void) {
    pid_t child = fork();
    if (child == 0) {
        launch_and_wait();
        exit(5);
    }
    int status = status_of(child);
    EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 5);
    launch_and_wait();
}

/* Forks a child after the first call. Checks that the child can exit normally, and that a launch
 * ends the child, as with the real driver. */
static void fork_after(void) {
    launch_and_wait();
    pid_t child = fork();
    if (child == 0)
        exit(6);
    int status = status_of(child);
    EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 6);
    hipFunction_t empty = kernel("empty");
    child = fork();
    if (child == 0) {
        launch(empty, NULL, NULL);
        hipDeviceSynchronize();
        exit(0);
    }
    status = status_of(child);
    EXPECT(WIFSIGNALED(status) || WEXITSTATUS(status) != 0);
    launch_and_wait();
}

static void exit_busy(void) {
    hipFunction_t empty = kernel("empty");
    for (int i = 0; i < 1000; i++)
        launch(empty, NULL, NULL);
}

/* Exits while a kernel waits for a flag that is never set. */
static void exit_running(void) {
    int32_t *flags;
    int64_t offset = 0, size = 2, stride = 1, mine = 0, other = 1;
    OK(hipMalloc((void **)&flags, 2 * sizeof *flags));
    OK(hipMemset(flags, 0, 2 * sizeof *flags));
    void *arguments[] = {&flags, &flags, &offset, &size, &stride, &mine, &other};
    launch(kernel("meet"), NULL, arguments);
    hipStream_t apart;
    OK(hipStreamCreateWithFlags(&apart, hipStreamNonBlocking));
    for (int32_t begun = 0; !begun;) {
        OK(hipMemcpyAsync(&begun, flags, sizeof begun, hipMemcpyDeviceToHost, apart));
        OK(hipStreamSynchronize(apart));
    }
}

/* Launches a kernel that writes far outside all mapped memory. */
static void wild_store(void) {
    uint64_t out = UINT64_C(0x10000), offset = 0, size = 64, stride = 1;
    int32_t value = 1;
    void *arguments[] = {&out, &out, &offset, &size, &stride, &value};
    hipFunction_t store = kernel("store");
    /* The kernel may fault before its launch returns. */
    int error = hipModuleLaunchKernel(store, 1, 1, 1, 64, 1, 1, 0, NULL, arguments, NULL);
    if (!error)
        error = hipDeviceSynchronize();
    printf("went on after %s\n", hipGetErrorName(error));
}

/* Passes the host address of registered memory to a kernel. */
static void host_pointer(void) {
    static int32_t memory[2048];
    uint64_t out = (uintptr_t)&memory[512], offset = 0, size = 64, stride = 1;
    int32_t value = 1, *device;
    OK(hipHostRegister(memory, sizeof memory, hipHostRegisterMapped));
    OK(hipHostGetDevicePointer((void **)&device, &memory[0], 0));
    printf("%p\n", (void *)(device + 512));
    launch(kernel("store"), NULL, (void *[]){&out, &out, &offset, &size, &stride, &value});
    printf("%d\n", hipDeviceSynchronize());
}

/* Checks that the process continues after a fault that HIP returns as an error. */
static void outlive_fault(void) {
    wild_store();
    sleep(7);
    printf("still there\n");
}

static void idle(void) {
    enum { IDLE_MS = 200 };
    launch_and_wait();
    double least = 1e9;
    /* The process needs some time to become idle, and more time on a busy machine. */
    for (int i = 0; i < 20 && least > IDLE_MS; i++) {
        usleep(100000);
        double before = cpu_time();
        usleep(1000000);
        double took = (cpu_time() - before) * 1e3;
        least = took < least ? took : least;
    }
    printf("%.3f ms of CPU in 1 s\n", least);
}

static void latency(void) {
    enum { LAUNCHES = 200000, FAST_US = 200 }; /* on a busy machine, few launches are fast */
    hipFunction_t empty = kernel("empty");
    hipStream_t stream = new_stream();
    double best = 1e9;
    for (int i = 0; i < LAUNCHES && best * 1e6 > FAST_US; i++) {
        double before = now();
        launch(empty, stream, NULL);
        OK(hipStreamSynchronize(stream));
        double took = now() - before;
        best = took < best ? took : best;
    }
    printf("%.2f us\n", best * 1e6);
}

static const struct test_case cases[] = {
    {"names", names},
    {"no_device", no_device},
    {"fork_before", fork_before},
    {"fork_after", fork_after},
    {"exit_busy", exit_busy},
    {"exit_running", exit_running},
    {"wild_store", wild_store},
    {"host_pointer", host_pointer},
    {"outlive_fault", outlive_fault},
    {"idle", idle},
    {"latency", latency},
    {NULL, NULL},
};

int main(int count, char **arguments) {
    return run_cases(count, arguments, cases);
}
