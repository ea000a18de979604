/* Tests device and host memory, and copies between them. */
#include "cases.h"

static void host_register(void) {
    static char buffer[100000];
    char *start = buffer + 100; /* start and size are not page-aligned */
    for (int i = 0; i < 3; i++) {
        char *device;
        OK(hipHostRegister(start, 50000, hipHostRegisterMapped));
        OK(hipHostGetDevicePointer((void **)&device, start, 0));
        EXPECT(device != start);
        OK(hipHostUnregister(start));
    }
    EXPECT(hipHostUnregister(start) != 0);
}

static void register_neighbours(void) {
    static char buffer[8192];
    OK(hipHostRegister(buffer, 5000, 0)); /* the two ranges share a page */
    OK(hipHostRegister(buffer + 5000, 3000, 0));
    char *first, *second;
    OK(hipHostGetDevicePointer((void **)&first, buffer, 0));
    OK(hipHostGetDevicePointer((void **)&second, buffer + 5000, 0));
    EXPECT(second + 3000 <= first || second >= first + 5000);
    OK(hipHostUnregister(buffer));
    OK(hipHostUnregister(buffer + 5000));
}

static void host_memory(void) {
    char *managed, *pinned;
    OK(hipMallocManaged((void **)&managed, 10000, 1));
    memset(managed, 1, 10000);
    OK(hipFree(managed));
    OK(hipHostMalloc((void **)&pinned, 10000, 0));
    memset(pinned, 1, 10000);
    OK(hipHostFree(pinned));
}

static void async_memory(void) {
    void *memory;
    hipStream_t stream = new_stream();
    for (int i = 0; i < 3; i++) {
        OK(hipMallocAsync(&memory, 4096, stream));
        OK(hipFreeAsync(memory, stream));
    }
    OK(hipStreamSynchronize(stream));
    /* The stream is not destroyed, because HIP 5.2.3 would loop for ever over the blocks of the
     * stream's pool. */
}

static void memory_info(void) {
    size_t before, after, total;
    void *memory;
    OK(hipMemGetInfo(&before, &total));
    EXPECT(total == 256u << 20 && before <= total); /* the test sets memory=256M */
    OK(hipMalloc(&memory, 100 << 20));
    OK(hipMemGetInfo(&after, &total));
    EXPECT(before - after == 100 << 20);
    OK(hipFree(memory));
    OK(hipMemGetInfo(&after, &total));
    EXPECT(before == after);
}

static void out_of_memory(void) {
    enum { STEP = 16 << 20 };
    size_t free_bytes, total, got = 0;
    void *memory, *blocks[32];
    OK(hipMemGetInfo(&free_bytes, &total));
    int code;
    while ((code = hipMalloc(&memory, STEP)) == 0 && got < 32)
        blocks[got++] = memory;
    EXPECT(code == hipErrorOutOfMemory);
    EXPECT(got == total / STEP);
    EXPECT(hipMalloc(&memory, total + 1) == hipErrorOutOfMemory);
    for (size_t i = 0; i < got; i++)
        OK(hipFree(blocks[i]));
    OK(hipMalloc(&memory, STEP)); /* hipMalloc succeeds again after hipFree */
}

/* Fills memory with other bytes at each call, because HIP's pinned memory still holds the bytes of
 * the case before. */
static void fill_pattern(unsigned char *bytes, size_t size) {
    static unsigned calls;
    calls++;
    for (size_t i = 0; i < size; i++)
        bytes[i] = (unsigned char)(i * 7 + i / 251 + calls);
}

/* Copies `size` bytes to the device, to other memory of the device if `twice`, and back: on a
 * stream or synchronously. */
static void round_trip(size_t size, bool twice, hipStream_t stream) {
    unsigned char *source = malloc(size), *back = calloc(1, size);
    void *first, *last;
    fill_pattern(source, size);
    OK(hipMalloc(&first, size));
    last = first;
    if (twice)
        OK(hipMalloc(&last, size));
    if (stream) {
        OK(hipMemcpyAsync(first, source, size, hipMemcpyHostToDevice, stream));
        OK(hipMemcpyAsync(back, first, size, hipMemcpyDeviceToHost, stream));
        OK(hipStreamSynchronize(stream));
    } else {
        OK(hipMemcpy(first, source, size, hipMemcpyHostToDevice));
        if (twice)
            OK(hipMemcpy(last, first, size, hipMemcpyDeviceToDevice));
        OK(hipMemcpy(back, last, size, hipMemcpyDeviceToHost));
    }
    EXPECT(memcmp(source, back, size) == 0);
    OK(hipFree(first));
    if (twice)
        OK(hipFree(last));
    free(source);
    free(back);
}

static const size_t sizes[] = {1, 3, 64, 4095, 4097, 100000, (8 << 20) + 12};

