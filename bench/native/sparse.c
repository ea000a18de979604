/* Multiplies a sparse matrix (CSR, f32) by a dense matrix in a loop, on an NVIDIA GPU, in three
 * ways:
 *
 *     lowered   calls the mgpu* functions of LIBRARY, as MLIR's lowering does: each iteration makes
 *               and destroys the stream, environment, descriptors and buffer
 *     stock     makes the calls of the driver and cuSPARSE that LLVM's own library makes for this
 *     byhand    makes these objects once, before the loop
 *
 *     sparse WAY LIBRARY ROWS ROW_ELEMENTS COLUMNS REPEATS
 *
 * Prints {"ns": NS, "checksum": SUM}: the time of one product in the best of five rounds, and the
 * checksum of the product. The checksums of all three ways are equal. "lowered" also needs
 * MGPU_RT_HIP, the path of the library that is built from csrc/cuhip. All ways need libcuda and
 * libcusparse. */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { F32 = 0, INDEX_32 = 2, ROWS_FOLLOW = 2, ROUNDS = 5 };

static int rows, in_row, columns, repeats;

/* ---- the libraries ---- */

static void *library(const char *name) {
    void *handle = dlopen(name, RTLD_NOW | RTLD_GLOBAL);
    if (!handle) {
        fprintf(stderr, "sparse: %s\n", dlerror());
        exit(2);
    }
    return handle;
}

static void *symbol(void *from, const char *name) {
    void *found = dlsym(from, name);
    if (!found) {
        fprintf(stderr, "sparse: no %s\n", name);
        exit(2);
    }
    return found;
}

static void check(int status, const char *what) {
    if (status != 0) {
        fprintf(stderr, "sparse: %s answered %d\n", what, status);
        exit(1);
    }
}

static void *driver, *sparse;

typedef int to_pointer(void **, size_t);
typedef int of_pointer(void *);

static struct {
    to_pointer *alloc;
    of_pointer *release, *stream_destroy, *stream_wait;
    int (*stream_create)(void **, unsigned);
    int (*copy)(void *, const void *, size_t, void *);
} cu;

static struct {
    int (*create)(void **);
    of_pointer *destroy, *destroy_matrix, *destroy_dense;
    int (*set_stream)(void *, void *);
    int (*create_csr)(void **, int64_t, int64_t, int64_t, void *, void *, void *, int, int, int,
                      int);
    int (*create_dense)(void **, int64_t, int64_t, int64_t, void *, int, int);
    int (*size)(void *, int, int, const void *, void *, void *, const void *, void *, int, int,
                size_t *);
    int (*product)(void *, int, int, const void *, void *, void *, const void *, void *, int, int,
                   void *);
} cs;

static struct {
    void *(*stream_create)(void);
    void (*stream_destroy)(void *), (*stream_wait)(void *);
    void *(*alloc)(uint64_t, void *, _Bool);
    void (*release)(void *, void *);
    void (*create)(void), (*destroy)(void);
    void *(*create_csr)(intptr_t, intptr_t, intptr_t, void *, void *, void *, int, int, int,
                        void *);
    void *(*create_dense)(intptr_t, intptr_t, void *, int, void *);
    void (*destroy_matrix)(void *, void *), (*destroy_dense)(void *, void *);
    intptr_t (*size)(int, int, void *, void *, void *, int, void *);
    void (*product)(int, int, void *, void *, void *, int, void *, void *);
} mgpu;

#define SET(slot, handle, name) (*(void **)&(slot) = symbol(handle, name))

static void open_nvidia(void) {
    int device = 0;
    void *context;
    int (*init)(unsigned), (*get)(int *, int), (*retain)(void **, int);
    of_pointer *set_current;
    driver = library("libcuda.so.1");
    sparse = library("libcusparse.so.12");
    SET(init, driver, "cuInit");
    SET(get, driver, "cuDeviceGet");
    SET(retain, driver, "cuDevicePrimaryCtxRetain");
    SET(set_current, driver, "cuCtxSetCurrent");
    check(init(0), "cuInit");
    check(get(&device, 0), "cuDeviceGet");
    check(retain(&context, device), "cuDevicePrimaryCtxRetain");
    check(set_current(context), "cuCtxSetCurrent");
    SET(cu.alloc, driver, "cuMemAlloc_v2");
    SET(cu.release, driver, "cuMemFree_v2");
    SET(cu.stream_create, driver, "cuStreamCreate");
    SET(cu.stream_destroy, driver, "cuStreamDestroy_v2");
    SET(cu.stream_wait, driver, "cuStreamSynchronize");
    SET(cu.copy, driver, "cuMemcpyAsync");
    SET(cs.create, sparse, "cusparseCreate");
    SET(cs.destroy, sparse, "cusparseDestroy");
    SET(cs.set_stream, sparse, "cusparseSetStream");
    SET(cs.create_csr, sparse, "cusparseCreateCsr");
    SET(cs.create_dense, sparse, "cusparseCreateDnMat");
    SET(cs.destroy_matrix, sparse, "cusparseDestroySpMat");
    SET(cs.destroy_dense, sparse, "cusparseDestroyDnMat");
    SET(cs.size, sparse, "cusparseSpMM_bufferSize");
    SET(cs.product, sparse, "cusparseSpMM");
}

