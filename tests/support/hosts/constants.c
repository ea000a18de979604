/* Loads an image from the place that MODE selects, changes one byte of the image, and loads the
 * image again.
 *
 *     constants MODE [LIBRARY]
 *
 * prints "same" if the second load gave the same module, "other" if not. IMAGE_FILE is the code
 * object. MODE:
 *     data       in the program's writable data
 *     constant   in its constants, made writable against all promises: shows what was not compared
 *     library    in the constants of LIBRARY, made writable, too
 *     closed     in the constants of LIBRARY, which is then closed; replaced by the changed image
 *     allocated  prints instead by how many bytes the heap grew for each of two images: one in the
 *                constants, one in the data
 *     evicted    constant; between the loads another image is loaded, for which HIP has the handle
 *                of the first one again
 */
#include "program.h"

#include "mgpu_rt.h"

#define INCLUDE(name, section)                                                                     \
    __asm__(".section " section "\n.balign 64\n" name ":\n.incbin \"" IMAGE_FILE "\"\n" name       \
            "_end:\n.previous\n");
INCLUDE("in_data", ".data")
INCLUDE("in_constants", ".rodata")
#ifdef RELOCATED /* makes the constants contain an address, which the loader must relocate */
__asm__(".section .rodata\n.balign 8\n.quad in_data\n.previous\n");
#endif
extern char in_data[], in_data_end[], in_constants[];

static void fail(const char *what) {
    fprintf(stderr, "%s: %s\n", what, dlerror());
    exit(2);
}

static void *library;

static char *find_image(const char *mode, const char *path) {
    if (strcmp(mode, "data") == 0)
        return in_data;
    if (strcmp(mode, "constant") == 0)
        return in_constants;
    library = dlopen(path, RTLD_NOW);
    char *image = library ? dlsym(library, "image") : NULL;
    if (!image)
        fail(path);
    return image;
}

/* Makes the image's pages writable. If the library was closed, maps new pages at the image's
 * address, and copies `saved` to them. */
static void make_writable(char *image, size_t size, const char *saved) {
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    char *begin = (char *)((uintptr_t)image & ~(page - 1));
    const size_t length = (size_t)(image + size - begin);
    if (!saved) {
        if (mprotect(begin, length, PROT_READ | PROT_WRITE) != 0)
            fail("mprotect");
        return;
    }
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
    if (mmap(begin, length, PROT_READ | PROT_WRITE, flags, -1, 0) != begin)
        fail("the library was not unmapped");
    memcpy(image, saved, size);
}

int main(int argc, char **argv) {
    if (argc < 2)
        fail("usage: constants MODE [LIBRARY]");
    const char *mode = argv[1];
    const size_t size = (size_t)(in_data_end - in_data);
    if (strcmp(mode, "allocated") == 0) {
        mgpuModuleLoad(in_constants, size);
        in_data[size / 2] ^= 1;
        const size_t before = mallinfo2().uordblks;
        mgpuModuleLoad(in_constants, size); /* the program holds the first module */
        const size_t between = mallinfo2().uordblks;
        mgpuModuleLoad(in_data, size);
        printf("%zu %zu\n", between - before, mallinfo2().uordblks - between);
        return 0;
    }
    if (strcmp(mode, "evicted") == 0) {
        void *first = mgpuModuleLoad(in_constants, size);
        mgpuModuleUnload(first);
        mgpu_rt_empty_cache();
        in_data[size / 2] ^= 1;
        void *other = mgpuModuleLoad(in_data, size);
        mgpuModuleUnload(other);
        if (other != first)
            fail("HIP has another handle");
        puts(mgpuModuleLoad(in_constants, size) == first ? "same" : "other");
        return 0;
    }
    char *image = find_image(mode, argv[2]);
    char *saved = malloc(size);
    memcpy(saved, image, size);

    void *first = mgpuModuleLoad(image, size);
    mgpuModuleUnload(first);
    const int closed = strcmp(mode, "closed") == 0;
    if (closed)
        dlclose(library);
    make_writable(image, size, closed ? saved : NULL);
    image[size / 2] ^= 1;
    void *second = mgpuModuleLoad(image, size);
    if (!first || !second)
        fail("the image was not loaded");
    puts(second == first ? "same" : "other");
    return 0;
}
