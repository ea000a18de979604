/* mgpu-rt-probe: the smallest program that uses the library. `mgpu-rt doctor` runs the probe as
 * `mgpu-rt run` runs any program, to see what really happens. With MGPU_RT_VERBOSE the library
 * prints further facts. With the argument --manager the probe waits while the manager is starting.
 * With --image the probe reads an image from its standard input. It prints why several loads of the
 * image must not share one module, or nothing. With --json the probe prints what a HIP library,
 * named by its path, says of itself and its devices. "pages" says why memory cannot stay registered
 * on this machine; "": it can. */
#include "memory/page_watch.h"
#include "mgpu_rt.h"
#include "mgpu_rt_private.h"
#include "modules/image/image.h"

#include <dlfcn.h>
#include <stdbool.h>
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
        return NULL;
    return image->opaque
               ? "kernels can write to its globals, or to those of parts that cannot be read"
               : "kernels or the host can write to its globals, which each load resets";
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

/* ---- --json ---- */

static void print_text(const char *name, const char *text) {
    printf("\"%s\": \"", name);
    for (const unsigned char *c = (const unsigned char *)text; *c; ++c)
        printf(*c == '"' || *c == '\\' ? "\\%c" : *c < ' ' ? "\\u%04x" : "%c", *c);
    putchar('"');
}

static void *hip;

enum { NO_FUNCTION = -1, NO_DEVICE = 100 };

typedef void (*function)(void);

static function find(const char *name) {
    function found;
    *(void **)&found = dlsym(hip, name);
    return found;
}

/* Calls a function of HIP; returns NO_FUNCTION if this release lacks it. */
#define HIP(name, parameters, ...)                                                                 \
    (find("hip" #name) ? ((int(*) parameters)find("hip" #name))(__VA_ARGS__) : NO_FUNCTION)

/* Returns a target such as "gfx90a:sramecc+:xnack-" from a device's properties; NULL if there is no
 * target. The target's offset depends on HIP's release. The function therefore searches for text of
 * this form behind the device's name. */
static const char *find_target(const char *properties, size_t size) {
    for (size_t at = 256; at + 8 < size; ++at)
        if (memcmp(properties + at, "gfx", 3) == 0 && strspn(properties + at + 3, "0123456789") > 0)
            return properties + at;
    return NULL;
}

static void print_device(int device) {
    static char properties[1 << 16];
    char name[256] = "", capability[32];
    int major = 0, minor = 0;
    memset(properties, 0, sizeof properties);
    HIP(GetDeviceProperties, (void *, int), properties, device);
    HIP(DeviceGetName, (char *, int, int), name, sizeof name, device);
    HIP(DeviceComputeCapability, (int *, int *, int), &major, &minor, device);
    snprintf(capability, sizeof capability, major ? "sm_%d%d" : "", major, minor);
    const char *target = find_target(properties, sizeof properties - 256);
    properties[255] = '\0';
    putchar('{');
    print_text("name", *name ? name : *properties ? properties : "without a name");
    fputs(", ", stdout);
    print_text("target", target ? target : capability);
    putchar('}');
}

static void print_hips_facts(void) {
    int count = 0, version = 0, driver = 0;
    const int error = HIP(GetDeviceCount, (int *), &count);
    HIP(RuntimeGetVersion, (int *), &version);
    HIP(DriverGetVersion, (int *), &driver);
    const char *(*name)(int) = (const char *(*)(int))find("hipGetErrorName");
    const bool failed = error != 0 && error != NO_DEVICE;
    printf(", \"version\": %d, \"driver\": %d, ", version, driver);
    print_text("error", failed && name ? name(error) : failed ? "hipGetDeviceCount fails" : "");
    fputs(", \"devices\": [", stdout);
    for (int device = 0; device < (error ? 0 : count); ++device) {
        fputs(device ? ", " : "", stdout);
        print_device(device);
    }
    putchar(']');
}

static int print_json(const char *path) {
    const char *reason = page_watch_open(ignore);
    putchar('{');
    print_text("pages", reason ? reason : "");
    hip = path ? dlopen(path, RTLD_NOW | RTLD_GLOBAL) : NULL;
    if (hip) {
        print_hips_facts();
    } else if (path) {
        fputs(", ", stdout);
        print_text("error", dlerror());
    }
    return puts("}") >= 0 ? 0 : 1;
}

int main(int count, char **arguments) {
    if (count > 1 && strcmp(arguments[1], "--image") == 0)
        return judge_image();
    if (count > 1 && strcmp(arguments[1], "--json") == 0)
        return print_json(count > 2 ? arguments[2] : NULL);
    void *stream = mgpuStreamCreate();
    if (stream == NULL)
        return 1;
    mgpuStreamSynchronize(stream);
    mgpuStreamDestroy(stream);
    if (count > 1 && strcmp(arguments[1], "--manager") == 0)
        wait_for_manager();
    return 0;
}
