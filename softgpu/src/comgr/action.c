/* Compiles through AMD's library, and serializes requests and results for the cache.
 *
 * The cache stores the result of an OpenCL compilation step only if the request determines the
 * result. The options of such a step name no file, and the step's sources include no file and do
 * not use the time. */
#include "comgr.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

/* AMD's numbers. */
enum { LANGUAGE_NONE = 0, LANGUAGE_OPENCL_1_2 = 1, LANGUAGE_OPENCL_2_0 = 2 };
enum {
    DATA_SOURCE = 1,
    DATA_INCLUDE = 2,
    DATA_RELOCATABLE = 7,
    DATA_EXECUTABLE = 8,
    DATA_KINDS = 32
};
enum {
    COMPILE_SOURCE_TO_BC = 2,
    LINK_BC_TO_BC = 4,
    CODEGEN_BC_TO_RELOCATABLE = 6,
    LINK_RELOCATABLE_TO_EXECUTABLE = 9
};

#define EXPORTED __attribute__((visibility("default")))

extern char **environ;

/* Becomes true when the program sets a working directory: from then on, no result is cached. AMD's
 * function that returns the working directory crashes if no working directory is set. */
static atomic_bool working_directory;

/* ---- whether a result may be kept ---- */

/* Returns whether results may be cached. An interface later than 2.4 has settings that this library
 * cannot read, so results of later interfaces are not cached. An AMD_COMGR_ variable makes AMD's
 * library write files, so no results are cached while such a variable is set. */
static bool is_known(const struct comgr *amd) {
    size_t major = 0, minor = 0;
    amd->get_version(&major, &minor);
    for (char **each = environ; each && *each; each++)
        if (strncmp(*each, "AMD_COMGR_", strlen("AMD_COMGR_")) == 0)
            return false;
    return major == 2 && minor == 4 && amd->identity[0] && !atomic_load(&working_directory);
}

/* Returns whether a step compiles. Steps that only add headers or device libraries copy megabytes
 * of AMD's library, which takes less time than a lookup. */
static bool is_step(int kind) {
    return kind == COMPILE_SOURCE_TO_BC || kind == LINK_BC_TO_BC ||
           kind == CODEGEN_BC_TO_RELOCATABLE || kind == LINK_RELOCATABLE_TO_EXECUTABLE;
}

