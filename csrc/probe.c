/* mgpu-rt-probe: the smallest program that uses the library. `mgpu-rt doctor` runs the probe as
 * `mgpu-rt run` runs any program, to see what really happens. With MGPU_RT_VERBOSE the library
 * prints further facts. With the argument --manager the probe waits while the manager is starting.
 * With --image the probe reads an image from its standard input, and prints why several loads of
 * the image must not share one module. With --pages the probe prints why memory cannot stay
 * registered on this machine. If the image can be shared, or if memory can stay registered, the
 * probe prints nothing. */
#include "memory/page_watch.h"
#include "mgpu_rt.h"
#include "mgpu_rt_private.h"
#include "modules/image/image.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void *mgpuStreamCreate(void);
void mgpuStreamSynchronize(void *stream);
void mgpuStreamDestroy(void *stream);

/* Waits while the manager is starting. */
static void wait_for_manager(void) {
    while (strcmp(mgpu_rt_manager(), "starting") == 0)
        usleep(5000);
}

/* Returns all of the standard input, followed by at least one 0; NULL if there is no memory. */
static char *read_all(size_t *size) {
    size_t capacity = 1 << 16;
    char *bytes = calloc(1, capacity);
    for (*size = 0; bytes;) {
        *size += fread(bytes + *size, 1, capacity - 1 - *size, stdin);
        if (*size < capacity - 1)
            return bytes;
        char *more = calloc(1, 2 * capacity);
        if (more)
            memcpy(more, bytes, *size);
        free(bytes);
        bytes = more;
        capacity *= 2;
    }
    return NULL;
}

static const char *why_not_shared(const struct image *image, size_t size) {
    if (image->size == 0 || image->size > size)
        return "it does not contain its own size";
    if (!image->writable)
        return image->settable
                   ? "the program may set its constants through HIP, and each load resets "
                     "them (unless MGPU_RT_EXCLUSIVE=on)"
                   : NULL;
    return image->opaque
               ? "kernels can write to its globals, or to those of parts that cannot be read"
               : "kernels can write to its globals, which each load resets";
}

static int judge_image(void) {
    size_t size;
    char *bytes = read_all(&size);
    if (bytes == NULL)
        return 1;
    const struct image image = image_describe(bytes);
    const char *reason = why_not_shared(&image, size);
    const int status = !reason || puts(reason) >= 0 ? 0 : 1;
    free(bytes);
    return status;
}

static void ignore(void) {}

static int judge_pages(void) {
    const char *reason = page_watch_open(ignore);
    return !reason || puts(reason) >= 0 ? 0 : 1;
}

int main(int count, char **arguments) {
    if (count > 1 && strcmp(arguments[1], "--image") == 0)
        return judge_image();
    if (count > 1 && strcmp(arguments[1], "--pages") == 0)
        return judge_pages();
    void *stream = mgpuStreamCreate();
    if (stream == NULL)
        return 1;
    mgpuStreamSynchronize(stream);
    mgpuStreamDestroy(stream);
    if (count > 1 && strcmp(arguments[1], "--manager") == 0)
        wait_for_manager();
    return 0;
}
