/* A stand-in for hipSPARSE (-DPREFIX=hipsparse) or cuSPARSE (-DPREFIX=cusparse).
 * The stand-in computes nothing, counts calls, fails on demand, and detects misuse of the
 * libraries.
 *
 * csrc/sparse/sparse.def lists the functions. Thread-safe. */
#include "hip_abi.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define NAMED(name) JOIN(PREFIX, name)

enum { SUCCESS = 0, NOT_INITIALIZED = 1, NO_MEMORY = 2, INVALID = 3 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- what tests ask and say ---- */

struct counted {
    const char *name;
    int calls, failures, status;
};
static struct counted functions[64];

/* The arguments of the last calls; the numbers of objects, and of violations: uses of a destroyed
 * object, concurrent uses of one environment, and uses of one environment on two streams. */
struct {
    void *stream;
    unsigned long long alpha, beta;
    int order, algorithm, type, indices[3]; /* indices: type of positions, type of indices, base */
    int violations, environments, descriptors;
} sparsestub_seen = {.order = -1, .algorithm = -1, .type = -1};
#define seen sparsestub_seen

static struct counted *counted_of(const char *name) {
    struct counted *each = functions;
    while (each->name && strcmp(each->name, name) != 0)
        each++;
    if (!each->name)
        each->name = strdup(name);
    return each;
}

/* Counts a call; returns the status with which the call must fail, or 0. */
static int enter(const char *name) {
    pthread_mutex_lock(&lock);
    struct counted *function = counted_of(name);
    function->calls++;
    const int status = function->failures > 0 ? function->status : SUCCESS;
    function->failures -= status != SUCCESS;
    pthread_mutex_unlock(&lock);
    return status;
}

int sparsestub_count(const char *name) {
    pthread_mutex_lock(&lock);
    const int calls = counted_of(name)->calls;
    pthread_mutex_unlock(&lock);
    return calls;
}

/* Makes the next `times` calls return a given status. */
void sparsestub_fail(const char *name, int status, int times) {
    pthread_mutex_lock(&lock);
    counted_of(name)->status = status;
    counted_of(name)->failures = times;
    pthread_mutex_unlock(&lock);
}

/* ---- environments ---- */

struct environment {
    void *stream;
    bool destroyed, busy, worked;
    void *worked_on;
};

static void add(int *count, int more) {
    pthread_mutex_lock(&lock);
    *count += more;
    pthread_mutex_unlock(&lock);
}

/* An environment is never freed, so that a later use is detected. */
static int create(void **handle) {
    const int status = enter("Create");
    if (status != SUCCESS)
        return status;
    *handle = calloc(1, sizeof(struct environment));
    add(&seen.environments, 1);
    return SUCCESS;
}

static int destroy(struct environment *environment) {
    const int status = enter("Destroy");
    if (!environment)
        return NOT_INITIALIZED;
    if (environment->destroyed || environment->stream)
        add(&seen.violations, 1);
    environment->destroyed = true;
    add(&seen.environments, -1);
    return status;
}

static int get_version(void *handle, int *version) {
    const int status = enter("GetVersion");
    if (!handle)
        return NOT_INITIALIZED;
    *version = VERSION;
    return status;
}

static int set_stream(struct environment *environment, hipStream_t stream) {
    const int status = enter("SetStream");
    if (!environment)
        return NOT_INITIALIZED;
    if (environment->destroyed)
        add(&seen.violations, 1);
    environment->stream = stream;
    return status;
}

#ifndef NO_ERROR_STRING
const char *NAMED(GetErrorString)(int status) {
    static __thread char text[32];
    snprintf(text, sizeof text, "stub's status %d", status);
    return text;
}
#endif

/* ---- descriptors ---- */

struct descriptor {
    bool destroyed;
    int64_t rows, columns, count;
};

static int make(const char *name, void **out, struct descriptor like, int type) {
    const int status = enter(name);
    if (status != SUCCESS)
        return status;
    if (like.rows < 0 || like.columns < 0 || like.count < 0 || type < 0)
        return INVALID;
    struct descriptor *made = malloc(sizeof *made);
    *made = like;
    *out = made;
    seen.type = type;
    add(&seen.descriptors, 1);
    return SUCCESS;
}

static int unmake(const char *name, struct descriptor *descriptor) {
    const int status = enter(name);
    if (!descriptor)
        return INVALID;
    if (descriptor->destroyed)
        add(&seen.violations, 1);
    descriptor->destroyed = true;
    add(&seen.descriptors, -1);
    return status;
}

static int get_size(const struct descriptor *of, int64_t *rows, int64_t *columns, int64_t *count) {
    const int status = enter("SpMatGetSize");
    if (!of)
        return INVALID;
    *rows = of->rows;
    *columns = of->columns;
    *count = of->count;
    return status;
}

static void note_indices(int positions, int indices, int base) {
    seen.indices[0] = positions;
    seen.indices[1] = indices;
    seen.indices[2] = base;
}

/* ---- operations ---- */

static size_t width(int type) {
    switch (type) {
    case 2:
    case 14:
        return 2;
    case 0:
    case 6:
    case 10:
        return 4;
    default:
        return 8;
    }
}

/* Each operation calls this function of the test, if there is one, as hipSPARSE calls HIP. */
void (*sparsestub_inside)(void);

/* Simulates an operation, which takes SPARSESTUB_DELAY microseconds on the host. Returns the
 * operation's status. */
static int operate(const char *name, struct environment *environment, const void *alpha,
                   const void *beta, int type, int algorithm) {
    const char *delay = getenv("SPARSESTUB_DELAY");
    if (!environment)
        return NOT_INITIALIZED;
    pthread_mutex_lock(&lock);
    if (environment->destroyed || environment->busy ||
        (environment->worked && environment->worked_on != environment->stream))
        seen.violations++;
    environment->busy = environment->worked = true;
    environment->worked_on = seen.stream = environment->stream;
    seen.alpha = seen.beta = 0;
    memcpy(&seen.alpha, alpha, width(type));
    memcpy(&seen.beta, beta, width(type));
    seen.type = type;
    seen.algorithm = algorithm;
    pthread_mutex_unlock(&lock);
    if (sparsestub_inside)
        sparsestub_inside();
    if (delay)
        usleep((useconds_t)atoi(delay));
    pthread_mutex_lock(&lock);
    environment->busy = false;
    pthread_mutex_unlock(&lock);
    return enter(name);
}

static bool dead(const struct descriptor *a, const struct descriptor *b,
                 const struct descriptor *c) {
    return !a || !b || !c || a->destroyed || b->destroyed || c->destroyed;
}

/* ---- the functions, in the words of their parameters ---- */

#define MATRIX(name, positions)                                                                    \
    note_indices(positions, index_type, base);                                                     \
    return make(name, matrix, (struct descriptor){false, rows, columns, count}, type)
#define OPERATE(name, b, c)                                                                        \
    const int status = operate(name, handle, alpha, beta, type, algorithm);                        \
    if (status != SUCCESS || dead(a, b, c))                                                        \
    return status ? status : INVALID
#define OPERATION(name, b, c)                                                                      \
    OPERATE(name, b, c);                                                                           \
    return SUCCESS
#define BYTES(name, b, c, size)                                                                    \
    OPERATE(name, b, c);                                                                           \
    *bytes = size;                                                                                 \
    return SUCCESS

#define PLAY_Create return create(handle)
#define PLAY_Destroy return destroy(handle)
#define PLAY_GetVersion return get_version(handle, version)
#define PLAY_SetStream return set_stream(handle, stream)
#define PLAY_CreateDnVec return make("CreateDnVec", vector, (struct descriptor){.rows = size}, type)
#define PLAY_DestroyDnVec return unmake("DestroyDnVec", vector)
#define PLAY_CreateDnMat                                                                           \
    seen.order = order;                                                                            \
    return make("CreateDnMat", matrix, (struct descriptor){false, rows, columns, leading}, type)
#define PLAY_DestroyDnMat return unmake("DestroyDnMat", matrix)
#define PLAY_CreateCoo MATRIX("CreateCoo", 0)
#define PLAY_CreateCooAoS MATRIX("CreateCooAoS", 0)
#define PLAY_CreateCsr MATRIX("CreateCsr", position_type)
#define PLAY_CreateCsc MATRIX("CreateCsc", position_type)
#define PLAY_CreateBsr                                                                             \
    seen.order = order;                                                                            \
    MATRIX("CreateBsr", position_type)
#define PLAY_DestroySpMat return unmake("DestroySpMat", matrix)
#define PLAY_SpMatGetSize return get_size(matrix, rows, columns, count)
#define PLAY_CsrSetPointers                                                                        \
    const int status = enter("CsrSetPointers");                                                    \
    return matrix ? status : INVALID
#define PLAY_SpMV_bufferSize BYTES("SpMV_bufferSize", x, y, 100)
#define PLAY_SpMV OPERATION("SpMV", x, y)
#define PLAY_SpMM_bufferSize BYTES("SpMM_bufferSize", b, c, 200)
#define PLAY_SpMM OPERATION("SpMM", b, c)
#define PLAY_SDDMM_bufferSize BYTES("SDDMM_bufferSize", b, c, 200)
#define PLAY_SDDMM OPERATION("SDDMM", b, c)
#define PLAY_SpGEMM_createDescr                                                                    \
    return make("SpGEMM_createDescr", descriptor, (struct descriptor){0}, 0)
#define PLAY_SpGEMM_destroyDescr return unmake("SpGEMM_destroyDescr", descriptor)
#define PLAY_SpGEMM_workEstimation BYTES("SpGEMM_workEstimation", b, c, buffer ? *bytes : 300)
#define PLAY_SpGEMM_compute BYTES("SpGEMM_compute", b, c, buffer ? *bytes : 300)
#define PLAY_SpGEMM_copy OPERATION("SpGEMM_copy", b, c)

#ifdef NO_BSR /* hipSPARSE of ROCm 5 does not export it */
int NAMED(CreateBsr)() __attribute__((visibility("hidden")));
#endif
#define SPARSE_FN(need, name, params, args)                                                        \
    int NAMED(name) params {                                                                       \
        PLAY_##name;                                                                               \
    }
#include "sparse/sparse.def"
