/* Plays random programs, and the race of two threads for an address. */
#include "memory.h"

#include <sched.h>
#include <stdatomic.h>

static void walk(uint64_t first, unsigned programs) {
    for (unsigned i = 0; i < programs; i++) {
        begin_program(first + i);
        map((struct range){window, BYTES / 2});
        for (int done = 0; done < STEPS; done++)
            step();
        release_in(window, window + BYTES);
        munmap(window, BYTES);
    }
}

/* ---- two threads, one address ----
 *
 * munmap removes pages before any process is notified. So a second thread may map, write and
 * register the address while the munmap of the first thread still runs. */

static _Atomic unsigned turn; /* the thread with number turn % 2 has its memory at the address */
static unsigned rounds;

static void race_round(unsigned round) {
    struct range at = {window, 4 * PAGE};
    while (mmap(at.address, at.bytes, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != at.address)
        continue;
    memset(at.address, (int)(round % 251 + 1), at.bytes);
    for (int i = 0; i < 2; i++) { /* registered twice, to use the cached registration */
        mgpuMemHostRegister(at.address, at.bytes);
        check_up(&at);
        mgpuMemHostUnregister(at.address);
    }
    atomic_store(&turn, round + 1);
    munmap(at.address, at.bytes);
}

static void *race_half(void *half) {
    for (unsigned round = (unsigned)(uintptr_t)half; round < rounds; round += 2) {
        for (unsigned spins = 1; atomic_load(&turn) != round; spins++)
            if (spins % 4096 == 0)
                sched_yield(); /* a longer wait would miss the other thread's munmap */
        race_round(round);
    }
    return NULL;
}

static void race(void) {
    pthread_t other;
    munmap(window, BYTES);
    pthread_create(&other, NULL, race_half, (void *)1);
    race_half((void *)0);
    pthread_join(other, NULL);
}

int main(int argc, char **argv) {
    if (argc < 3)
        return 2;
    open_window();
    stream = mgpuStreamCreate();
    block = mgpuMemAlloc(BYTES, stream, false);
    if (strcmp(argv[1], "walk") == 0) {
        walk(strtoull(argv[2], NULL, 10), (unsigned)atoi(argv[3]));
    } else if (strcmp(argv[1], "case") == 0) {
        return run_case(argv[2]);
    } else {
        rounds = (unsigned)atoi(argv[2]);
        race();
    }
    mgpuMemFree(block, stream);
    mgpuStreamDestroy(stream);
    return 0;
}
