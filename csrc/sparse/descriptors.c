/* Sparse matrices: the environment, and descriptors of vectors and matrices.
 *
 * hipSPARSE and cuSPARSE allocate only host memory for a descriptor, so no descriptor is cached.
 * The program allocates the work buffers of products with mgpuMemAlloc. */
#include "environments.h"
#include "process/state.h"
#include "proof.h"
#include "sparse.h"

enum { BASE_ZERO = 0 };

static struct advice sparse_no_environment = {
    .text = "the program computes with sparse matrices before it has called mgpuCreateSparseEnv"};

/* The number of environments that the program has created and not destroyed. One count serves all
 * threads, as stock has one environment for the whole process. */
static int environments_open;

/* ---- the environment ---- */

static struct environment *take_environment(hipStream_t stream, const char *expression) {
    int status;
    struct environment *environment = environment_acquire(stream, &status);
    if (!environment)
        sparse_failed(expression, status, NULL);
    return environment;
}

void impl_mgpuCreateSparseEnv(void) {
    (void)sparse_open();
    struct environment *environment = take_environment(NULL, "%1$sCreate(&%1$s_env)");
    if (!environment)
        return;
    environment_release(environment);
    fetch_add_relaxed(&environments_open, 1);
}

/* The environment stays cached for the next owner, unless caching is off. */
void impl_mgpuDestroySparseEnv(void) {
    (void)sparse_open();
    int count = load_relaxed(&environments_open);
    while (count > 0 && !cas_acq_rel(&environments_open, &count, count - 1))
        continue;
    const int status = count > 0 ? SPARSE_SUCCESS : sparse.Destroy(NULL);
    if (status != SPARSE_SUCCESS)
        sparse_failed("%1$sDestroy(%1$s_env)", status, &sparse_no_environment);
    if (count <= 1 && !(host->caches_on() && host->device_has_caches(host->hip_current_device())))
        (void)environment_trim(ALL_DEVICES);
}

bool sparse_begin(struct sparse_work *work, hipStream_t stream, const char *expression) {
    const char *set_stream = host->cuda_present() ? "cusparseSetStream(handle, stream)"
                                                  : "hipsparseSetStream(handle, stream)";
    *work = (struct sparse_work){.expression = expression};
    (void)sparse_open();
    if (!host->stream_usable(host->thread_get(), stream, &work->stream, set_stream))
        return false;
    host->lazy_end(); /* the kernels of hipSPARSE or cuSPARSE are unknown */
    if (load_relaxed(&environments_open) == 0)
        return true; /* hipSPARSE or cuSPARSE answers without an environment */
    work->environment = take_environment(stream, expression);
    work->handle = work->environment ? work->environment->handle : NULL;
    return work->environment != NULL;
}

void sparse_end(struct sparse_work *work, int status) {
    PROOF_STEP(sparse_work_marks_its_stream, host->stream_launched(work->stream));
    if (work->environment)
        environment_release(work->environment);
    if (status != SPARSE_SUCCESS)
        sparse_failed(work->expression, status, work->environment ? NULL : &sparse_no_environment);
}

/* ---- descriptors ---- */

/* SPARSE_CALL(call, expression): a call that needs no environment. */
#define SPARSE_CALL(call, expression)                                                              \
    do {                                                                                           \
        (void)sparse_open();                                                                       \
        const int answer_ = SPARSE_RETRY(call);                                                    \
        if (answer_ != SPARSE_SUCCESS)                                                             \
            sparse_failed(expression, answer_, NULL);                                              \
    } while (0)

/* Each of these functions has a stream as a parameter, and ignores the stream. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

void *impl_mgpuCreateDnVec(intptr_t size, void *values, int32_t dtp, hipStream_t stream) {
    void *vec = NULL;
    SPARSE_CALL(sparse.CreateDnVec(&vec, size, values, dtp),
                "%1$sCreateDnVec(&vec, size, values, dTp)");
    return vec;
}

void impl_mgpuDestroyDnVec(void *v, hipStream_t stream) {
    SPARSE_CALL(sparse.DestroyDnVec(v), "%1$sDestroyDnVec(vec)");
}

/* Returns the open library's constant for row-major order; -1 if no environment is available. The
 * program may have opened hipSPARSE of another release than HIP's. ROCm 6 contains hipSPARSE 3, the
 * first release with cuSPARSE's number. */
static int row_order(void) {
    enum { HIPSPARSE_3 = 300000, CUSPARSES = 2 };
    static int known = -1;
    int order = host->cuda_present() ? CUSPARSES : load_relaxed(&known), version = 0, status;
    struct environment *environment = order < 0 ? environment_acquire(NULL, &status) : NULL;
    if (!environment)
        return order;
    (void)sparse.GetVersion(environment->handle, &version);
    environment_release(environment);
    order = version >= HIPSPARSE_3 ? CUSPARSES : 0;
    store_relaxed(&known, order);
    return order;
}

