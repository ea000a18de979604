/* A call of one of the mgpu* functions in one situation, and what it leaves behind. */
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

/* The runtime under test; NULL for a function that it does not have. */
#define MGPU_FN(result, name, params, args, first, last, ...) extern result(*name) params;
#define MGPU_VOID(name, params, args, first, last, ...) extern void(*name) params;
#include "../../../csrc/abi.def"
#undef MGPU_FN
#undef MGPU_VOID

/* Defines a situation: the statements that lead to it, CALL(...) once, and what clears it away. */
#define SITUATION(name)                                                                            \
    static void name(void);                                                                        \
    __attribute__((constructor)) static void add_##name(void) {                                    \
        situation_add(#name, name);                                                                \
    }                                                                                              \
    static void name(void)

/* The call that is looked at: with the error before it that the program was asked for, and its
 * lines on stderr between marks. */
#define CALL(...)                                                                                  \
    do {                                                                                           \
        situation_before();                                                                        \
        __VA_ARGS__;                                                                               \
        situation_after();                                                                         \
    } while (0)

void situation_add(const char *name, void (*run)(void));
void situation_before(void);
void situation_after(void);

/* HIP's own function of a name; the process ends if there is none. */
#define HIP(name, ...) ((int (*)(__VA_ARGS__))situation_hip(#name))
void (*situation_hip(const char *name))(void);

/* Returns the bytes of a file of the folder, in memory of their own. If `at_end`, nothing can be
 * read behind them. */
void *situation_file(const char *name, bool at_end);

#endif
