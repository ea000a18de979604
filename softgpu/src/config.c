/* Reads the devices and the size of their memory from the environment. */
#include "settings.h"
#include "thunk.h"

#include <ctype.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct softgpu_target targets[] = {
    {"gfx90a", 9, 0, 10},
    {"gfx906", 9, 0, 6},
    {"gfx908", 9, 0, 8},
    {"gfx942", 9, 4, 2},
};

#define KNOWN_TARGETS "gfx90a (MI200), gfx906 (MI50), gfx908 (MI100), gfx942 (MI300)"
#define GIB (UINT64_C(1) << 30)

static const struct softgpu_target *devices[SOFTGPU_MAX_DEVICES];
static unsigned device_count;
static uint64_t device_memory, host_memory;
static bool usable;

static const struct softgpu_target *find_target(const char *name, size_t length) {
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++)
        if (strlen(targets[i].name) == length && memcmp(targets[i].name, name, length) == 0)
            return &targets[i];
    return NULL;
}

/* Returns true if the object is ROCr, and ROCr's readable segments do not contain the target's
 * name. */
static int lacks_name(struct dl_phdr_info *object, size_t size, void *data) {
    const char *name = *(const char **)data;
    (void)size;
    if (!strstr(object->dlpi_name, "/libhsa-runtime64.so"))
        return false;
    for (unsigned i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        if (segment->p_type == PT_LOAD && segment->p_flags & PF_R &&
            memmem((const void *)(object->dlpi_addr + segment->p_vaddr), segment->p_filesz, name,
                   strlen(name)))
            return false;
    }
    return true;
}

/* ROCr 5.2 aborts the process if ROCr does not know a device's name. */
static bool rocr_knows(const char *name) {
    return !dl_iterate_phdr(lacks_name, &name);
}

/* Returns false, with a message, if an item is neither a target nor a setting. */
static bool read_list(const char *list) {
    for (const char *name = list; name; name = softgpu_next_item(name)) {
        size_t length = strcspn(name, ",");
        if (softgpu_is_setting(name, length))
            continue;
        if (memchr(name, '=', length)) {
            softgpu_say("MGPU_RT_SOFTGPU=%s: '%.*s' is none of its settings (" SOFTGPU_SETTINGS
                        "); no device",
                        list, (int)length, name);
            return false;
        }
        const struct softgpu_target *target = find_target(name, length);
        if (!target) {
            softgpu_say("MGPU_RT_SOFTGPU=%s: '%.*s' is not a target it can present (" KNOWN_TARGETS
                        "); no device",
                        list, (int)length, name);
            return false;
        }
        if (!rocr_knows(target->name)) {
            softgpu_say("MGPU_RT_SOFTGPU=%s: this HIP does not know %s. HIP 5.7 and later ones do; "
                        "no device",
                        list, target->name);
            return false;
        }
        if (device_count == SOFTGPU_MAX_DEVICES) {
            softgpu_say("MGPU_RT_SOFTGPU=%s: more than %d devices; no device", list,
                        SOFTGPU_MAX_DEVICES);
            return false;
        }
        devices[device_count++] = target;
    }
    if (!device_count)
        devices[device_count++] = &targets[0];
    return true;
}

/* Reads a size such as "512M", "4G" or "1048576"; returns 0 for any other text. */
static uint64_t parse_size(const char *text) {
    if (!isdigit((unsigned char)*text))
        return 0;
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    unsigned shift = 0;
    switch (toupper((unsigned char)*end)) {
    case 'K':
        shift = 10;
        break;
    case 'M':
        shift = 20;
        break;
    case 'G':
        shift = 30;
        break;
    }
    end += shift != 0;
    if (errno || *end || value > UINT64_MAX >> shift)
        return 0;
    return (uint64_t)value << shift;
}

static uint64_t physical_memory(void) {
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    return pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : 4 * GIB;
}

/* Reads the size of each device's memory. The default is 4 GiB, or half of the host's memory if
 * this half is smaller. The host allocates each page only at the first access. Returns false, with
 * a message, if the setting is invalid. */
static bool read_memory(void) {
    char text[SOFTGPU_SETTING_SIZE];
    host_memory = physical_memory();
    device_memory = host_memory / 2 < 4 * GIB ? host_memory / 2 : 4 * GIB;
    if (softgpu_setting("memory", text)) {
        device_memory = parse_size(text);
        /* HIP uses a few MiB of device memory for its kernels and queues. */
        if (device_memory < 16u << 20) {
            softgpu_say("memory=%s: want a size of at least 16M, such as 512M or "
                        "4G; no device",
                        text);
            return false;
        }
    }
    device_memory &= ~UINT64_C(4095);
    return true;
}

/* Checks the settings that other files read. A message names each invalid setting, and the setting
 * is ignored. */
static void check_settings(void) {
    char text[SOFTGPU_SETTING_SIZE];
    if (softgpu_setting("threads", text) && (text[strspn(text, "0123456789")] || atol(text) < 1))
        softgpu_say("threads=%s: want a number of threads, such as 2", text);
    if (softgpu_setting("copies", text) && strcmp(text, "kernels") != 0 &&
        strcmp(text, "native") != 0)
        softgpu_say("copies=%s: want native or kernels; going on with native", text);
}

static void read_environment(void) {
    check_settings();
    usable = read_list(softgpu_list()) && read_memory();
    if (!usable)
        device_count = 0;
}

bool softgpu_configure(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, read_environment);
    return usable;
}

unsigned softgpu_device_count(void) {
    return device_count;
}

const struct softgpu_target *softgpu_node_target(uint32_t node) {
    return node >= 1 && node <= device_count ? devices[node - 1] : NULL;
}

uint64_t softgpu_node_memory(uint32_t node) {
    return node == 0 ? host_memory : device_memory;
}
