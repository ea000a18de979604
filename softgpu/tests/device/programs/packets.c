/* Tests an AQL queue directly through the driver library, without HIP: writes packets as any
 * runtime may. test_packets.py runs this program, which uses the first device. */
#include "driver.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

enum {
    PACKETS = 64,
    PACKET_BYTES = 64,
    A_WHILE = 50000 /* us */
};
enum { VENDOR = 0, INVALID = 1, DISPATCH = 2, BARRIER_AND = 3, AGENT = 4, BARRIER_OR = 5 };
enum { DEPENDENCIES = 5, BARRIER_VALUE = 2 };

union packet {
    _Atomic uint16_t header;
    uint64_t words[8];
};

struct signal {
    int64_t kind;
    _Atomic int64_t value;
    uint64_t event_mailbox, event_id, start, end, queue, reserved;
};

/* The members of amd_queue_t that this test needs. */
struct amd_queue {
    char before[56];
    uint64_t write_index;
    char between[64];
    _Atomic uint64_t read_index;
    char more[56];
    uint64_t inactive_signal;
};

static union packet *ring;
static struct amd_queue *amd;
static HsaQueueResource queue;
static struct signal
    *signals; /* an array: DEPENDENCIES signals, the completion signal and the error signal */
static struct signal *completion, *inactive;
static uint64_t written;

static void open_packets(void) {
    open_driver();
    ring = memory(PACKETS * PACKET_BYTES);
    amd = memory(4096);
    signals = memory(4096);
    completion = &signals[DEPENDENCIES];
    inactive = completion + 1;
    for (unsigned i = 0; i < PACKETS; i++)
        ring[i].header = INVALID;
    amd->inactive_signal = (uintptr_t)inactive;
    queue.Queue_read_ptr_aql = (uint64_t *)(void *)&amd->read_index;
    queue.Queue_write_ptr_aql = &amd->write_index;
    open_queue(HSA_QUEUE_COMPUTE_AQL, ring, PACKETS * PACKET_BYTES, &queue);
}

static void write_packet(uint64_t index, uint16_t header, const uint64_t words[8]) {
    union packet *packet = &ring[index % PACKETS];
    memcpy((char *)packet + 2, (const char *)words + 2, PACKET_BYTES - 2);
    atomic_store_explicit(&packet->header, header, memory_order_release);
}

static void ring_bell(uint64_t value) {
    *(volatile uint64_t *)queue.Queue_DoorBell_aql = value;
}

/* Submits the next packet, whose completion signal is `completion`. */
static void submit(uint16_t header, uint64_t words[8]) {
    words[7] = (uintptr_t)completion;
    write_packet(written, header, words);
    amd->write_index = ++written;
    ring_bell(written - 1);
}

static bool comes(_Atomic int64_t *value, int64_t wanted) {
    for (int i = 0; i < HANG * 1000 && *value != wanted; i++)
        usleep(1000);
    return *value == wanted;
}

static void await(int64_t wanted, const char *what) {
    check(!comes(&completion->value, wanted), what);
}

/* Checks that the completion signal still has this value after A_WHILE. */
static void expect_waiting(int64_t value, const char *what) {
    usleep(A_WHILE);
    check(completion->value != value, what);
}

/* Writes four times as many packets as the ring holds. Rings the doorbell in three ways in turn:
 * not at all, with the packet's index, or with the next packet's index. */
static void wrap(void) {
    uint64_t words[8] = {0};
    completion->value = 4 * PACKETS;
    for (unsigned i = 0; i < 4 * PACKETS; i++) {
        while (written - atomic_load(&amd->read_index) >= PACKETS)
            usleep(100);
        check((ring[written % PACKETS].header & 0xff) != INVALID,
              "a slot that is free is not invalid");
        words[7] = (uintptr_t)completion;
        write_packet(written, BARRIER_AND | 1 << 8, words);
        amd->write_index = ++written;
        if (i % 3)
            ring_bell(written - i % 3 % 2);
    }
    ring_bell(written);
    await(0, "not all packets were done");
    check(amd->read_index != 4 * PACKETS, "the read index");
    for (unsigned i = 0; i < PACKETS; i++)
        check(ring[i].header != INVALID, "a packet stayed valid");
}

/* Submits packet 1 while packet 0 is not yet written. */
static void hole(void) {
    uint64_t words[8] = {0};
    words[7] = (uintptr_t)completion;
    completion->value = 2;
    amd->write_index = 2;
    write_packet(1, BARRIER_AND, words);
    ring_bell(1);
    expect_waiting(2, "a packet ran before the one before it was there");
    check(amd->read_index != 0, "the read index passed a packet that was not there");
    write_packet(0, BARRIER_AND, words);
    await(0, "the packets were not done");
}

static void set_dependencies(uint64_t words[8], unsigned mask, int64_t value) {
    for (unsigned n = 0; n < DEPENDENCIES; n++) {
        signals[n].value = value;
        words[1 + n] = mask >> n & 1 ? (uintptr_t)&signals[n] : 0;
    }
}

/* Tries every subset of the dependencies, and completes the dependencies one by one. A signal with
 * value -1 does not satisfy a dependency. */
