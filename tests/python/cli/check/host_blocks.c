/* Copies between a device block of 512 bytes and memory of the host that is large enough, or too
 * small. Each function below is one case, and its name is in the report. */
#include "program.h"

enum { SIZE = 512, MANY = 20000 };

static char *device;
static void *stream;
static char in_the_program[SIZE];

#define CASE(name) __attribute__((noinline)) void name(char *host)
#define FROM_DEVICE(name)                                                                          \
    CASE(name) {                                                                                   \
        mgpuMemcpy(host, device, SIZE, stream);                                                    \
        mgpuStreamSynchronize(stream);                                                             \
    }
#define TO_DEVICE(name)                                                                            \
    CASE(name) {                                                                                   \
        mgpuMemcpy(device, host, SIZE, stream);                                                    \
        mgpuStreamSynchronize(stream);                                                             \
    }

FROM_DEVICE(fits)
FROM_DEVICE(too_small)
FROM_DEVICE(inside)
FROM_DEVICE(cleared)
FROM_DEVICE(shrunk)
FROM_DEVICE(aligned)
FROM_DEVICE(of_posix)
FROM_DEVICE(of_pages)
FROM_DEVICE(one_of_many)
FROM_DEVICE(empty)
TO_DEVICE(filled)
TO_DEVICE(read_too_far)
TO_DEVICE(freed)

static void *allocate_until_told(void *end) {
    while (!*(volatile bool *)end)
        free(malloc(100));
    return NULL;
}

/* A child of a fork allocates, whatever another thread did at that moment. */
static void fork_often(void) {
    pthread_t thread;
    bool end = false;
    pthread_create(&thread, NULL, allocate_until_told, &end);
    for (int n = 0; n < 50; n++) {
        const pid_t child = fork();
        int status;
        if (!child) {
            free(realloc(malloc(100), 200));
            _exit(0);
        }
        waitpid(child, &status, 0);
    }
    *(volatile bool *)&end = true;
    pthread_join(thread, NULL);
}

int main(void) {
    static char *many[MANY];
    char on_stack[SIZE];
    void *block;
    fork_often();
    stream = mgpuStreamCreate();
    device = mgpuMemAlloc(SIZE, stream, false);
    filled(memset(malloc(SIZE), 1, SIZE));
    fits(malloc(SIZE));
    fits((char *)malloc(SIZE + 100) + 100);
    fits(realloc(malloc(10), SIZE));
    fits(on_stack);
    fits(in_the_program);
    fits(mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    too_small(malloc(500));
    inside((char *)malloc(600) + 100);
    cleared(calloc(5, 100));
    shrunk(realloc(malloc(4 * SIZE), 500));
    aligned(aligned_alloc(64, 448));
    if (!posix_memalign(&block, 4096, 500))
        of_posix(block);
    of_pages(valloc(500));
    read_too_far(malloc(500));
    empty(malloc(0));
    for (int n = 0; n < MANY; n++)
        many[n] = malloc(400 + n % 200);
    for (int n = 0; n < MANY; n++)
        if (n % 3)
            free(many[n]);
    for (int n = 0; n < MANY; n += 303)
        if (n % 200 >= 112)
            fits(many[n]);
    one_of_many(many[6 * 200]);
    char *old = malloc(100);
    malloc(SIZE);
    free(old);
    freed(old); /* of its memory nothing is known */
    mgpuMemFree(device, stream);
    mgpuStreamDestroy(stream);
    return 0;
}
