/* Tests launches, streams and events. */
#include "cases.h"

#include <pthread.h>
#include <unistd.h>

static void params(void) {
    int64_t a = 1;
    int32_t b = 2;
    double c = 3;
    void *arguments[] = {&a, &b, &c};
    hipStream_t stream = new_stream();
    launch(kernel("empty_args"), stream, arguments);
    OK(hipStreamSynchronize(stream));
    OK(hipStreamDestroy(stream));
}

static void extra(void) {
    struct {
        int64_t a;
        int32_t b;
        double c;
    } arguments = {1, 2, 3};
    size_t size = sizeof arguments;
    void *configuration[] = {(void *)1, &arguments, (void *)2, &size, (void *)3};
    OK(hipModuleLaunchKernel(kernel("empty_args"), 2, 3, 4, 8, 4, 2, 0, NULL, NULL, configuration));
    OK(hipDeviceSynchronize());
}

static void null_stream(void) {
    launch(kernel("empty"), NULL, NULL);
    OK(hipStreamSynchronize(NULL));
    OK(hipStreamQuery(NULL));
}

static void many_launches(void) {
    hipFunction_t empty = kernel("empty");
    hipStream_t stream = new_stream();
    for (int i = 0; i < 20000; i++) /* more launches than a queue's ring can hold */
        launch(empty, stream, NULL);
    OK(hipStreamSynchronize(stream));
}

static void many_streams(void) {
    enum { STREAMS = 20 };
    hipFunction_t empty = kernel("empty");
    hipStream_t streams[STREAMS];
    for (int i = 0; i < STREAMS; i++)
        streams[i] = new_stream();
    for (int round = 0; round < 50; round++)
        for (int i = 0; i < STREAMS; i++)
            launch(empty, streams[i], NULL);
    OK(hipDeviceSynchronize());
    for (int i = 0; i < STREAMS; i++) {
        EXPECT(hipStreamQuery(streams[i]) == 0);
        OK(hipStreamDestroy(streams[i]));
    }
}

static void event_times(void) {
    enum { PAUSE_US = 20000 };
    double host[4]; /* times before and after each of the two kernels */
    hipFunction_t empty = kernel("empty");
    hipStream_t stream = new_stream();
    hipEvent_t first, second;
    OK(hipEventCreateWithFlags(&first, 0));
    OK(hipEventCreateWithFlags(&second, 0));
    host[0] = now();
    launch(empty, stream, NULL);
    OK(hipEventRecord(first, stream));
    OK(hipEventSynchronize(first));
    host[1] = now();
    usleep(PAUSE_US);
    host[2] = now();
    launch(empty, stream, NULL);
    OK(hipEventRecord(second, stream));
    OK(hipEventSynchronize(second));
    host[3] = now();
    OK(hipEventQuery(second));
    float milliseconds = -1;
    OK(hipEventElapsedTime(&milliseconds, first, second));
    printf("%.3f ms\n", (double)milliseconds);
    EXPECT((double)milliseconds > (host[2] - host[1]) * 990);
    EXPECT((double)milliseconds < (host[3] - host[0]) * 1010);
    OK(hipEventDestroy(first));
    OK(hipEventDestroy(second));
}

static void wait_event(void) {
    hipFunction_t empty = kernel("empty");
    hipStream_t streams[2] = {new_stream(), new_stream()};
    hipEvent_t event;
    OK(hipEventCreateWithFlags(&event, hipEventDisableTiming));
    for (int i = 0; i < 200; i++) {
        launch(empty, streams[i % 2], NULL);
        OK(hipEventRecord(event, streams[i % 2]));
        OK(hipStreamWaitEvent(streams[1 - i % 2], event, 0));
    }
    OK(hipStreamSynchronize(streams[0]));
    OK(hipStreamSynchronize(streams[1]));
    OK(hipEventDestroy(event));
}

/* Creates more events than the driver supports. */
static void many_events(void) {
    enum { EVENTS = 6000 };
    static hipEvent_t events[EVENTS];
    hipFunction_t empty = kernel("empty");
    hipStream_t stream = new_stream();
    for (int i = 0; i < EVENTS; i++) {
        OK(hipEventCreateWithFlags(&events[i], 0));
        launch(empty, stream, NULL);
        OK(hipEventRecord(events[i], stream));
    }
    for (int i = 0; i < EVENTS; i++)
        OK(hipEventSynchronize(events[i]));
    for (int i = 0; i < EVENTS; i++)
        OK(hipEventDestroy(events[i]));
}

