/* Replaces AMD's compiler library: HIP loads this library, because this library is also named
 * libamd_comgr.so.2.
 *
 * HIP 5.2.3 compiles its own kernels at each start. The compilation takes 0.2 s, and the whole
 * start takes 0.3 s. This library caches the compilation's results. If the cache contains no result
 * for a call, this library forwards the call to AMD's library. AMD's types and values are those of
 * interface 2.4; objects are reference-counted, and release_data drops a reference. Every function
 * may be called by several threads at once. */
#ifndef SOFTGPU_COMGR_H
#define SOFTGPU_COMGR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    uint64_t handle;
} comgr_object;

enum { COMGR_SUCCESS = 0, COMGR_ERROR = 1 };

/* AMD's functions that the cache calls: result, name and parameters. */
#define COMGR_CALLED(X)                                                                            \
    X(int, do_action, (int, comgr_object info, comgr_object input, comgr_object result))           \
    X(void, get_version, (size_t *major, size_t *minor))                                           \
    X(int, action_info_get_isa_name, (comgr_object, size_t *, char *))                             \
    X(int, action_info_get_language, (comgr_object, int *))                                        \
    X(int, action_info_get_logging, (comgr_object, bool *))                                        \
    X(int, action_info_set_working_directory_path, (comgr_object, const char *))                   \
    X(int, action_info_get_option_list_count, (comgr_object, size_t *))                            \
    X(int, action_info_get_option_list_item, (comgr_object, size_t, size_t *, char *))             \
    X(int, action_data_count, (comgr_object, int kind, size_t *))                                  \
    X(int, action_data_get_data, (comgr_object, int kind, size_t, comgr_object *))                 \
    X(int, get_data, (comgr_object, size_t *, char *))                                             \
    X(int, get_data_name, (comgr_object, size_t *, char *))                                        \
    X(int, create_data, (int kind, comgr_object *))                                                \
    X(int, set_data, (comgr_object, size_t, const char *))                                         \
    X(int, set_data_from_file_slice, (comgr_object, int file, uint64_t offset, uint64_t size))     \
    X(int, set_data_name, (comgr_object, const char *))                                            \
    X(int, data_set_add, (comgr_object, comgr_object))                                             \
    X(int, data_set_remove, (comgr_object, int kind))                                              \
    X(int, release_data, (comgr_object))                                                           \
    X(int, iterate_symbols, (comgr_object, int (*each)(comgr_object, void *), void *))

struct comgr {
#define COMGR_DECLARE(result, name, parameters) result(*name) parameters;
    COMGR_CALLED(COMGR_DECLARE)
#undef COMGR_DECLARE
    /* Identifies the compiler's files: path, size and modification time of AMD's library and of its
     * LLVM. */
    char identity[8192];
};

/* Returns AMD's library, which the first call opens. If AMD's library is missing, returns NULL, and
 * the first call prints a message. */
const struct comgr *comgr_amd(void);

/* A growing buffer of bytes. `failed` stays set after a failed allocation or a failed call of AMD's
 * library. */
struct bytes {
    unsigned char *at;
    size_t size, room;
    bool failed;
};

/* Appends `size` bytes, which the caller fills, and returns their address. NULL: failed. */
void *bytes_add(struct bytes *bytes, size_t size);
void bytes_add_word(struct bytes *bytes, uint64_t word);
void bytes_free(struct bytes *bytes);

/* Returns false if results must not be cached: caching is off, or the environment names no cache
 * folder. */
bool store_usable(void);

/* A file's content in memory. */
struct mapped {
    unsigned char *at;
    size_t size;
};

/* Finds the result that is cached for an equal request. Returns false if no result is cached, or
 * the cached result is damaged. The result lies in the file's content, until store_close. */
bool store_read(const struct bytes *request, struct mapped *file, struct bytes *result);
void store_close(struct mapped *file);

/* Caches a result; if writing fails, the result is not cached. */
void store_write(const struct bytes *request, const struct bytes *result);

#endif
