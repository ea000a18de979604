/* An image of device code, with all facts that the library can read from the image's bytes.
 *
 * The size argument of mgpuModuleLoad is unreliable: LLVM 12 to 17 do not pass it. So the library
 * reads the size from the image. The size is in the ELF header, the table of a clang offload
 * bundle, and the header of NVIDIA's fatbin. PTX ends with a zero byte.
 */
#ifndef MGPU_RT_IMAGE_H
#define MGPU_RT_IMAGE_H

#include "proof.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MACHINE_CUDA = 190, MACHINE_AMDGPU = 224 };

enum image_kind {
    IMAGE_UNKNOWN,
    IMAGE_ELF,    /* a code object (AMDGPU), a cubin (NVIDIA) or a foreign ELF */
    IMAGE_BUNDLE, /* __CLANG_OFFLOAD_BUNDLE__ */
    IMAGE_FATBIN, /* NVIDIA's bundle of cubins and PTX */
    IMAGE_PTX,    /* NVIDIA's assembly, terminated by 0 */
    IMAGE_SOURCE, /* other assembly, or LLVM's bitcode */
};

struct image {
    const unsigned char *bytes;
    size_t size;   /* 0: unknown, so HIP judges the image and nothing is cached */
    size_t head;   /* this many bytes determine the size, and are compared first */
    uint64_t hash; /* the hash of the bytes, which is never 0; 0: the size is unknown */
    enum image_kind kind;
    uint16_t machine;     /* e_machine of an ELF */
    bool sized_by_tables; /* the head does not contain the size */
    bool writable;        /* contains, or may contain, globals that a kernel can write, or constants
                           * that the host can set by name */
    bool opaque;          /* parts of the image are compressed, or of an unsupported kind */
};

/* Reads the image at `data`. Reads only readable memory, however damaged the image is. Takes a few
 * microseconds, and 50 ns more for a system call for each page, so only misses call this function.
 */
struct image image_describe(const void *data);

/* Does the work of image_lies_at for images whose head does not contain their size. */
bool image_lies_at_by_parts(const struct image *image, const void *data);

/* Returns true if `data` points to the image's bytes. Compares the heads first. A head contains the
 * image's size, so if the heads are equal, all bytes to compare are readable. */
static inline bool image_lies_at(const struct image *image, const void *data) {
    if (__builtin_expect(image->sized_by_tables, 0))
        return image_lies_at_by_parts(image, data);
    return __builtin_memcmp(image->bytes, data, image->head) == 0 &&
           PROOF(every_byte_of_an_image_compared,
                 __builtin_memcmp(image->bytes + image->head, (const char *)data + image->head,
                                  image->size - image->head) == 0);
}

#endif