/* Makes all calls of a typical program, from beginning to end, in a loop. */
static void *work(void *unused) {
    for (int i = 0; i < 30; i++) {
        hipModule_t own;
        hipFunction_t empty;
        hipStream_t stream = new_stream();
        void *memory;
        char bytes[1000] = {0}, back[1000] = {1};
        OK(hipModuleLoadData(&own, image));
        OK(hipModuleGetFunction(&empty, own, "empty"));
        OK(hipMalloc(&memory, 1000));
        OK(hipMemcpyAsync(memory, bytes, 1000, hipMemcpyHostToDevice, stream));
        launch(empty, stream, NULL);
        OK(hipMemcpyAsync(back, memory, 1000, hipMemcpyDeviceToHost, stream));
        OK(hipStreamSynchronize(stream));
        EXPECT(memcmp(bytes, back, 1000) == 0);
        OK(hipFree(memory));
        OK(hipStreamDestroy(stream));
        OK(hipModuleUnload(own));
    }
    return unused;
}

static void threads(void) {
    enum { THREADS = 4 };
    pthread_t all[THREADS];
    for (int i = 0; i < THREADS; i++)
        EXPECT(pthread_create(&all[i], NULL, work, NULL) == 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(all[i], NULL);
}

static void stores(void) {
    enum { COUNT = 64 };
    int32_t *out, result[COUNT] = {0};
    OK(hipMalloc((void **)&out, sizeof result));
    int64_t offset = 0, size = COUNT, stride = 1;
    int32_t value = 1000;
    void *arguments[] = {&out, &out, &offset, &size, &stride, &value};
    launch(kernel("store"), NULL, arguments);
    OK(hipMemcpy(result, out, sizeof result, hipMemcpyDeviceToHost));
    for (int i = 0; i < COUNT; i++)
        EXPECT(result[i] == value + i);
}

/* Launches two kernels that each wait for the other. */
static void meeting(void) {
    int32_t *flags;
    OK(hipMalloc((void **)&flags, 2 * sizeof *flags));
    OK(hipMemset(flags, 0, 2 * sizeof *flags));
    OK(hipDeviceSynchronize());
    hipStream_t streams[2];
    hipFunction_t meet = kernel("meet");
    for (int64_t i = 0; i < 2; i++) {
        int64_t offset = 0, size = 2, stride = 1, other = 1 - i;
        void *arguments[] = {&flags, &flags, &offset, &size, &stride, &i, &other};
        OK(hipStreamCreateWithFlags(&streams[i], hipStreamNonBlocking));
        OK(hipModuleLaunchKernel(meet, 1, 1, 1, 1, 1, 1, 0, streams[i], arguments, NULL));
    }
    OK(hipStreamSynchronize(streams[0]));
    OK(hipStreamSynchronize(streams[1]));
}

/* Makes a cooperative launch of four workgroups; such a launch needs HIP 5.5 or later. */
static void cooperative(void) {
    int (*start)(hipFunction_t, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                 unsigned, hipStream_t, void **);
    *(void **)&start =
        dlsym(dlopen(getenv("MGPU_RT_HIP"), RTLD_NOW), "hipModuleLaunchCooperativeKernel");
    if (!start) {
        fprintf(stderr, "HIP 5.2.3 has no hipModuleLaunchCooperativeKernel\n");
        exit(77);
    }
    OK(start(kernel("empty"), 4, 1, 1, 64, 1, 1, 0, NULL, NULL));
    OK(hipDeviceSynchronize());
}

static const struct test_case cases[] = {
    {"params", params},
    {"extra", extra},
    {"null_stream", null_stream},
    {"many_launches", many_launches},
    {"many_streams", many_streams},
    {"event_times", event_times},
    {"wait_event", wait_event},
    {"many_events", many_events},
    {"threads", threads},
    {"stores", stores},
    {"meeting", meeting},
    {"cooperative", cooperative},
    {NULL, NULL},
};

int main(int count, char **arguments) {
    return run_cases(count, arguments, cases);
}
