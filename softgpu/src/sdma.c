/* Implements the copy engine: the queue's thread drains a ring of commands in AMD's SDMA format
 * (version 4, as on GFX9). HIP copies between host and device through the copy engine, at the speed
 * of memcpy. With HSA_ENABLE_SDMA=0, HIP launches copy kernels, which the interpreter runs.
 *
 * ROCr sends only the commands below; every other command is a fault. */
#include "check/hooks.h"
#include "queue.h"

#include <stdio.h>
#include <string.h>

enum opcode {
    NOP = 0,
    COPY = 1,
    FENCE = 5,
    TRAP = 6,
    POLL = 8,
    ATOMIC = 10,
    FILL = 11,
    TIMESTAMP = 13,
};
enum { COPY_LINEAR = 0, COPY_RECTANGLE = 4, ATOMIC_ADD64 = 47, MAX_WORDS = 13 };

/* Returns the number of words of a command, including the header, or 0 for an unknown command. */
static unsigned command_words(uint32_t header) {
    unsigned operation = header & 0xff, variant = (header >> 8) & 0xff;
    switch (operation) {
    case NOP: /* the field contains the number of padding words after the header */
        return 1 + ((header >> 16) & 0x3fff);
    case COPY:
        return variant == COPY_LINEAR ? 7 : variant == COPY_RECTANGLE ? 13 : 0;
    case FENCE:
        return 4;
    case TRAP:
        return 2;
    case POLL:
        return 6;
    case ATOMIC:
        return header >> 25 == ATOMIC_ADD64 ? 8 : 0;
    case FILL:
        return header >> 30 == 2 ? 5 : 0;
    case TIMESTAMP:
        return 3;
    default:
        return 0;
    }
}

static uint64_t address(const uint32_t *words) {
    return words[0] | (uint64_t)words[1] << 32;
}

static bool memory_fault(uint64_t va, struct softgpu_fault *fault) {
    snprintf(fault->text, sizeof fault->text,
             "copy engine: access to 0x%llx, where nothing is mapped", (unsigned long long)va);
    fault->kind = SOFTGPU_FAULT_MEMORY;
    fault->address = va;
    return false;
}

/* Returns the host address of [va, va + size); if the range is not fully mapped, returns NULL and
 * fills the fault. Two neighbouring allocations are separate mappings, but no copy spans two
 * mappings. */
static char *host_bytes(uint64_t va, uint64_t size, struct softgpu_fault *fault) {
    struct softgpu_range range;
    if (!softgpu_find_range(va, &range))
        return memory_fault(va, fault), NULL;
    if (size > range.size - (va - range.va))
        return memory_fault(range.va + range.size, fault), NULL;
    return range.host + (va - range.va);
}

/* The count field of a linear copy has 22 bits, or 30 bits on engines 4.4 (gfx90a) and later. ROCr
 * 6.1 and later use all 30 bits. A fill's count always has 22 bits. */
static uint32_t copy_count_mask(const struct softgpu_target *target) {
    enum { FIRST_LONG_MINOR = 4, FIRST_LONG_STEPPING = 10 };
    bool is_long = target->minor >= FIRST_LONG_MINOR || target->stepping >= FIRST_LONG_STEPPING;
    return is_long ? 0x3fffffff : 0x3fffff;
}

static bool copy_linear(const struct softgpu_queue *queue, const uint32_t *words,
                        struct softgpu_fault *fault) {
    uint32_t mask = copy_count_mask(softgpu_node_target(queue->node));
    uint64_t size = (uint64_t)(words[1] & mask) + 1;
    const char *source = host_bytes(address(words + 3), size, fault);
    char *target = source ? host_bytes(address(words + 5), size, fault) : NULL;
    if (target) {
        memmove(target, source, size);
        CHECK_COPIED(address(words + 5), address(words + 3), size);
    }
    return target != NULL;
}

/* The source or the destination of a rectangle copy; pitch and slice are in bytes. */
struct side {
    uint64_t va, pitch, slice;
};

static struct side read_side(const uint32_t *words, unsigned element) {
    uint64_t x = words[2] & 0x3fff, y = (words[2] >> 16) & 0x3fff, z = words[3] & 0x7ff;
    struct side side = {
        .pitch = ((uint64_t)(words[3] >> 13) + 1) << element,
        .slice = ((uint64_t)(words[4] & 0xfffffff) + 1) << element,
    };
    side.va = address(words) + (x << element) + y * side.pitch + z * side.slice;
    return side;
}

static bool copy_rectangle(const uint32_t *words, struct softgpu_fault *fault) {
    unsigned element = words[0] >> 29;
    struct side from = read_side(words + 1, element), to = read_side(words + 6, element);
    uint64_t width = ((uint64_t)(words[11] & 0x3fff) + 1) << element;
    uint64_t rows = ((words[11] >> 16) & 0x3fff) + 1, slices = (words[12] & 0x7ff) + 1;
    for (uint64_t z = 0; z < slices; z++)
        for (uint64_t y = 0; y < rows; y++) {
            uint64_t source_va = from.va + y * from.pitch + z * from.slice;
            const char *source = host_bytes(source_va, width, fault);
            uint64_t target_va = to.va + y * to.pitch + z * to.slice;
            char *target = source ? host_bytes(target_va, width, fault) : NULL;
            if (!target)
                return false;
            memmove(target, source, width);
            CHECK_COPIED(target_va, source_va, width);
        }
    return true;
}

