/* Reads scripts, runs their threads, and plays the remaining lines at the end of the process.
 *
 *     player IMAGES SCRIPT
 *
 * IMAGES is a directory of device images, named in the script's first line. Lines of a script:
 *
 *     images NAME ...                 in the order of their numbers
 *     begin SEQUENCE THREADS
 *     THREAD STEP ARGUMENT ...        whole numbers
 *     end
 *
 * Threads 0 to 7 run concurrently, each in the order of its lines; 0 is the main thread. When
 * thread n ends, a destructor of thread-specific data plays the lines of thread 10 + n. At the end
 * of the process, exit handlers play the last sequence's lines of the threads 20, 21 and 22. The
 * handler of thread 20 is registered last, and the handler of thread 21 before main. The handler of
 * thread 22 is a destructor of the program.
 *
 * Results go to stdout, a line each: SEQUENCE LINE TEXT.
 *
 * Environment: DRIVER_HIP is HIP's path; DRIVER_WHEN says when the foreign user opens it: "early"
 * (before the first call) or "late" (at its own first call). DRIVER_COPIES_WAIT is the number of
 * the first thread that must synchronise before it reads pageable memory that mgpuMemcpy has
 * filled. */
#include "player.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_THREADS = 8, AT_THREAD_END = 10, AT_EXIT_LATE = 20, AT_EXIT_EARLY, AT_DESTRUCTOR };

static struct step *steps;
static size_t step_count, step_capacity;
static int sequence = -1;
static struct image {
    void *content;
    size_t bytes;
} images[64];
static void *hip;
static pthread_key_t thread_key;
static bool ends_here; /* the process is playing the last lines of the last sequence */

void give_up(const char *format, ...) {
    va_list words;
    va_start(words, format);
    fputs("player: ", stderr);
    vfprintf(stderr, format, words);
    fputc('\n', stderr);
    _exit(99);
}

static void write_line(const char *text, int length) {
    if (write(STDOUT_FILENO, text, (size_t)length) != length)
        _exit(98);
}

void say(const struct step *step, const char *format, ...) {
    char text[256];
    int length = snprintf(text, sizeof text, "%d %d ", sequence, step->number);
    va_list words;
    va_start(words, format);
    length += vsnprintf(text + length, sizeof text - (size_t)length - 1, format, words);
    va_end(words);
    text[length++] = '\n';
    write_line(text, length);
}

const void *image_content(int number, size_t *bytes) {
    *bytes = images[number].bytes;
    return images[number].content;
}

/* ---- the foreign user's HIP ---- */

void foreign_open(void) {
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&mutex);
    if (hip == NULL) {
        const char *path = getenv("DRIVER_HIP");
        hip = dlopen(path != NULL ? path : "libamdhip64.so.5", RTLD_NOW | RTLD_LOCAL);
        if (hip == NULL)
            give_up("%s", dlerror());
    }
    pthread_mutex_unlock(&mutex);
}

void *foreign_symbol(const char *name) {
    foreign_open();
    return dlsym(hip, name);
}

/* ---- threads ---- */

static void play_lines_of(int thread) {
    for (size_t i = 0; i < step_count; ++i)
        if (steps[i].thread == thread)
            steps[i].play(&steps[i]);
}

void play_between(int thread, int first, int last) {
    for (size_t i = 0; i < step_count; ++i)
        if (steps[i].thread == thread && steps[i].number > first && steps[i].number < last)
            steps[i].play(&steps[i]);
}

static void play_thread_end(void *value) {
    play_lines_of(AT_THREAD_END + (int)(intptr_t)value);
}

static void *run_thread(void *argument) {
    const int thread = (int)(intptr_t)argument;
    pthread_setspecific(thread_key, argument);
    play_lines_of(thread);
    return NULL;
}

static void play_sequence(int threads) {
    char text[64];
    write_line(text, snprintf(text, sizeof text, "%d 0 begin\n", sequence));
    pthread_t running[MOST_THREADS];
    for (intptr_t t = 1; t < threads; ++t)
        if (pthread_create(&running[t], NULL, run_thread, (void *)t) != 0)
            give_up("no thread");
    play_lines_of(0);
    for (int t = 1; t < threads; ++t)
        pthread_join(running[t], NULL);
    write_line(text, snprintf(text, sizeof text, "%d 0 end\n", sequence));
}

/* ---- the end of the process ---- */

static void play_late(void) {
    play_lines_of(AT_EXIT_LATE);
}

static void play_early(void) {
    if (ends_here)
        play_lines_of(AT_EXIT_EARLY);
}

__attribute__((constructor)) static void register_early(void) {
    atexit(play_early);
}

__attribute__((destructor)) static void play_destructor(void) {
    if (!ends_here)
        return;
    play_lines_of(AT_DESTRUCTOR);
    /* Other threads may still write to stderr, and exit flushes a buffer without taking the
     * buffer's lock. */
    setvbuf(stderr, NULL, _IONBF, 0);
    write_line("0 0 bye\n", 8); /* the line number 0 belongs to no step */
}

/* ---- scripts ---- */

static void read_image(struct image *image, const char *directory, const char *name) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        give_up("%s cannot be read", path);
    fseek(file, 0, SEEK_END);
    image->bytes = (size_t)ftell(file);
    rewind(file);
    image->content = calloc(1, image->bytes + 1); /* PTX ends with a 0 */
    if (fread(image->content, 1, image->bytes, file) != image->bytes)
        give_up("%s cannot be read", path);
    ++image->bytes;
    fclose(file);
}

static void read_images(const char *directory, char *names) {
    unsigned count = 0;
    for (char *name = strtok(names, " \n"); name != NULL; name = strtok(NULL, " \n"))
        read_image(&images[count++], directory, name);
}

static void read_step(char *line, int number) {
    if (step_count == step_capacity) {
        step_capacity = step_capacity == 0 ? 256 : 2 * step_capacity;
        steps = realloc(steps, step_capacity * sizeof *steps);
    }
    struct step *step = &steps[step_count++];
    *step = (struct step){.number = number};
    step->thread = (int)strtol(strtok(line, " \n"), NULL, 10);
    const char *name = strtok(NULL, " \n");
    step->play = step_find(name);
    if (step->play == NULL)
        give_up("no step is called %s", name);
    unsigned count = 0;
    for (char *word; (word = strtok(NULL, " \n")) != NULL && count < MOST_ARGUMENTS;)
        step->argument[count++] = strtoll(word, NULL, 10);
}

static void play_script(const char *directory, FILE *script) {
    char line[512];
    int threads = 1, number = 0;
    while (fgets(line, sizeof line, script) != NULL) {
        ++number;
        if (strncmp(line, "images ", 7) == 0) {
            read_images(directory, line + 7);
        } else if (sscanf(line, "begin %d %d", &sequence, &threads) == 2) {
            step_count = 0;
            number = 0;
            steps_reset();
        } else if (strncmp(line, "end", 3) == 0) {
            play_sequence(threads);
        } else {
            read_step(line, number);
        }
    }
}

int main(int argc, char **argv) {
    setvbuf(stderr, NULL, _IOLBF, BUFSIZ); /* glibc 2.37 and later would write a line in pieces */
    FILE *script = argc == 3 ? fopen(argv[2], "r") : NULL;
    if (script == NULL)
        give_up("a directory of images and a script are needed");
    const char *when = getenv("DRIVER_WHEN");
    if (when != NULL && strcmp(when, "early") == 0)
        foreign_open();
    pthread_key_create(&thread_key, play_thread_end);
    play_script(argv[1], script);
    fclose(script);
    ends_here = true;
    atexit(play_late);
    return 0;
}
