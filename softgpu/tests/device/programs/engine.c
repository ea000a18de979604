/* Tests the copy engine directly through the driver library, without HIP. Sends commands in the
 * forms that different ROCr releases use. test_engine.py runs this program, which uses the first
 * device. */
#include "driver.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

enum { RING_BYTES = 4096, FENCE = 5 };

static char *ring;
static HsaQueueResource queue;
static uint64_t written; /* bytes */
static _Atomic uint32_t *done;
static uint32_t fences;

static void open_engine(void) {
    open_driver();
    ring = memory(RING_BYTES);
    done = memory(4096);
    open_queue(HSA_QUEUE_SDMA, ring, RING_BYTES, &queue);
}

static void put(const uint32_t *words, unsigned count) {
    for (unsigned i = 0; i < count; i++, written += 4)
        memcpy(ring + written % RING_BYTES, &words[i], 4);
}

static void address(uint32_t *words, const volatile void *pointer) {
    words[0] = (uint32_t)(uintptr_t)pointer;
    words[1] = (uint32_t)((uintptr_t)pointer >> 32);
}

/* Submits all commands written so far, and waits for their completion. */
static void finish(void) {
    uint32_t fence[4] = {FENCE, 0, 0, ++fences};
    address(&fence[1], done);
    put(fence, 4);
    atomic_store((_Atomic uint64_t *)queue.Queue_write_ptr_aql, written);
    *(volatile uint64_t *)queue.Queue_DoorBell_aql = written;
    for (int i = 0; i < HANG * 1000 && atomic_load(done) != fences; i++)
        usleep(1000);
    check(atomic_load(done) != fences, "the engine did not come to its fence");
}

static void copy(void *to, const void *from, uint32_t count) {
    uint32_t words[7] = {1, count};
    address(&words[3], from);
    address(&words[5], to);
    put(words, 7);
}

/* Makes one copy whose command has the count field `count`, and returns how many bytes the copy
 * wrote. */
static uint64_t copied(uint32_t count, uint64_t room) {
    char *from = memory(room), *to = memory(room);
    memset(from, 1, room);
    copy(to, from, count);
    finish();
    const char *end = memchr(to, 0, room);
    return end ? (uint64_t)(end - to) : room;
}

/* Implements `counts FIELD...`: makes one copy for each count field, and prints how many bytes each
 * copy wrote. */
static void counts(int n, char **fields) {
    for (int i = 0; i < n; i++) {
        uint32_t field = (uint32_t)strtoul(fields[i], NULL, 0);
        printf("%llu\n", (unsigned long long)copied(field, (uint64_t)field + 4096));
    }
}

/* Copies until the write index has gone round the ring three times, so that some commands wrap
 * around the ring's end. */
static void wrap(void) {
    char *from = memory(4096), *to = memory(4096);
    for (unsigned i = 0; written < 3 * RING_BYTES; i++) {
        memset(from, (int)(i % 255) + 1, 16);
        copy(to, from, 15);
        finish();
        check(memcmp(from, to, 16), "a copy went wrong");
    }
    puts("wrapped");
}

/* Writes a padding command with arbitrary words. The engine skips as many words as the command's
 * header says. */
static void padding(void) {
    uint32_t words[6] = {5u << 16, 0xff, 0xff, 0xff, 0xff, 0xff};
    put(words, 6);
    finish();
    puts("padded");
}

int main(int argc, char **argv) {
    open_engine();
    if (argc > 1 && strcmp(argv[1], "wrap") == 0)
        wrap();
    else if (argc > 1 && strcmp(argv[1], "padding") == 0)
        padding();
    else if (argc > 2)
        counts(argc - 2, argv + 2);
    return 0;
}