static bool asks_for_more(const void *text, size_t size) {
    static const char *const words[] = {"include", "import", "embed", "__DATE__", "__TIME"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (memmem(text, size, words[i], strlen(words[i])))
            return true;
    return false;
}

static bool names_no_file(const char *option) {
    static const char *const known[] = {"-O",
                                        "-cl-",
                                        "-D",
                                        "-mcumode",
                                        "-mno-cumode",
                                        "-mwavefrontsize64",
                                        "-mllvm",
                                        "-amdgpu-",
                                        "-mno-wavefrontsize64",
                                        "-Xclang",
                                        "code_object_v",
                                        "-mcode-object-version=",
                                        "wavefrontsize64"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strncmp(option, known[i], strlen(known[i])) == 0)
            return !asks_for_more(option, strlen(option));
    return false;
}

/* ---- AMD's objects as bytes ---- */

/* Appends the length and then the bytes of a text or of data. `get` is AMD's getter: the first call
 * returns the length, and the second call returns the bytes. */
#define ADD(bytes, get, ...)                                                                       \
    do {                                                                                           \
        size_t size = 0;                                                                           \
        if (get(__VA_ARGS__, &size, NULL) != COMGR_SUCCESS)                                        \
            (bytes)->failed = true;                                                                \
        bytes_add_word(bytes, size);                                                               \
        char *room = bytes_add(bytes, size);                                                       \
        if (room && get(__VA_ARGS__, &size, room) != COMGR_SUCCESS)                                \
            (bytes)->failed = true;                                                                \
    } while (0)

/* Appends kind, name and content of each object of a set, in the set's order; returns the number of
 * objects. */
static size_t add_set(const struct comgr *amd, comgr_object set, struct bytes *to, bool input) {
    size_t all = 0;
    for (int kind = 1; kind < DATA_KINDS; kind++) {
        size_t count = 0;
        if (amd->action_data_count(set, kind, &count) != COMGR_SUCCESS)
            continue; /* the set has no object of this kind */
        for (size_t i = 0; i < count && !to->failed; i++, all++) {
            comgr_object data;
            if (amd->action_data_get_data(set, kind, i, &data) != COMGR_SUCCESS) {
                to->failed = true;
                break;
            }
            bytes_add_word(to, (uint64_t)kind);
            ADD(to, amd->get_data_name, data);
            const size_t begin = to->size;
            ADD(to, amd->get_data, data);
            if (input && (kind == DATA_SOURCE || kind == DATA_INCLUDE) && !to->failed &&
                asks_for_more(to->at + begin, to->size - begin))
                to->failed = true;
            (void)amd->release_data(data);
        }
    }
    return all;
}

static void add_options(const struct comgr *amd, comgr_object info, struct bytes *to) {
    size_t count = 0;
    if (amd->action_info_get_option_list_count(info, &count) != COMGR_SUCCESS)
        to->failed = true;
    bytes_add_word(to, count);
    for (size_t i = 0; i < count && !to->failed; i++) {
        const size_t begin = to->size + sizeof(uint64_t);
        ADD(to, amd->action_info_get_option_list_item, info, i);
        if (!to->failed && !names_no_file((const char *)to->at + begin))
            to->failed = true;
    }
}

/* Appends all inputs that determine a compilation's result. */
static void add_request(const struct comgr *amd, int kind, comgr_object info, comgr_object input,
                        struct bytes *to) {
    int language = -1;
    bool logging = false;
    if (!is_step(kind) || amd->action_info_get_language(info, &language) != COMGR_SUCCESS ||
        language < LANGUAGE_NONE || language > LANGUAGE_OPENCL_2_0 ||
        amd->action_info_get_logging(info, &logging) != COMGR_SUCCESS) {
        to->failed = true;
        return;
    }
    const size_t length = strlen(amd->identity);
    char *identity = bytes_add(to, length);
    if (identity)
        memcpy(identity, amd->identity, length);
    bytes_add_word(to, (uint64_t)kind);
    bytes_add_word(to, (uint64_t)language);
    bytes_add_word(to, logging);
    ADD(to, amd->action_info_get_isa_name, info);
    add_options(amd, info, to);
    bytes_add_word(to, add_set(amd, input, to, true));
}

/* ---- and back ---- */

static bool take_word(struct bytes *from, uint64_t *word) {
    if (from->size < sizeof *word)
        return false;
    memcpy(word, from->at, sizeof *word);
    from->at += sizeof *word, from->size -= sizeof *word;
    return true;
}

static const char *take(struct bytes *from, uint64_t *size) {
    if (!take_word(from, size) || *size > from->size)
        return NULL;
    const char *text = (const char *)from->at;
    from->at += *size, from->size -= *size;
    return text;
}

/* An empty log must exist as an object, because HIP reads the log. AMD's set_data refuses a size of
 * 0, but set_data_from_file_slice accepts this size. */
static bool set_content(const struct comgr *amd, comgr_object data, const char *at, size_t size) {
    if (size)
        return amd->set_data(data, size, at) == COMGR_SUCCESS;
    const int file = open("/dev/null", O_RDONLY | O_CLOEXEC);
    const bool done = file >= 0 && amd->set_data_from_file_slice(data, file, 0, 0) == COMGR_SUCCESS;
    if (file >= 0)
        (void)close(file);
    return done;
}

static int ignore_symbol(comgr_object symbol, void *data) {
    (void)symbol, (void)data;
    return COMGR_SUCCESS;
}

/* A cache hit skips the compilation that would have initialised AMD's LLVM. If a program first
 * loads a module in an exit handler, LLVM would start after LLVM's destructors have run, and LLVM
 * would loop for ever. start_llvm therefore reads symbols at the first cache hit, because reading
 * symbols starts LLVM. */
static void start_llvm(const struct comgr *amd, comgr_object data, uint64_t kind) {
    static _Atomic bool started;
    if ((kind == DATA_RELOCATABLE || kind == DATA_EXECUTABLE) && !atomic_exchange(&started, true))
        (void)amd->iterate_symbols(data, ignore_symbol, NULL);
}

static bool restore_data(const struct comgr *amd, struct bytes *from, comgr_object set) {
    uint64_t kind, name_size, size;
    if (!take_word(from, &kind))
        return false;
    const char *name = take(from, &name_size), *content = name ? take(from, &size) : NULL;
    comgr_object data;
    if (!content || !name_size || name[name_size - 1] != '\0' ||
        amd->create_data((int)kind, &data) != COMGR_SUCCESS)
        return false;
    const bool done = amd->set_data_name(data, name) == COMGR_SUCCESS &&
                      set_content(amd, data, content, size) &&
                      amd->data_set_add(set, data) == COMGR_SUCCESS;
    if (done)
        start_llvm(amd, data, kind);
    (void)amd->release_data(data);
    return done;
}

/* Fills an empty set; after a failure, empties the set again. */
static bool restore(const struct comgr *amd, const struct bytes *result, comgr_object set) {
    struct bytes from = *result;
    while (from.size)
        if (!restore_data(amd, &from, set)) {
            for (int kind = 1; kind < DATA_KINDS; kind++)
                (void)amd->data_set_remove(set, kind);
            return false;
        }
    return true;
}

/* ---- the call ---- */

static bool is_empty(const struct comgr *amd, comgr_object set) {
    for (int kind = 1; kind < DATA_KINDS; kind++) {
        size_t count = 0;
        if (amd->action_data_count(set, kind, &count) == COMGR_SUCCESS && count)
            return false;
    }
    return true;
}

EXPORTED int amd_comgr_action_info_set_working_directory_path(comgr_object info, const char *path) {
    const struct comgr *amd = comgr_amd();
    atomic_store(&working_directory, true);
    return amd ? amd->action_info_set_working_directory_path(info, path) : COMGR_ERROR;
}

EXPORTED int amd_comgr_do_action(int kind, comgr_object info, comgr_object input,
                                 comgr_object set) {
    const struct comgr *amd = comgr_amd();
    if (!amd)
        return COMGR_ERROR;
    struct bytes request = {0}, result = {0};
    struct mapped file;
    request.failed = !store_usable() || !is_known(amd) || !is_empty(amd, set);
    if (!request.failed)
        add_request(amd, kind, info, input, &request);
    bool restored = false;
    if (!request.failed && store_read(&request, &file, &result)) {
        restored = restore(amd, &result, set);
        store_close(&file);
        result = (struct bytes){0};
    }
    int status = COMGR_SUCCESS;
    if (!restored) {
        status = amd->do_action(kind, info, input, set);
        if (status == COMGR_SUCCESS && !request.failed) {
            (void)add_set(amd, set, &result, false);
            if (!result.failed)
                store_write(&request, &result);
        }
    }
    bytes_free(&request);
    bytes_free(&result);
    return status;
}
