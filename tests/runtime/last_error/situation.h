/* One call of an mgpu* function in one situation, and the state after it. */
#ifndef LAST_ERROR_SITUATION_H
#define LAST_ERROR_SITUATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct ihipModule_t *hipModule_t;
typedef struct ihipModuleSymbol_t *hipFunction_t;
typedef struct ihipStream_t *hipStream_t;
typedef struct ihipEvent_t *hipEvent_t;

struct mgpu_memref {
    char *allocated, *aligned;
    int64_t offset, sizes_and_strides[];
};
struct mgpu_memref_float {
    float *allocated, *aligned;
    int64_t offset, size, stride;
};
struct mgpu_memref_int32 {
    int32_t *allocated, *aligned;
    int64_t offset, size, stride;
};

/* The runtime's function; NULL if the runtime lacks it. */
#define MGPU_FN(result, name, params, args, first, last, ...) extern result(*name) params;
#include "../../../csrc/abi.def"

/* Defines a situation: the statements before the call, CALL(...) once, and the statements that
 * clean up. */
#define SITUATION(name)                                                                            \
    static void name(void);                                                                        \
    __attribute__((constructor)) static void add_##name(void) {                                    \
        situation_add(#name, name);                                                                \
    }                                                                                              \
    static void name(void)

/* Makes a situation's call. First causes the error that PENDING names, and marks the lines that
 * the call prints on stderr. */
#define CALL(...)                                                                                  \
    do {                                                                                           \
        situation_before();                                                                        \
        __VA_ARGS__;                                                                               \
        situation_after();                                                                         \
    } while (0)

void situation_add(const char *name, void (*run)(void));
void situation_before(void);
void situation_after(void);

/* Returns HIP's own function with the given name. If HIP lacks the function, the process ends. */
#define HIP(name, ...) ((int (*)(__VA_ARGS__))situation_hip(#name))
void (*situation_hip(const char *name))(void);

/* Returns the bytes of a file of the folder, in separate memory. If `at_end` is true, the memory
 * behind the bytes is unreadable. */
void *situation_file(const char *name, bool at_end);

#endif