static void copies(void) {
    hipStream_t stream = new_stream();
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        round_trip(sizes[i], false, NULL);
        round_trip(sizes[i], false, stream);
    }
}

static void device_copies(void) {
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        round_trip(sizes[i], true, NULL);
}

/* Tests copies of about 4 MiB and of 64 MiB. An older copy engine copies at most 4 MiB by one
 * command. */
static void large_copies(void) {
    for (unsigned extra = 0; extra < 3; extra++)
        round_trip((4u << 20) - 1 + extra, false, NULL);
    round_trip((64u << 20) + 1, false, NULL);
}

static void huge_copies(void) {
    round_trip(256u << 20, false, NULL);
    round_trip((1u << 30) + 1, false, NULL);
}

/* Copies a window of a pitched image to the device and back. */
static void copies_2d(void) {
    enum { PITCH = 1000, WIDTH = 333, HEIGHT = 50 };
    static unsigned char source[PITCH * HEIGHT], back[PITCH * HEIGHT];
    void *device;
    fill_pattern(source, sizeof source);
    memset(back, 0xee, sizeof back);
    OK(hipMalloc(&device, 512 * HEIGHT));
    OK(hipMemcpy2D(device, 512, source + 8, PITCH, WIDTH, HEIGHT, hipMemcpyHostToDevice));
    OK(hipMemcpy2D(back + 8, PITCH, device, 512, WIDTH, HEIGHT, hipMemcpyDeviceToHost));
    for (int i = 0; i < PITCH * HEIGHT; i++) {
        int column = i % PITCH;
        bool inside = column >= 8 && column < 8 + WIDTH;
        EXPECT(back[i] == (inside ? source[i] : 0xee));
    }
}

static void memsets(void) {
    enum { SIZE = 100003 };
    static unsigned char back[SIZE];
    void *device;
    OK(hipMalloc(&device, SIZE + 1));
    OK(hipMemset(device, 0x5a, SIZE));
    OK(hipMemcpy(back, device, SIZE, hipMemcpyDeviceToHost));
    for (int i = 0; i < SIZE; i++)
        EXPECT(back[i] == 0x5a);
    OK(hipMemsetD32Async(device, 0x01020304, SIZE / 4, NULL));
    OK(hipMemcpy(back, device, SIZE, hipMemcpyDeviceToHost));
    for (int i = 0; i < SIZE; i++)
        EXPECT(back[i] == (i < SIZE / 4 * 4 ? 4 - i % 4 : 0x5a));
}

/* Copies from and to registered memory, which has both a host address and a device address. */
static void registered_copies(void) {
    enum { SIZE = 300000 };
    static unsigned char source[SIZE], back[SIZE];
    void *device;
    fill_pattern(source, SIZE);
    OK(hipHostRegister(source, SIZE, 0));
    OK(hipHostRegister(back, SIZE, 0));
    OK(hipMalloc(&device, SIZE));
    OK(hipMemcpy(device, source, SIZE, hipMemcpyHostToDevice));
    OK(hipMemcpy(back, device, SIZE, hipMemcpyDeviceToHost));
    EXPECT(memcmp(source, back, SIZE) == 0);
    OK(hipHostUnregister(source));
    OK(hipHostUnregister(back));
}

/* Tests copies between two devices. */
static void peers(void) {
    enum { SIZE = 70000 };
    static unsigned char source[SIZE], back[SIZE];
    void *first, *second;
    int count, can;
    OK(hipGetDeviceCount(&count));
    EXPECT(count == 2);
    OK(hipDeviceCanAccessPeer(&can, 0, 1));
    EXPECT(can);
    fill_pattern(source, SIZE);
    OK(hipMalloc(&first, SIZE));
    OK(hipMemcpy(first, source, SIZE, hipMemcpyHostToDevice));
    OK(hipSetDevice(1));
    OK(hipMalloc(&second, SIZE));
    OK(hipDeviceEnablePeerAccess(0, 0));
    OK(hipMemcpyPeer(second, 1, first, 0, SIZE));
    OK(hipMemcpy(back, second, SIZE, hipMemcpyDeviceToHost));
    EXPECT(memcmp(source, back, SIZE) == 0);
}

static const struct test_case cases[] = {
    {"host_register", host_register},
    {"register_neighbours", register_neighbours},
    {"host_memory", host_memory},
    {"async_memory", async_memory},
    {"large_copies", large_copies},
    {"huge_copies", huge_copies},
    {"memory_info", memory_info},
    {"out_of_memory", out_of_memory},
    {"copies", copies},
    {"copies_2d", copies_2d},
    {"device_copies", device_copies},
    {"memsets", memsets},
    {"registered_copies", registered_copies},
    {"peers", peers},
    {NULL, NULL},
};

int main(int count, char **arguments) {
    return run_cases(count, arguments, cases);
}