static bool fill(const uint32_t *words, struct softgpu_fault *fault) {
    uint64_t size = (uint64_t)(words[4] & 0x3fffff) + 4;
    char *target = host_bytes(address(words + 1), size, fault);
    for (uint64_t i = 0; target && i < size; i += 4)
        memcpy(target + i, &words[3], 4);
    CHECK_FILLED(address(words + 1), size);
    return target != NULL;
}

/* Signals and time stamps are aligned, and their memory is shared by host and device, so atomic
 * access is possible. */
static _Atomic uint32_t *word_at(uint64_t va, struct softgpu_fault *fault) {
    return (_Atomic uint32_t *)(void *)host_bytes(va, 4, fault);
}

static _Atomic uint64_t *long_at(uint64_t va, struct softgpu_fault *fault) {
    return (_Atomic uint64_t *)(void *)host_bytes(va, 8, fault);
}

static bool compare(uint32_t value, uint32_t reference, unsigned function) {
    switch (function) {
    case 1:
        return value < reference;
    case 2:
        return value <= reference;
    case 3:
        return value == reference;
    case 4:
        return value != reference;
    case 5:
        return value >= reference;
    case 6:
        return value > reference;
    default:
        return true;
    }
}

/* Waits until the word in memory meets the condition. For a command that polls a register, returns
 * true at once, because ROCr sends such a command only to flush a cache. */
static bool poll(struct softgpu_queue *queue, const uint32_t *words, struct softgpu_fault *fault) {
    if (!(words[0] >> 31))
        return true;
    _Atomic uint32_t *word = word_at(address(words + 1), fault);
    struct softgpu_patience patience = {0};
    while (word && !compare(atomic_load(word) & words[4], words[3], (words[0] >> 28) & 7))
        if (!softgpu_queue_wait(queue, &patience))
            return false;
    return word != NULL;
}

static bool fence(const uint32_t *words, struct softgpu_fault *fault) {
    _Atomic uint32_t *word = word_at(address(words + 1), fault);
    if (word)
        atomic_store(word, words[3]);
    return word != NULL;
}

static bool add(const uint32_t *words, struct softgpu_fault *fault) {
    _Atomic uint64_t *word = long_at(address(words + 1), fault);
    if (word)
        atomic_fetch_add(word, address(words + 3));
    return word != NULL;
}

static bool stamp(const uint32_t *words, struct softgpu_fault *fault) {
    _Atomic uint64_t *word = long_at(address(words + 1), fault);
    if (word)
        atomic_store(word, softgpu_now());
    return word != NULL;
}

/* Returns false after a fault, or if the queue must stop. */
static bool perform(struct softgpu_queue *queue, const uint32_t *words,
                    struct softgpu_fault *fault) {
    switch (words[0] & 0xff) {
    case COPY:
        return ((words[0] >> 8) & 0xff) == COPY_LINEAR ? copy_linear(queue, words, fault)
                                                       : copy_rectangle(words, fault);
    case FENCE:
        return fence(words, fault);
    case TRAP:
        softgpu_raise_event(words[1] & 0xfffffff);
        return true;
    case POLL:
        return poll(queue, words, fault);
    case ATOMIC:
        return add(words, fault);
    case FILL:
        return fill(words, fault);
    case TIMESTAMP:
        return stamp(words, fault);
    default:
        return true;
    }
}

/* Waits for a command and copies the command out of the ring; returns its length in words, or 0
 * when the queue must stop. */
static unsigned await_command(struct softgpu_queue *queue, uint64_t index, uint32_t *words) {
    struct softgpu_patience patience = {0};
    while (atomic_load_explicit(&queue->sdma_write_index, memory_order_acquire) == index)
        if (!softgpu_queue_idle(queue, &patience, false))
            return 0;
    softgpu_queue_found(queue);
    const char *ring = queue->ring;
    uint64_t mask = queue->ring_bytes - 1;
    memcpy(words, ring + (index & mask), 4);
    unsigned count = command_words(words[0]);
    for (unsigned i = 1; i < count && i < MAX_WORDS; i++)
        memcpy(words + i, ring + ((index + 4 * i) & mask), 4);
    return count ? count : 1; /* softgpu_drain_sdma reports an unknown command */
}

void softgpu_drain_sdma(struct softgpu_queue *queue) {
    for (uint64_t index = 0;;) {
        uint32_t words[MAX_WORDS];
        struct softgpu_fault fault = {0};
        unsigned count = await_command(queue, index, words);
        if (count == 0)
            return;
        bool known = command_words(words[0]) != 0;
        if (!known)
            snprintf(fault.text, sizeof fault.text, "copy engine: unknown command 0x%08x",
                     words[0]);
        if (!known || !perform(queue, words, &fault)) {
            if (*fault.text)
                softgpu_queue_fail(queue, &fault);
            return;
        }
        index += 4 * count;
        atomic_store_explicit(&queue->sdma_read_index, index, memory_order_release);
    }
}
