#include "memory.h"

#include "calls.h"
#include "graph.h"
#include "log.h"
#include "mode.h"
#include "pins.h"
#include "shared.h"
#include "stream.h"

#include <stdlib.h>
#include <string.h>

enum { BUFFER_ID = 7, DEVICE_ORDINAL = 9 };
enum { NEW_BYTE = 0xA5, FREED_BYTE = 0xDB, ALIGNMENT = 256 };

/* Freed blocks retain their addresses. If the total size of freed blocks exceeds this limit, the
 * stub releases the oldest blocks. */
static const size_t most_idle_bytes = (size_t)256 << 20;

static struct block *blocks; /* in order of creation; the array is short in tests */
static size_t block_count, block_capacity;
static size_t device_bytes, idle_bytes;
static size_t late_bytes; /* freed bytes that hipMalloc cannot have yet (HIPSTUB_LATE) */

static void add(void *address, size_t bytes, enum memory_kind kind, unsigned flags, int device) {
    if (block_count == block_capacity) {
        block_capacity = block_capacity == 0 ? 64 : 2 * block_capacity;
        blocks = realloc(blocks, block_capacity * sizeof *blocks);
    }
    static uint64_t number;
    blocks[block_count++] = (struct block){address, bytes, kind, device, flags, ++number, NULL};
}

static void forget(struct block *block) {
    pins_close(block->pins);
    memmove(block, block + 1, (size_t)(blocks + block_count-- - (block + 1)) * sizeof *block);
}

static struct block *find(const void *address) {
    const char *at = address;
    for (size_t i = block_count; i-- > 0;)
        if (at >= blocks[i].address && at < blocks[i].address + blocks[i].bytes)
            return &blocks[i];
    return NULL;
}

const struct block *memory_find(const void *address) {
    return find(address);
}

int memory_check(const char *function, const void *address, size_t bytes) {
    const struct block *block = find(address);
    if (block == NULL)
        return 0;
    if (block->kind == MEMORY_FREED)
        stub_misuse("%s: %p was freed", function, address);
    else if ((const char *)address + bytes <= block->address + block->bytes)
        return 1;
    else if (block->kind != MEMORY_REGISTERED)
        stub_misuse("%s: %zu bytes at %p run past the end of a block", function, bytes, address);
    else
        return 0;
    return -1;
}

void memory_copy(void *to, const void *from, size_t bytes) {
    if (!pins_wanted()) {
        memmove(to, from, bytes);
        return;
    }
    stub_lock();
    const struct block *source = find(from), *target = find(to);
    if (source != NULL && source->pins != NULL)
        pins_read(source->pins, from, to, bytes);
    else
        memmove(to, from, bytes);
    if (target != NULL && target->pins != NULL) {
        char *seen = malloc(bytes);
        pins_read(target->pins, to, seen, bytes);
        if (memcmp(seen, to, bytes) != 0)
            stub_misuse("a copy to %p: other pages were registered there", to);
        free(seen);
    }
    stub_unlock();
}

static int64_t count_kinds(enum memory_kind kind, enum memory_kind other) {
    int64_t count = 0;
    for (size_t i = 0; i < block_count; ++i)
        count += blocks[i].kind == kind || blocks[i].kind == other;
    return count;
}

int64_t memory_live_blocks(void) {
    return count_kinds(MEMORY_DEVICE, MEMORY_MANAGED);
}
int64_t memory_live_bytes(void) {
    return (int64_t)device_bytes;
}
int64_t memory_live_registrations(void) {
    return count_kinds(MEMORY_REGISTERED, MEMORY_REGISTERED);
}

/* Returns whether memory of this kind counts against HIPSTUB_MEMORY. */
static bool is_counted(enum memory_kind kind) {
    return kind == MEMORY_DEVICE || kind == MEMORY_MANAGED;
}

/* Fills a block with a pattern. Of a block above 2 MiB it fills a MiB at each end: tests allocate
 * gigabytes, and a page takes time when it is first written. */
static void set_pattern(char *memory, int pattern, size_t bytes) {
    const size_t end = (size_t)1 << 20;
    if (bytes <= 2 * end) {
        memset(memory, pattern, bytes);
        return;
    }
    memset(memory, pattern, end);
    memset(memory + bytes - end, pattern, end);
}

/* With HIPSTUB_REUSE, the memory of the block that was freed last, for the next block that fits. */
static struct {
    void *address;
    size_t bytes;
} returned;

/* The unit makes room for a later block that is a little larger. */
static size_t held_bytes(size_t bytes) {
    const size_t unit = stub_reuse ? (size_t)256 << 10 : ALIGNMENT;
    return (bytes + unit - 1) & ~(unit - 1);
}

static void *take_memory(size_t bytes) {
    if (returned.address == NULL || bytes > returned.bytes)
        return aligned_alloc(ALIGNMENT, bytes);
    void *memory = returned.address;
    returned.address = NULL;
    return memory;
}