static void all_of(void) {
    for (unsigned mask = 0; mask < 1 << DEPENDENCIES; mask++) {
        uint64_t words[8] = {0};
        set_dependencies(words, mask, mask % 2 ? -1 : 1);
        completion->value = 1;
        submit(BARRIER_AND | 1 << 8 | 2 << 9 | 2 << 11, words);
        for (unsigned left = mask; left; left &= left - 1) {
            if (mask == 21)
                expect_waiting(1, "a barrier did not wait for all");
            signals[__builtin_ctz(left)].value = 0;
        }
        await(0, "a barrier of which all is met");
    }
}

static void any_of(void) {
    for (unsigned mask = 0; mask < 1 << DEPENDENCIES; mask++) {
        uint64_t words[8] = {0};
        set_dependencies(words, mask, mask % 2 ? INT64_MIN : INT64_MAX);
        completion->value = 1;
        submit(BARRIER_OR, words);
        if (mask == 10)
            expect_waiting(1, "a barrier did not wait for one");
        if (mask)
            signals[31 - __builtin_clz(mask)].value = 0;
        await(0, "a barrier of which one is met");
    }
}

/* Tests barrier-value packets: tries a signal value that does not meet the packet's condition, and
 * a value that meets the condition. */
static void values(void) {
    static const struct {
        int64_t reference;
        uint64_t mask;
        uint32_t condition;
        int64_t fails, passes;
    } cases[] = {
        {0, UINT64_MAX, 0, 1, 0},
        {5, 0xff, 0, 0x6, 0x105},
        {INT64_MIN, UINT64_MAX, 0, 0, INT64_MIN},
        {0, UINT64_MAX, 1, 0, -1},
        {0, UINT64_C(1) << 63, 1, INT64_MAX, -1},
        {0, UINT64_MAX, 2, 0, -1},
        {INT64_MIN + 1, UINT64_MAX, 2, INT64_MAX, INT64_MIN},
        {0, UINT64_MAX, 3, -1, 0},
        {UINT32_MAX, UINT64_MAX, 3, UINT32_MAX - INT64_C(1), UINT32_MAX},
        {INT64_MAX, UINT64_MAX, 3, INT64_MIN, INT64_MAX},
    };
    for (unsigned n = 0; n < sizeof cases / sizeof *cases; n++) {
        uint64_t words[8] = {BARRIER_VALUE << 16, (uintptr_t)&signals[0],
                             (uint64_t)cases[n].reference, cases[n].mask,
                             UINT64_C(0xffffffff00000000) | cases[n].condition};
        signals[0].value = cases[n].fails;
        completion->value = 1;
        submit(VENDOR | 1 << 8, words);
        expect_waiting(1, "a comparison that fails");
        signals[0].value = cases[n].passes;
        await(0, "a comparison that holds");
    }
}

/* Implements `refused TYPE FORMAT`: submits a packet of this type, and prints the bits of the
 * queue's error signal. */
static void refused(unsigned type, unsigned format) {
    uint64_t words[8] = {(uint64_t)format << 16};
    completion->value = 1;
    submit((uint16_t)type, words);
    for (int i = 0; i < HANG * 1000 && !inactive->value; i++)
        usleep(1000);
    printf("%#llx\n", (unsigned long long)inactive->value);
    check(completion->value != 1, "a packet that was refused completed");
    fflush(stdout);
    _exit(0); /* exits now, because the device aborts if no runtime reacts to the error */
}

/* Runs a kernel that stores its dispatch id at the address of its arguments: s_store_dwordx2
 * s[2:3], s[0:1], 0x0 and s_endpgm. The dispatch id counts all earlier packets, including
 * barriers. */
static void dispatch_ids(void) {
    struct {
        uint32_t segments[4];
        int64_t entry;
        char reserved[20];
        uint32_t rsrc3, rsrc1, rsrc2;
        uint16_t properties;
        char rest[6];
    } descriptor = {.entry = 256, .rsrc1 = 0xf << 16, .rsrc2 = 4 << 1, .properties = 8 | 16};
    static const uint32_t code[] = {0xc0460080, 0, 0xbf810000};
    char *kernel = memory(4096);
    _Static_assert(sizeof descriptor == 64, "a kernel descriptor");
    memcpy(kernel, &descriptor, sizeof descriptor);
    memcpy(kernel + 256, code, sizeof code);
    _Atomic int64_t *id = memory(4096);
    for (int64_t expected = 0; expected < 9; expected += 3) {
        uint64_t empty[8] = {0};
        completion->value = 3;
        *id = -1;
        const uint64_t one = 1, items = 64, dimensions = 1;
        uint64_t words[8] = {dimensions << 16 | items << 32 | one << 48,
                             one | items << 32,
                             one | one << 32,
                             0,
                             (uintptr_t)kernel,
                             (uintptr_t)id};
        submit(DISPATCH | 1 << 8, words);
        submit(BARRIER_AND, empty);
        submit(BARRIER_OR, empty);
        await(0, "the kernel");
        printf("%lld\n", (long long)*id);
    }
}

int main(int argc, char **argv) {
    const char *name = argc > 1 ? argv[1] : "";
    static const struct {
        const char *name;
        void (*run)(void);
    } cases[] = {{"wrap", wrap},     {"hole", hole},     {"all_of", all_of},
                 {"any_of", any_of}, {"values", values}, {"dispatch_ids", dispatch_ids}};
    open_packets();
    for (unsigned n = 0; n < sizeof cases / sizeof *cases; n++)
        if (strcmp(cases[n].name, name) == 0)
            cases[n].run();
    if (strcmp(name, "refused") == 0 && argc > 3)
        refused((unsigned)atoi(argv[2]), (unsigned)atoi(argv[3]));
    return 0;
}