void *impl_mgpuCreateDnMat(intptr_t rows, intptr_t cols, void *values, int32_t dtp,
                           hipStream_t stream) {
    void *mat = NULL;
    SPARSE_CALL(sparse.CreateDnMat(&mat, rows, cols, cols, values, dtp, row_order()),
                "%1$sCreateDnMat(&mat, rows, cols, cols, values, dTp, %2$s_ORDER_ROW)");
    return mat;
}

void impl_mgpuDestroyDnMat(void *m, hipStream_t stream) {
    SPARSE_CALL(sparse.DestroyDnMat(m), "%1$sDestroyDnMat(mat)");
}

void *impl_mgpuCreateCoo(intptr_t rows, intptr_t cols, intptr_t nnz, void *rowIdxs, void *colIdxs,
                         void *values, int32_t itp, int32_t dtp, hipStream_t stream) {
    void *mat = NULL;
    SPARSE_CALL(
        sparse.CreateCoo(&mat, rows, cols, nnz, rowIdxs, colIdxs, values, itp, BASE_ZERO, dtp),
        "%1$sCreateCoo(&mat, rows, cols, nnz, rowIdxs, colIdxs, values, iTp, "
        "%2$s_INDEX_BASE_ZERO, dTp)");
    return mat;
}

void *impl_mgpuCreateCooAoS(intptr_t rows, intptr_t cols, intptr_t nnz, void *idxs, void *values,
                            int32_t itp, int32_t dtp, hipStream_t stream) {
    void *mat = NULL;
    SPARSE_CALL(sparse.CreateCooAoS(&mat, rows, cols, nnz, idxs, values, itp, BASE_ZERO, dtp),
                "%1$sCreateCooAoS( &mat, rows, cols, nnz, idxs, values, iTp, "
                "%2$s_INDEX_BASE_ZERO, dTp)");
    return mat;
}

void *impl_mgpuCreateCsr(intptr_t rows, intptr_t cols, intptr_t nnz, void *rowPos, void *colIdxs,
                         void *values, int32_t ptp, int32_t itp, int32_t dtp, hipStream_t stream) {
    void *mat = NULL;
    SPARSE_CALL(
        sparse.CreateCsr(&mat, rows, cols, nnz, rowPos, colIdxs, values, ptp, itp, BASE_ZERO, dtp),
        "%1$sCreateCsr(&mat, rows, cols, nnz, rowPos, colIdxs, values, pTp, iTp, "
        "%2$s_INDEX_BASE_ZERO, dTp)");
    return mat;
}

void *impl_mgpuCreateCsc(intptr_t rows, intptr_t cols, intptr_t nnz, void *colPos, void *rowIdxs,
                         void *values, int32_t ptp, int32_t itp, int32_t dtp, hipStream_t stream) {
    void *mat = NULL;
    SPARSE_CALL(
        sparse.CreateCsc(&mat, rows, cols, nnz, colPos, rowIdxs, values, ptp, itp, BASE_ZERO, dtp),
        "%1$sCreateCsc(&mat, rows, cols, nnz, colPos, rowIdxs, values, pTp, iTp, "
        "%2$s_INDEX_BASE_ZERO, dTp)");
    return mat;
}

void *impl_mgpuCreateBsr(intptr_t brows, intptr_t bcols, intptr_t bnnz, intptr_t rBsz,
                         intptr_t cBsz, void *rowPos, void *colIdxs, void *values, int32_t ptp,
                         int32_t itp, int32_t dtp, hipStream_t stream) {
    void *mat = NULL;
    SPARSE_CALL(sparse.CreateBsr(&mat, brows, bcols, bnnz, rBsz, cBsz, rowPos, colIdxs, values, ptp,
                                 itp, BASE_ZERO, dtp, row_order()),
                "%1$sCreateBsr( &mat, brows, bcols, bnnz, rBsz, cBsz, rowPos, colIdxs, values, "
                "pTp, iTp, %2$s_INDEX_BASE_ZERO, dTp, %2$s_ORDER_ROW)");
    return mat;
}

void impl_mgpuDestroySpMat(void *m, hipStream_t stream) {
    SPARSE_CALL(sparse.DestroySpMat(m), "%1$sDestroySpMat(mat)");
}

void impl_mgpuSpMatGetSize(void *m, void *r, void *c, void *n, hipStream_t stream) {
    SPARSE_CALL(sparse.SpMatGetSize(m, r, c, n), "%1$sSpMatGetSize(matDescr, rows, cols, nnz)");
}

void impl_mgpuSetCsrPointers(void *m, void *p, void *c, void *v, hipStream_t stream) {
    SPARSE_CALL(sparse.CsrSetPointers(m, p, c, v), "%1$sCsrSetPointers(matDescr, p, c, v)");
}

void *impl_mgpuSpGEMMCreateDescr(hipStream_t stream) {
    void *descriptor = NULL;
    SPARSE_CALL(sparse.SpGEMM_createDescr(&descriptor), "%1$sSpGEMM_createDescr(&spgemmDesc)");
    return descriptor;
}

void impl_mgpuSpGEMMDestroyDescr(void *s, hipStream_t stream) {
    SPARSE_CALL(sparse.SpGEMM_destroyDescr(s), "%1$sSpGEMM_destroyDescr(spgemmDesc)");
}
