/* Fuzzes the reader of symbols. The file on disk and the mapped file have the same segments, but
 * other parts may differ. The first 8 bytes of the input are the requested address. */
#include "edge.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static ssize_t counted_pread(int file, void *to, size_t size, off_t offset);
static int mapped_file(const void *address, Dl_info *info, void **map, int flags);

/* mapped_symbol.c limits the bytes that a whole process reads, but the fuzzer needs a limit for
 * each input. This file therefore includes mapped_symbol.c. */
#define pread counted_pread
#define dladdr1 mapped_file
#include "process/mapped_symbol.c"
#undef pread
#undef dladdr1

enum {
    ROOM = 1 << 14
}; /* more bytes than a linker's file needs, but fewer bytes than damaged files declare */

static uint64_t bytes_read;

static ssize_t counted_pread(int file, void *to, size_t size, off_t offset) {
    bytes_read += size + READ;
    return pread(file, to, size, offset);
}

bool runtime_forked;

static const uint8_t *file_bytes;
static size_t file_size;
static char file_name[64];

/* Answers as if the loader had mapped the headers of the input file at address 0. */
static int mapped_file(const void *address, Dl_info *info, void **map, int flags) {
    static char headers[HEADERS];
    static struct link_map object;
    (void)address, (void)flags;
    memset(headers, 0, sizeof headers);
    memcpy(headers, file_bytes, file_size < HEADERS ? file_size : HEADERS);
    object.l_name = file_name;
    info->dli_fbase = headers;
    *map = &object;
    return 1;
}

static void write_file(void) {
    static int file = -1;
    if (file < 0)
        file = memfd_create("library", 0);
    snprintf(file_name, sizeof file_name, "/proc/self/fd/%d", file);
    HOLDS(ftruncate(file, 0) == 0);
    HOLDS(pwrite(file, file_bytes, file_size, 0) == (ssize_t)file_size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    uintptr_t address;
    char name[MAPPED_SYMBOL];
    if (size < sizeof address)
        return 0;
    memcpy(&address, data, sizeof address);
    file_bytes = data + sizeof address;
    file_size = size - sizeof address;
    write_file();
    bytes_read = 0;
    work = MOST_WORK - ROOM;
    if (mapped_symbol((const void *)address, name))
        HOLDS(memmem(file_bytes, file_size, name, strlen(name) + 1));
    HOLDS(bytes_read <= ROOM + 2 * (MAPPED_SYMBOL + READ)); /* the names in two symbol tables */
    return 0;
}
