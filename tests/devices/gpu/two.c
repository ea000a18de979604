/* Two processes on one GPU:
 *
 *     two library|driver SECONDS
 *
 * The first process frees a quarter of the device's memory, and goes on with small blocks. The
 * second process then allocates four fifths of the memory: by the library, once; or by HIP alone,
 * again and again for at most SECONDS. The program prints the number of attempts and the
 * milliseconds, and ends with 0 if the second process got the memory. */
#include "program.h"

#include <time.h>

enum { SMALL = 4096, ROUNDS = 10 };

static size_t total_bytes(void) {
    size_t available = 0, total = 0;
    if (HIP(hipMemGetInfo, size_t *, size_t *)(&available, &total) != 0)
        _exit(2);
    return total;
}

static double now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static void use_and_free(size_t bytes, void *stream) {
    void *block = mgpuMemAlloc(bytes, stream, false);
    if (!block)
        _exit(1);
    mgpuMemset32(block, 1, 64, stream);
    mgpuStreamSynchronize(stream);
    mgpuMemFree(block, stream);
}

/* Keeps what it has freed: writes a byte to `ready`, and ends when `end` is closed. */
static void play_first(int ready, int end) {
    char byte = 0;
    void *stream = mgpuStreamCreate();
    use_and_free(total_bytes() / 100 * 24, stream);
    for (int i = 0; i < ROUNDS; i++)
        use_and_free(SMALL, stream);
    if (write(ready, &byte, 1) == 1)
        (void)!read(end, &byte, 1);
    _exit(0);
}

static void play_second(bool by_library, double seconds) {
    const size_t bytes = total_bytes() / 100 * 79;
    const double begin = now_ms();
    void *block = NULL;
    int attempts = 0;
    if (by_library) {
        attempts = 1;
        block = mgpuMemAlloc(bytes, NULL, false);
    }
    while (!by_library && !block && now_ms() - begin < seconds * 1e3) {
        attempts++;
        if (HIP(hipMalloc, void **, size_t)(&block, bytes) != 0)
            block = NULL;
        usleep(1000);
    }
    printf("%zu MiB: %s, attempts: %d, ms: %.0f\n", bytes >> 20, block ? "there" : "refused",
           attempts, now_ms() - begin);
    fflush(stdout);
    _exit(!block);
}

int main(int argc, char **argv) {
    int ready[2], end[2], status = 1;
    char byte;
    if (argc != 3 || pipe(ready) != 0 || pipe(end) != 0)
        return 2;
    const pid_t first = fork();
    if (first == 0) {
        close(end[1]);
        play_first(ready[1], end[0]);
    }
    close(ready[1]);
    if (read(ready[0], &byte, 1) != 1)
        return 2;
    const pid_t second = fork();
    if (second == 0)
        play_second(strcmp(argv[1], "library") == 0, atof(argv[2]));
    waitpid(second, &status, 0);
    close(end[1]);
    waitpid(first, NULL, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 2;
}
