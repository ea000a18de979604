/* The compiler library that HIP opens, libamd_comgr.so.2, in front of AMD's.
 *
 * HIP 5.2.3 compiles its own kernels at each start: 0.2 of 0.3 s. This library stands before AMD's
 * and keeps the results of these compilations. All other calls are passed on. AMD's types and
 * values as of its interface 2.4; objects are counted references, which release_data releases.
 * Every function may be called by several threads at once. */
#ifndef SOFTGPU_COMGR_H
#define SOFTGPU_COMGR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    uint64_t handle;
} comgr_object;

enum { COMGR_SUCCESS = 0, COMGR_ERROR = 1 };

/* AMD's functions that the cache needs: action.c uses the rest of their meaning. */
struct comgr {
    int (*do_action)(int, comgr_object info, comgr_object input, comgr_object result);
    void (*get_version)(size_t *major, size_t *minor);
    int (*action_info_get_isa_name)(comgr_object, size_t *, char *);
    int (*action_info_get_language)(comgr_object, int *);
    int (*action_info_get_logging)(comgr_object, bool *);
    int (*action_info_set_working_directory_path)(comgr_object, const char *);
    int (*action_info_get_option_list_count)(comgr_object, size_t *);
    int (*action_info_get_option_list_item)(comgr_object, size_t, size_t *, char *);
    int (*action_data_count)(comgr_object, int kind, size_t *);
    int (*action_data_get_data)(comgr_object, int kind, size_t, comgr_object *);
    int (*get_data)(comgr_object, size_t *, char *);
    int (*get_data_name)(comgr_object, size_t *, char *);
    int (*create_data)(int kind, comgr_object *);
    int (*set_data)(comgr_object, size_t, const char *);
    int (*set_data_from_file_slice)(comgr_object, int file, uint64_t offset, uint64_t size);
    int (*set_data_name)(comgr_object, const char *);
    int (*data_set_add)(comgr_object, comgr_object);
    int (*data_set_remove)(comgr_object, int kind);
    int (*release_data)(comgr_object);
    int (*iterate_symbols)(comgr_object, int (*each)(comgr_object, void *), void *);
    /* Identifies the compiler's files: path, size and time of AMD's library and of its LLVM. */
    char identity[8192];
};

/* Returns AMD's library, opened at the first call. Returns NULL if there is none, which a message
 * tells once. */
const struct comgr *comgr_amd(void);

/* Bytes that grow. `failed` stays set: there was no memory, or one of AMD's functions failed. */
struct bytes {
    unsigned char *at;
    size_t size, room;
    bool failed;
};

/* Appends `size` bytes, which the caller fills, and returns their place. NULL: failed. */
void *bytes_add(struct bytes *bytes, size_t size);
void bytes_add_word(struct bytes *bytes, uint64_t word);
void bytes_free(struct bytes *bytes);

/* Returns false if no result is to be kept: caching is off, or there is no folder for it. */
bool store_usable(void);

/* Reads the result that was kept for exactly this request. Returns false if there is none, or it is
 * damaged. */
bool store_read(const struct bytes *request, struct bytes *result);

/* Keeps a result; a failure only means that none is kept. */
void store_write(const struct bytes *request, const struct bytes *result);

#endif
