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

/* Arguments of the last operation. */
static void *last_stream;
static unsigned char last_alpha[8], last_beta[8];
static int last_order = -1, last_algorithm = -1, last_type = -1;
static int last_indices[3];
static int violations, environments, descriptors;

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

void *sparsestub_stream(void) {
    return last_stream;
}
unsigned long long sparsestub_alpha(void) {
    unsigned long long value;
    memcpy(&value, last_alpha, sizeof value);
    return value;
}
unsigned long long sparsestub_beta(void) {
    unsigned long long value;
    memcpy(&value, last_beta, sizeof value);
    return value;
}
int sparsestub_order(void) {
    return last_order;
}
int sparsestub_algorithm(void) {
    return last_algorithm;
}
int sparsestub_type(void) {
    return last_type;
}
int sparsestub_index(int i) {
    return last_indices[i];
}
/* Returns the number of violations: uses of a destroyed object, concurrent uses of one environment,
 * and uses of one environment on two streams. */
int sparsestub_violations(void) {
    return violations;
}
int sparsestub_environments(void) {
    return environments;
}
int sparsestub_descriptors(void) {
    return descriptors;
}

/* ---- environments ---- */

struct environment {
    void *stream;
    bool destroyed, busy, worked;
    void *worked_on;
};

static void violation(void) {
    pthread_mutex_lock(&lock);
    violations++;
    pthread_mutex_unlock(&lock);
}

int NAMED(Create)(void **handle) {
    const int status = enter("Create");
    if (status != SUCCESS)
        return status;
    *handle =
        calloc(1, sizeof(struct environment)); /* never freed, so that a later use is detected */
    pthread_mutex_lock(&lock);
    environments++;
    pthread_mutex_unlock(&lock);
    return SUCCESS;
}

int NAMED(Destroy)(void *handle) {
    struct environment *environment = handle;
    const int status = enter("Destroy");
    if (!environment)
        return NOT_INITIALIZED;
    if (environment->destroyed || environment->stream)
        violation();
    environment->destroyed = true;
    pthread_mutex_lock(&lock);
    environments--;
    pthread_mutex_unlock(&lock);
    return status;
}

int NAMED(GetVersion)(void *handle, int *version) {
    const int status = enter("GetVersion");
    if (!handle)
        return NOT_INITIALIZED;
    *version = VERSION;
    return status;
}

int NAMED(SetStream)(void *handle, hipStream_t stream) {
    struct environment *environment = handle;
    const int status = enter("SetStream");
    if (!environment)
        return NOT_INITIALIZED;
    if (environment->destroyed)
        violation();
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
    pthread_mutex_lock(&lock);
    last_type = type;
    descriptors++;
    pthread_mutex_unlock(&lock);
    return SUCCESS;
}

static int unmake(const char *name, void *out) {
    struct descriptor *descriptor = out;
    const int status = enter(name);
    if (!descriptor)
        return INVALID;
    if (descriptor->destroyed)
        violation();
    descriptor->destroyed = true;
    pthread_mutex_lock(&lock);
    descriptors--;
    pthread_mutex_unlock(&lock);
    return status;
}

static void note_indices(int positions, int indices, int base) {
    last_indices[0] = positions;
    last_indices[1] = indices;
    last_indices[2] = base;
}

#define SIZES                                                                                      \
    (struct descriptor) {                                                                          \
        .rows = rows, .columns = columns, .count = count                                           \
    }