/* The memory of a global is too small, and not aligned, for a block. */
static void return_memory(const struct block *block) {
    if (block->kind == MEMORY_GLOBAL) {
        free(block->address);
        return;
    }
    free(returned.address);
    returned.address = block->address;
    returned.bytes = held_bytes(block->bytes);
}

void *memory_add_global(size_t bytes, int device) {
    void *memory = calloc(1, bytes);
    add(memory, bytes, MEMORY_GLOBAL, 0, device);
    return memory;
}

static hipError_t allocate(void **address, size_t bytes, enum memory_kind kind, unsigned flags) {
    if (address == NULL)
        return hipErrorInvalidValue;
    if (bytes == 0) {
        *address = NULL;
        return kind == MEMORY_MANAGED ? hipErrorInvalidValue : hipSuccess;
    }
    if (is_counted(kind) &&
        (bytes > stub_memory || device_bytes + late_bytes + bytes > stub_memory))
        return hipErrorOutOfMemory;
    if (is_counted(kind) && !shared_take(bytes))
        return hipErrorOutOfMemory;
    void *memory = take_memory(held_bytes(bytes));
    if (memory == NULL)
        return hipErrorOutOfMemory;
    set_pattern(memory, NEW_BYTE, bytes);
    if (is_counted(kind))
        device_bytes += bytes;
    add(memory, bytes, kind, flags, current_device());
    *address = memory;
    return hipSuccess;
}

static void drop_idle(void) {
    for (size_t i = 0; i < block_count && idle_bytes > most_idle_bytes;) {
        if (blocks[i].kind != MEMORY_FREED) {
            ++i;
            continue;
        }
        idle_bytes -= blocks[i].bytes;
        free(blocks[i].address);
        forget(&blocks[i]);
    }
}

/* Fills a freed block with a pattern. Unless HIPSTUB_REUSE is set, keeps the block in the list to
 * detect later uses. */
static void retire(struct block *block) {
    set_pattern(block->address, FREED_BYTE, block->bytes);
    if (is_counted(block->kind)) {
        device_bytes -= block->bytes;
        late_bytes += stub_late ? block->bytes : 0;
        shared_return(block->bytes);
    }
    if (stub_reuse) {
        return_memory(block);
        forget(block);
        return;
    }
    block->kind = MEMORY_FREED;
    idle_bytes += block->bytes;
    drop_idle();
}

void memory_stream_is_idle(void) {
    late_bytes = 0;
}

void memory_drop_global(void *address) {
    retire(find(address));
}

/* Returns the block that begins at the address, if the block's kind is `kind` or `other`.
 * MEMORY_DEVICE includes MEMORY_EXTENDED. If no such block exists, counts a misuse and returns
 * NULL. */
static struct block *releasable(const char *function, const void *address, enum memory_kind kind,
                                enum memory_kind other) {
    struct block *block = find(address);
    if (block != NULL && block->address == (const char *)address &&
        (block->kind == kind || block->kind == other ||
         (kind == MEMORY_DEVICE && block->kind == MEMORY_EXTENDED)))
        return block;
    if (block != NULL && block->kind == MEMORY_FREED)
        stub_misuse("%s: %p was freed before", function, address);
    else
        stub_misuse("%s: %p is no block's address", function, address);
    return NULL;
}

hipError_t emu_hipMalloc(void **address, size_t bytes) {
    if (graph_forbids())
        return hipErrorStreamCaptureUnsupported;
    return allocate(address, bytes, MEMORY_DEVICE, 0);
}

hipError_t emu_hipExtMallocWithFlags(void **address, size_t bytes, unsigned flags) {
    if (flags != 0) /* nonzero flags request fine-grained, uncached or signal memory */
        return hipErrorInvalidValue;
    return allocate(address, bytes, MEMORY_EXTENDED, flags);
}

hipError_t emu_hipMallocManaged(void **address, size_t bytes, unsigned flags) {
    if (flags != 1 && flags != 2) /* hipMemAttachGlobal or hipMemAttachHost */
        return hipErrorInvalidValue;
    return allocate(address, bytes, MEMORY_MANAGED, flags);
}

hipError_t emu_hipHostMalloc(void **address, size_t bytes, unsigned flags) {
    return allocate(address, bytes, MEMORY_PINNED, flags);
}

/* AMD's HIP waits for all streams. The wait releases the lock, so the block is found afterwards. */
static hipError_t release(const char *function, void *address, enum memory_kind kind,
                          enum memory_kind other) {
    if (address == NULL)
        return hipSuccess;
    if (releasable(function, address, kind, other) == NULL)
        return hipErrorInvalidValue;
    stream_wait_all(false);
    struct block *block = releasable(function, address, kind, other);
    if (block == NULL)
        return hipErrorInvalidValue;
    retire(block);
    return hipSuccess;
}

hipError_t emu_hipFree(void *address) {
    if (address != NULL && graph_forbids())
        return hipErrorStreamCaptureUnsupported;
    return release("hipFree", address, MEMORY_DEVICE, MEMORY_MANAGED);
}