static void open_mgpu(const char *path) {
    void *handle = library(path);
    SET(mgpu.stream_create, handle, "mgpuStreamCreate");
    SET(mgpu.stream_destroy, handle, "mgpuStreamDestroy");
    SET(mgpu.stream_wait, handle, "mgpuStreamSynchronize");
    SET(mgpu.alloc, handle, "mgpuMemAlloc");
    SET(mgpu.release, handle, "mgpuMemFree");
    SET(mgpu.create, handle, "mgpuCreateSparseEnv");
    SET(mgpu.destroy, handle, "mgpuDestroySparseEnv");
    SET(mgpu.create_csr, handle, "mgpuCreateCsr");
    SET(mgpu.create_dense, handle, "mgpuCreateDnMat");
    SET(mgpu.destroy_matrix, handle, "mgpuDestroySpMat");
    SET(mgpu.destroy_dense, handle, "mgpuDestroyDnMat");
    SET(mgpu.size, handle, "mgpuSpMMBufferSize");
    SET(mgpu.product, handle, "mgpuSpMM");
}

/* ---- the matrices ---- */

static struct {
    void *positions, *indices, *values, *b, *c;
    size_t c_bytes;
} on_device;

static void *sent(const void *data, size_t bytes) {
    void *address;
    check(cu.alloc(&address, bytes), "cuMemAlloc");
    check(cu.copy(address, data, bytes, NULL), "cuMemcpyAsync");
    check(cu.stream_wait(NULL), "cuStreamSynchronize");
    return address;
}

static void make_matrices(void) {
    const size_t count = (size_t)rows * (size_t)in_row, b_count = (size_t)rows * (size_t)columns;
    int32_t *positions = malloc(((size_t)rows + 1) * 4), *indices = malloc(count * 4);
    float *values = malloc(count * 4), *b = malloc(b_count * 4), *c = calloc(b_count, 4);
    for (int row = 0; row <= rows; row++)
        positions[row] = row * in_row;
    for (size_t i = 0; i < count; i++) { /* the indices of a row ascend */
        const int64_t step = rows / in_row, at = (int64_t)(i % (size_t)in_row);
        indices[i] = (int32_t)(at * step + (int64_t)(i * 7919 % (size_t)step));
        values[i] = (float)(i % 5) - 2;
    }
    for (size_t i = 0; i < b_count; i++)
        b[i] = (float)(i % 7) - 3;
    on_device.positions = sent(positions, ((size_t)rows + 1) * 4);
    on_device.indices = sent(indices, count * 4);
    on_device.values = sent(values, count * 4);
    on_device.b = sent(b, b_count * 4);
    on_device.c_bytes = b_count * 4;
    on_device.c = sent(c, on_device.c_bytes);
    free(positions), free(indices), free(values), free(b), free(c);
}

static double checksum(void) {
    float *c = calloc(1, on_device.c_bytes);
    double sum = 0;
    check(cu.copy(c, on_device.c, on_device.c_bytes, NULL), "cuMemcpyAsync");
    check(cu.stream_wait(NULL), "cuStreamSynchronize");
    for (size_t i = 0; i < on_device.c_bytes / 4; i++)
        sum += c[i] * (double)(i % 11);
    free(c);
    return sum;
}

/* ---- the three ways ---- */

static const float one = 1;