int NAMED(CreateDnVec)(void **vector, int64_t size, void *values, int type) {
    return make("CreateDnVec", vector, (struct descriptor){.rows = size}, type);
}
int NAMED(DestroyDnVec)(void *vector) {
    return unmake("DestroyDnVec", vector);
}
int NAMED(CreateDnMat)(void **matrix, int64_t rows, int64_t columns, int64_t leading, void *values,
                       int type, int order) {
    last_order = order;
    return make("CreateDnMat", matrix,
                (struct descriptor){.rows = rows, .columns = columns, .count = leading}, type);
}
int NAMED(DestroyDnMat)(void *matrix) {
    return unmake("DestroyDnMat", matrix);
}
int NAMED(CreateCoo)(void **matrix, int64_t rows, int64_t columns, int64_t count, void *row_of,
                     void *column_of, void *values, int index_type, int base, int type) {
    note_indices(0, index_type, base);
    return make("CreateCoo", matrix, SIZES, type);
}
int NAMED(CreateCooAoS)(void **matrix, int64_t rows, int64_t columns, int64_t count, void *indices,
                        void *values, int index_type, int base, int type) {
    note_indices(0, index_type, base);
    return make("CreateCooAoS", matrix, SIZES, type);
}
int NAMED(CreateCsr)(void **matrix, int64_t rows, int64_t columns, int64_t count, void *positions,
                     void *indices, void *values, int position_type, int index_type, int base,
                     int type) {
    note_indices(position_type, index_type, base);
    return make("CreateCsr", matrix, SIZES, type);
}
int NAMED(CreateCsc)(void **matrix, int64_t rows, int64_t columns, int64_t count, void *positions,
                     void *indices, void *values, int position_type, int index_type, int base,
                     int type) {
    note_indices(position_type, index_type, base);
    return make("CreateCsc", matrix, SIZES, type);
}
#ifndef NO_BSR
int NAMED(CreateBsr)(void **matrix, int64_t rows, int64_t columns, int64_t count,
                     int64_t block_rows, int64_t block_columns, void *positions, void *indices,
                     void *values, int position_type, int index_type, int base, int type,
                     int order) {
    note_indices(position_type, index_type, base);
    last_order = order;
    return make("CreateBsr", matrix, SIZES, type);
}
#endif
int NAMED(DestroySpMat)(void *matrix) {
    return unmake("DestroySpMat", matrix);
}
int NAMED(SpMatGetSize)(void *matrix, int64_t *rows, int64_t *columns, int64_t *count) {
    const struct descriptor *of = matrix;
    const int status = enter("SpMatGetSize");
    if (!of)
        return INVALID;
    *rows = of->rows;
    *columns = of->columns;
    *count = of->count;
    return status;
}
int NAMED(CsrSetPointers)(void *matrix, void *positions, void *indices, void *values) {
    const int status = enter("CsrSetPointers");
    return matrix ? status : INVALID;
}
int NAMED(SpGEMM_createDescr)(void **descriptor) {
    return make("SpGEMM_createDescr", descriptor, (struct descriptor){0}, 0);
}
int NAMED(SpGEMM_destroyDescr)(void *descriptor) {
    return unmake("SpGEMM_destroyDescr", descriptor);
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

/* Simulates an operation, which takes SPARSESTUB_DELAY microseconds on the host. Returns the
 * operation's status. */
static int operate(const char *name, struct environment *environment, const void *alpha,
                   const void *beta, int type) {
    const char *delay = getenv("SPARSESTUB_DELAY");
    if (!environment)
        return NOT_INITIALIZED;
    pthread_mutex_lock(&lock);
    if (environment->destroyed || environment->busy ||
        (environment->worked && environment->worked_on != environment->stream))
        violations++;
    environment->busy = environment->worked = true;
    environment->worked_on = last_stream = environment->stream;
    memset(last_alpha, 0, sizeof last_alpha);
    memset(last_beta, 0, sizeof last_beta);
    memcpy(last_alpha, alpha, width(type));
    memcpy(last_beta, beta, width(type));
    last_type = type;
    pthread_mutex_unlock(&lock);
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

#define OPERATION(name, operands)                                                                  \
    last_algorithm = algorithm;                                                                    \
    const int status = operate(name, handle, alpha, beta, type);                                   \
    if (status != SUCCESS)                                                                         \
        return status;                                                                             \
    if (dead operands)                                                                             \
    return INVALID

int NAMED(SpMV_bufferSize)(void *handle, int of_a, const void *alpha, void *a, void *x,
                           const void *beta, void *y, int type, int algorithm, size_t *bytes) {
    OPERATION("SpMV_bufferSize", (a, x, y));
    *bytes = 100;
    return SUCCESS;
}
int NAMED(SpMV)(void *handle, int of_a, const void *alpha, void *a, void *x, const void *beta,
                void *y, int type, int algorithm, void *buffer) {
    OPERATION("SpMV", (a, x, y));
    return SUCCESS;
}

#define TWO_SIDED(name)                                                                            \
    int NAMED(name##_bufferSize)(void *handle, int of_a, int of_b, const void *alpha, void *a,     \
                                 void *b, const void *beta, void *c, int type, int algorithm,      \
                                 size_t *bytes) {                                                  \
        OPERATION(#name "_bufferSize", (a, b, c));                                                 \
        *bytes = 200;                                                                              \
        return SUCCESS;                                                                            \
    }                                                                                              \
    int NAMED(name)(void *handle, int of_a, int of_b, const void *alpha, void *a, void *b,         \
                    const void *beta, void *c, int type, int algorithm, void *buffer) {            \
        OPERATION(#name, (a, b, c));                                                               \
        return SUCCESS;                                                                            \
    }
TWO_SIDED(SpMM)
TWO_SIDED(SDDMM)

#define STEP(name)                                                                                 \
    int NAMED(SpGEMM_##name)(void *handle, int of_a, int of_b, const void *alpha, void *a,         \
                             void *b, const void *beta, void *c, int type, int algorithm,          \
                             void *descriptor, size_t *bytes, void *buffer) {                      \
        OPERATION("SpGEMM_" #name, (a, b, c));                                                     \
        *bytes = buffer ? *bytes : 300;                                                            \
        return SUCCESS;                                                                            \
    }
STEP(workEstimation)
STEP(compute)

int NAMED(SpGEMM_copy)(void *handle, int of_a, int of_b, const void *alpha, void *a, void *b,
                       const void *beta, void *c, int type, int algorithm, void *descriptor) {
    OPERATION("SpGEMM_copy", (a, b, c));
    return SUCCESS;
}