hipError_t emu_hipHostFree(void *address) {
    return release("hipHostFree", address, MEMORY_PINNED, MEMORY_PINNED);
}

hipError_t emu_hipMemGetInfo(size_t *available, size_t *total) {
    if (available == NULL || total == NULL)
        return hipErrorInvalidValue;
    *available = stub_memory - device_bytes - shared_others();
    *total = stub_memory;
    return hipSuccess;
}

hipError_t emu_hipHostRegister(void *address, size_t bytes, unsigned flags) {
    if (address == NULL)
        return hipErrorInvalidValue;
    if (bytes == 0)
        return hipErrorOutOfMemory; /* AMD's HIP 5.2.3 returns hipErrorOutOfMemory here */
    const char *from = address, *to = from + bytes;
    for (size_t i = 0; i < block_count; ++i)
        if (blocks[i].kind == MEMORY_REGISTERED && from < blocks[i].address + blocks[i].bytes &&
            blocks[i].address < to)
            return hipErrorHostMemoryAlreadyRegistered;
    add(address, bytes, MEMORY_REGISTERED, flags, current_device());
    blocks[block_count - 1].pins = pins_open(address, bytes);
    return hipSuccess;
}

static struct block *find_registered(const void *address) {
    struct block *block = find(address);
    return block != NULL && block->kind == MEMORY_REGISTERED && block->address == address ? block
                                                                                          : NULL;
}

/* AMD's HIP 5.2.3 waits for the null stream and the streams that wait for it; later releases wait
 * for all streams. */
hipError_t emu_hipHostUnregister(void *address) {
    if (find_registered(address) == NULL)
        return hipErrorHostMemoryNotRegistered;
    stream_wait_all(true);
    struct block *block = find_registered(address);
    if (block == NULL)
        return hipErrorHostMemoryNotRegistered;
    forget(block);
    return hipSuccess;
}

static bool is_hosts(enum memory_kind kind) {
    return kind == MEMORY_PINNED || kind == MEMORY_MANAGED || kind == MEMORY_REGISTERED;
}

hipError_t emu_hipHostGetDevicePointer(void **device, void *host, unsigned flags) {
    (void)flags;
    const struct block *block = find(host);
    if (device == NULL || block == NULL || !is_hosts(block->kind))
        return hipErrorInvalidValue;
    *device = host;
    return hipSuccess;
}

hipError_t emu_hipPointerGetAttributes(hipPointerAttribute_t *attributes, const void *address) {
    const struct block *block = find(address);
    if (attributes == NULL)
        return hipErrorInvalidValue;
    if (block == NULL || block->kind == MEMORY_FREED) {
        *attributes = (hipPointerAttribute_t){.device = -1};
        return stub_version < 60000000 ? hipErrorInvalidValue : hipSuccess;
    }
    if (block->kind == MEMORY_GLOBAL && stub_version < 60000000)
        return hipErrorInvalidValue; /* HIP 5.2.3 refuses a global before hipModuleGetGlobal; the
                                        stub always refuses globals */
    const bool device_only = !is_hosts(block->kind);
    *attributes = (hipPointerAttribute_t){
        .memory_type = device_only || block->kind == MEMORY_MANAGED,
        .device = block->device,
        .device_pointer = (void *)(uintptr_t)address,
        .host_pointer = device_only ? NULL : (void *)(uintptr_t)address,
        .is_managed = block->kind == MEMORY_MANAGED,
        .allocation_flags = block->flags,
    };
    return hipSuccess;
}

static struct block *first_of(int device) {
    for (size_t i = 0; i < block_count; ++i)
        if (blocks[i].device == device && blocks[i].kind != MEMORY_FREED &&
            (stub_devices == 1 || !is_hosts(blocks[i].kind)))
            return &blocks[i];
    return NULL;
}

void memory_reset(int device) {
    for (struct block *block; (block = first_of(device)) != NULL;)
        if (block->kind == MEMORY_REGISTERED)
            forget(block);
        else
            retire(block);
}

hipError_t emu_hipMemGetAddressRange(void **base, size_t *bytes, void *address) {
    const struct block *block = find(address);
    if (block == NULL || block->kind == MEMORY_FREED || block->kind == MEMORY_REGISTERED)
        return hipErrorInvalidDevicePointer;
    if (base != NULL)
        *base = block->address;
    if (bytes != NULL)
        *bytes = block->bytes;
    return hipSuccess;
}

hipError_t emu_hipPointerGetAttribute(void *value, int attribute, void *address) {
    const struct block *block = find(address);
    if (value == NULL || block == NULL || block->kind == MEMORY_FREED)
        return hipErrorInvalidValue;
    if (attribute == BUFFER_ID)
        *(uint32_t *)value = (uint32_t)block->number; /* as AMD's HIP 5.2.3 */
    else if (attribute == DEVICE_ORDINAL)
        *(int *)value = block->device;
    else
        return hipErrorInvalidValue;
    return hipSuccess;
}