static void lowered(void) {
    const int64_t count = (int64_t)rows * in_row;
    mgpu.create();
    void *stream = mgpu.stream_create();
    void *a = mgpu.create_csr(rows, rows, count, on_device.positions, on_device.indices,
                              on_device.values, INDEX_32, INDEX_32, F32, stream);
    void *b = mgpu.create_dense(rows, columns, on_device.b, F32, stream);
    void *c = mgpu.create_dense(rows, columns, on_device.c, F32, stream);
    const intptr_t bytes = mgpu.size(0, 0, a, b, c, F32, stream);
    void *buffer = mgpu.alloc((uint64_t)bytes, stream, 0);
    mgpu.product(0, 0, a, b, c, F32, buffer, stream);
    mgpu.release(buffer, stream);
    mgpu.destroy_matrix(a, stream);
    mgpu.destroy_dense(b, stream);
    mgpu.destroy_dense(c, stream);
    mgpu.stream_wait(stream);
    mgpu.stream_destroy(stream);
    mgpu.destroy();
}

static void make_descriptors(void *made[3]) {
    check(cs.create_csr(&made[0], rows, rows, (int64_t)rows * in_row, on_device.positions,
                        on_device.indices, on_device.values, INDEX_32, INDEX_32, 0, F32),
          "cusparseCreateCsr");
    check(cs.create_dense(&made[1], rows, columns, columns, on_device.b, F32, ROWS_FOLLOW),
          "cusparseCreateDnMat");
    check(cs.create_dense(&made[2], rows, columns, columns, on_device.c, F32, ROWS_FOLLOW),
          "cusparseCreateDnMat");
}

static void multiply(void *handle, void *const made[3], void *buffer) {
    check(cs.product(handle, 0, 0, &one, made[0], made[1], &one, made[2], F32, 0, buffer),
          "cusparseSpMM");
}

/* Makes the calls of LLVM's own library: the product runs on the null stream, and cuMemFree waits
 * for this stream. */
static void stock(void) {
    enum { NON_BLOCKING = 1 };
    void *handle, *stream, *made[3], *buffer;
    size_t bytes = 0;
    check(cs.create(&handle), "cusparseCreate");
    check(cu.stream_create(&stream, NON_BLOCKING), "cuStreamCreate");
    make_descriptors(made);
    check(cs.size(handle, 0, 0, &one, made[0], made[1], &one, made[2], F32, 0, &bytes), "size");
    check(cu.alloc(&buffer, bytes ? bytes : 1), "cuMemAlloc");
    multiply(handle, made, buffer);
    check(cu.release(buffer), "cuMemFree");
    check(cs.destroy_matrix(made[0]), "cusparseDestroySpMat");
    check(cs.destroy_dense(made[1]), "cusparseDestroyDnMat");
    check(cs.destroy_dense(made[2]), "cusparseDestroyDnMat");
    check(cu.stream_wait(stream), "cuStreamSynchronize");
    check(cu.stream_destroy(stream), "cuStreamDestroy");
    check(cs.destroy(handle), "cusparseDestroy");
}

static void byhand(void) {
    static void *handle, *stream, *made[3], *buffer;
    size_t bytes = 0;
    if (!handle) {
        check(cs.create(&handle), "cusparseCreate");
        check(cu.stream_create(&stream, 0), "cuStreamCreate");
        check(cs.set_stream(handle, stream), "cusparseSetStream");
        make_descriptors(made);
        check(cs.size(handle, 0, 0, &one, made[0], made[1], &one, made[2], F32, 0, &bytes),
              "cusparseSpMM_bufferSize");
        check(cu.alloc(&buffer, bytes ? bytes : 1), "cuMemAlloc");
    }
    multiply(handle, made, buffer);
    check(cu.stream_wait(stream), "cuStreamSynchronize");
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

int main(int argc, char **argv) {
    const char *way = argc > 1 ? argv[1] : "";
    const bool by_library = strcmp(way, "lowered") == 0;
    void (*run)(void) = by_library ? lowered : strcmp(way, "stock") == 0 ? stock : byhand;
    double best = 1e30;
    if (argc != 7) {
        fprintf(stderr, "usage: sparse WAY LIBRARY ROWS ROW_ELEMENTS COLUMNS REPEATS\n");
        return 2;
    }
    rows = atoi(argv[3]);
    in_row = atoi(argv[4]);
    columns = atoi(argv[5]);
    repeats = atoi(argv[6]);
    open_nvidia();
    if (by_library)
        open_mgpu(argv[2]);
    make_matrices();
    run(); /* does the one-time work */
    for (int round = 0; round < ROUNDS; round++) {
        const double begin = now();
        for (int i = 0; i < repeats; i++)
            run();
        const double each = (now() - begin) / repeats;
        best = each < best ? each : best;
    }
    printf("{\"ns\": %.0f, \"checksum\": %.17g}\n", best, checksum());
    return 0;
}
