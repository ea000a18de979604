/* The functions by which MLIR programs print. This library does not need LLVM.
 *
 * LLVM's libmlir_runner_utils loads libLLVM, which collides with the copy of LLVM inside AMD's HIP
 * runtime. These functions write one number or one flat list of numbers to stdout.
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>

/* A memref of any rank as MLIR passes it: the descriptor is
 * { T *allocated; T *aligned; int64_t offset; int64_t sizes[rank]; int64_t strides[rank]; }. */
struct unranked_memref {
    int64_t rank;
    void *descriptor;
};

struct descriptor {
    void *allocated;
    void *aligned;
    int64_t offset;
    int64_t sizes_then_strides[];
};

void printI64(int64_t value);
void printF32(float value);
void printF64(double value);
void printNewline(void);
void _mlir_ciface_printMemrefF32(struct unranked_memref *memref);
void _mlir_ciface_printMemrefI32(struct unranked_memref *memref);

void printI64(int64_t value) {
    printf("%" PRId64, value);
}
void printF32(float value) {
    printf("%g", (double)value);
}
void printF64(double value) {
    printf("%g", value);
}
void printNewline(void) {
    putchar('\n');
}

/* Calls the function `print` with the index of each element, in row-major order. */
static void each(const struct unranked_memref *memref,
                 void (*print)(const void *base, int64_t index)) {
    const struct descriptor *d = memref->descriptor;
    const int64_t *sizes = d->sizes_then_strides;
    const int64_t *strides = sizes + memref->rank;
    int64_t count = 1;
    for (int64_t r = 0; r < memref->rank; ++r)
        count *= sizes[r];
    for (int64_t i = 0; i < count; ++i) {
        int64_t index = d->offset;
        for (int64_t r = memref->rank, rest = i; r-- > 0; rest /= sizes[r])
            index += rest % sizes[r] * strides[r];
        if (i != 0)
            putchar(' ');
        print(d->aligned, index);
    }
    putchar('\n');
}

static void print_f32(const void *base, int64_t index) {
    printF32(((const float *)base)[index]);
}
static void print_i32(const void *base, int64_t index) {
    printI64(((const int32_t *)base)[index]);
}

void _mlir_ciface_printMemrefF32(struct unranked_memref *memref) {
    each(memref, print_f32);
}
void _mlir_ciface_printMemrefI32(struct unranked_memref *memref) {
    each(memref, print_i32);
}
