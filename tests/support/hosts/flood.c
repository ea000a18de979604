/* Modules in repeated use beside a flood of modules that are used once.
 *
 *     flood LIBRARY IMAGE HOT COLD ROUNDS
 *
 * In a round HOT modules are loaded and unloaded twice, one after another; then come COLD modules
 * that no round had before. Prints how many modules each round takes from the driver, a line each.
 * Ends after ROUNDS; 0: after the first round that takes no hot one. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
    void *(*load)(void *image, size_t size);
    void (*unload)(void *module);
    char *(*stats)(void);
} mgpu;
static unsigned char *image;
static size_t image_size;

static void need(int condition, const char *what) {
    if (condition)
        return;
    fprintf(stderr, "flood: %s\n", what);
    exit(2);
}

static void read_image(const char *path) {
    FILE *file = fopen(path, "rb");
    need(file && fseek(file, 0, SEEK_END) == 0, "no image");
    image_size = (size_t)ftell(file);
    rewind(file);
    image = malloc(image_size);
    need(image && fread(image, 1, image_size, file) == image_size, "no image");
    fclose(file);
}

/* Makes `copy` the image of this number: e_ident's padding differs. */
static void number_image(unsigned char *copy, unsigned number) {
    memcpy(copy, image, image_size);
    memcpy(copy + 9, &number, sizeof number);
}

static void use(unsigned char *copy) {
    void *module = mgpu.load(copy, 0);
    need(module != NULL, "a module was not loaded");
    mgpu.unload(module);
}

static long driver_loads(void) {
    char *text = mgpu.stats();
    const char *modules = text ? strstr(text, "\"modules\": {") : NULL;
    const char *misses = modules ? strstr(modules, "\"misses\": ") : NULL;
    need(misses != NULL, "no statistics");
    const long count = strtol(misses + strlen("\"misses\": "), NULL, 10);
    free(text);
    return count;
}

int main(int count, char **words) {
    need(count == 6, "usage: flood LIBRARY IMAGE HOT COLD ROUNDS");
    void *library = dlopen(words[1], RTLD_NOW);
    need(library != NULL, "no library");
    *(void **)&mgpu.load = dlsym(library, "mgpuModuleLoad");
    *(void **)&mgpu.unload = dlsym(library, "mgpuModuleUnload");
    *(void **)&mgpu.stats = dlsym(library, "mgpu_rt_stats_json");
    read_image(words[2]);
    const unsigned hot = (unsigned)atoi(words[3]), cold = (unsigned)atoi(words[4]);
    const unsigned rounds = (unsigned)atoi(words[5]);
    unsigned char *hot_images = malloc(hot * image_size), *cold_image = malloc(image_size);
    need(hot_images && cold_image, "no memory");
    for (unsigned i = 0; i < hot; i++)
        number_image(hot_images + i * image_size, i);
    unsigned number = hot;
    long loads = 0;
    for (unsigned round = 0; rounds ? round < rounds : loads != cold; round++) {
        const long before = driver_loads();
        for (unsigned i = 0; i < 2 * hot; i++)
            use(hot_images + i / 2 * image_size);
        for (unsigned i = 0; i < cold; i++) {
            number_image(cold_image, number++);
            use(cold_image);
        }
        loads = driver_loads() - before;
        printf("%ld\n", loads);
    }
    return 0;
}
