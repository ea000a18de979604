/* 2:4 sparse matrices on NVIDIA's GPUs. Two of each four values in a row are zero, and the GPU's
 * tensor cores skip these zeros. The program owns the memory of the handles. */
#include "sparse/mgpu_sparse.h"
#include "sparse/sparse.h"
#include "streams/mgpu_stream.h"

#include <stdlib.h>

/* The space for each of cuSPARSELt's objects. An object has 11024 bytes in cuSPARSELt 0.4, as LLVM
 * assumes, 13072 bytes in 0.6, and fewer in later releases. */
enum { OBJECT_BYTES = 16384, VALUE_ALIGNMENT = 16 };

/* cusparseOrder_t, cusparseLtSparsity_t, cusparseLtMatmulAlg_t, cusparseLtMatmulAlgAttribute_t,
 * cusparseLtPruneAlg_t. */
enum { ROWS_FOLLOW = 2, HALF_IS_ZERO = 0, DEFAULT_WAY = 0, CONFIG_ID = 0, PRUNE_STRIP = 1 };

/* The values of `pruneFlag`. */
enum { PRUNE = 1, PRUNE_AND_CHECK = 2 };

/* cuSPARSELt's objects must be aligned like vectors. */
struct sparselt_object {
    _Alignas(16) unsigned char bytes[OBJECT_BYTES];
};

/* The program allocates the handle, with space only for an object of cuSPARSELt 0.4. An object may
 * be larger in later releases, so the handle contains a pointer to the object. */
struct dense_handle {
    struct sparselt_object *matrix;
    void *values;
};

/* A sparse handle contains one product, as in LLVM, so the handle serves one product. */
struct sparse_handle {
    struct sparse_objects {
        struct sparselt_object matrix, selection, plan, product;
        bool planned;
    } *objects;
    void *values;
};

_Static_assert(sizeof(struct dense_handle) <= 11032 && sizeof(struct sparse_handle) <= 44104,
               "what lowered programs allocate");

static struct advice not_two_to_four = {
    .text = "the program declares a matrix as 2:4 sparse, but four neighbouring values contain "
            "more than two nonzero ones: the product will be wrong"};

static struct sparselt_object environment; /* the process's only handle of cuSPARSELt, as in stock
                                            */

static void start_sparselt(void) {
    (void)thread_get();
    (void)sparselt_open();
}

/* Reports a failure; returns true if the call succeeded. */
static bool succeeded(int status, const char *expression) {
    if (status != SPARSE_SUCCESS)
        sparselt_failed(expression, status);
    return status == SPARSE_SUCCESS;
}

/* Returns true if the library has allocated the handle's objects; otherwise reports that there was
 * no memory. */
static bool has_objects(const void *objects, const char *expression) {
    return succeeded(objects ? SPARSE_SUCCESS : SPARSE_NO_MEMORY, expression);
}

void impl_mgpuCreateSparseLtEnv(void) {
    start_sparselt();
    (void)succeeded(sparselt.Init(&environment), "cusparseLtInit(&cusparseLt_env)");
}

void impl_mgpuDestroySparseLtEnv(void) {
    start_sparselt();
    (void)succeeded(sparselt.Destroy(&environment), "cusparseLtDestroy(&cusparseLt_env)");
}

#define DENSE_INIT                                                                                 \
    "cusparseLtDenseDescriptorInit( &cusparseLt_env, &(dnmat_handle->mat), rows, cols, cols, "     \
    "alignment, dTp, CUSPARSE_ORDER_ROW)"
#define STRUCTURED_INIT                                                                            \
    "cusparseLtStructuredDescriptorInit( &cusparseLt_env, &(spmat_handle->mat), rows, cols, "      \
    "cols, alignment, dTp, CUSPARSE_ORDER_ROW, CUSPARSELT_SPARSITY_50_PERCENT)"

void impl_mgpuCreateCuSparseLtDnMat(void *dh, intptr_t rows, intptr_t cols, void *values,
                                    int32_t dtp, hipStream_t stream) {
    struct dense_handle *handle = dh;
    (void)stream;
    start_sparselt();
    handle->values = values;
    handle->matrix = calloc(1, sizeof *handle->matrix);
    if (has_objects(handle->matrix, DENSE_INIT))
        (void)succeeded(sparselt.DenseDescriptorInit(&environment, handle->matrix, rows, cols, cols,
                                                     VALUE_ALIGNMENT, dtp, ROWS_FOLLOW),
                        DENSE_INIT);
}

void impl_mgpuDestroyCuSparseLtDnMat(void *dh, hipStream_t stream) {
    struct dense_handle *handle = dh;
    (void)stream;
    start_sparselt();
    if (!handle->matrix)
        return;
    (void)succeeded(sparselt.MatDescriptorDestroy(handle->matrix),
                    "cusparseLtMatDescriptorDestroy(&(dnmat_handle->mat))");
    free(handle->matrix);
    handle->matrix = NULL;
}

void impl_mgpuCusparseLtCreate2To4SpMat(void *sh, intptr_t rows, intptr_t cols, void *values,
                                        int32_t dtp, hipStream_t stream) {
    struct sparse_handle *handle = sh;
    (void)stream;
    start_sparselt();
    handle->values = values;
    handle->objects = calloc(1, sizeof *handle->objects);
    if (has_objects(handle->objects, STRUCTURED_INIT))
        (void)succeeded(sparselt.StructuredDescriptorInit(&environment, &handle->objects->matrix,
                                                          rows, cols, cols, VALUE_ALIGNMENT, dtp,
                                                          ROWS_FOLLOW, HALF_IS_ZERO),
                        STRUCTURED_INIT);
}

static void drop_plan(struct sparse_objects *a) {
    if (!a->planned)
        return;
    a->planned = false;
    (void)succeeded(sparselt.MatmulPlanDestroy(&a->plan),
                    "cusparseLtMatmulPlanDestroy(&(matA->plan))");
    (void)sparselt.MatmulAlgSelectionDestroy(&a->selection);
}

/* Destroys the matrix's descriptor. Stock destroys this descriptor twice: in mgpuCuSparseLtSpMM,
 * and in this function. Since cuSPARSELt 0.8 a destroy frees the descriptor's memory, so stock's
 * second destroy ends the program. */
void impl_mgpuDestroyCuSparseLtSpMat(void *sh, hipStream_t stream) {
    struct sparse_handle *handle = sh;
    (void)stream;
    start_sparselt();
    if (!handle->objects)
        return;
    drop_plan(handle->objects);
    (void)succeeded(sparselt.MatDescriptorDestroy(&handle->objects->matrix),
                    "cusparseLtMatDescriptorDestroy(&(spmat_handle->mat))");
    free(handle->objects);
    handle->objects = NULL;
}

/* ---- the product ---- */

/* The values of cusparseComputeType in LLVM and in cuSPARSELt 0.4. */
enum { LLVM_16F = 0, LLVM_32I = 1 };

/* The values of cusparseComputeType in cuSPARSELt 0.5 and later. cuSPARSELt sums products of halves
 * as floats. */
enum { FROM_0_5 = 500, COMPUTE_32I = 0, COMPUTE_32F = 2 };

/* Converts a compute type of a lowered program to the value that the open cuSPARSELt expects. Stock
 * does not convert the type, so a product of halves fails with cuSPARSELt 0.5 and later. */
static int compute_type(int type) {
    int version = 0;
    (void)sparselt.GetVersion(&environment, &version);
    if (version < FROM_0_5)
        return type;
    return type == LLVM_16F ? COMPUTE_32F : type == LLVM_32I ? COMPUTE_32I : type;
}

/* Reports values that are not 2:4 sparse. Waits for the stream. */
static void check_pruned(const struct sparse_handle *a, hipStream_t stream) {
    int wrong = 0;
    int *on_device = impl_mgpuMemAlloc(sizeof wrong, stream, false);
    if (!on_device)
        return;
    impl_mgpuMemset32(on_device, 0, 1, stream); /* the check writes only if it finds a wrong value
                                                 */
    if (succeeded(sparselt.SpMMAPruneCheck(&environment, &a->objects->product, a->values, on_device,
                                           stream),
                  "cusparseLtSpMMAPruneCheck( &cusparseLt_env, &(matA->matmul), matA->values, "
                  "dvalid, stream)")) {
        impl_mgpuMemcpy(&wrong, on_device, sizeof wrong, stream);
        impl_mgpuStreamSynchronize(stream);
    }
    impl_mgpuMemFree(on_device, stream);
    if (wrong)
        report_once(&not_two_to_four);
}

/* Selects the algorithm, and creates its plan. */
static void plan_product(struct sparse_objects *a) {
    const int way = 0;
    drop_plan(a);
    (void)succeeded(
        sparselt.MatmulAlgSelectionInit(&environment, &a->selection, &a->product, DEFAULT_WAY),
        "cusparseLtMatmulAlgSelectionInit( &cusparseLt_env, &(matA->alg_sel), "
        "&(matA->matmul), CUSPARSELT_MATMUL_ALG_DEFAULT)");
    (void)succeeded(
        sparselt.MatmulAlgSetAttribute(&environment, &a->selection, CONFIG_ID, &way, sizeof way),
        "cusparseLtMatmulAlgSetAttribute( &cusparseLt_env, &(matA->alg_sel), "
        "CUSPARSELT_MATMUL_ALG_CONFIG_ID, &alg, sizeof(alg))");
    a->planned =
        succeeded(sparselt.MatmulPlanInit(&environment, &a->plan, &a->product, &a->selection),
                  "cusparseLtMatmulPlanInit( &cusparseLt_env, &(matA->plan), &(matA->matmul), "
                  "&(matA->alg_sel))");
}

#define PRODUCT_INIT                                                                               \
    "cusparseLtMatmulDescriptorInit( &cusparseLt_env, &(matA->matmul), modeA, modeB, "             \
    "&(matA->mat), &(matB->mat), &(matC->mat), &(matC->mat), cTp)"
#define COMPRESS                                                                                   \
    "cusparseLtSpMMACompress(&cusparseLt_env, &(matA->plan), (matA->values), dA_compressed, "      \
    "dA_compressedBuffer, stream)"

/* Writes three sizes to `bs`: the workspace's size, the compressed values' size and the compression
 * buffer's size. */
void impl_mgpuCuSparseLtSpMMBufferSize(void *bs, int32_t ma, int32_t mb, void *a, void *b, void *c,
                                       int32_t ctp, int32_t pruneFlag, hipStream_t stream) {
    const struct sparse_handle *handle = a;
    const struct dense_handle *dense_b = b, *dense_c = c;
    struct sparse_objects *const objects = handle->objects;
    size_t *bytes = bs;
    start_sparselt();
    if (!has_objects(objects, PRODUCT_INIT))
        return;
    const int status = sparselt.MatmulDescriptorInit(
        &environment, &objects->product, ma, mb, &objects->matrix, dense_b->matrix, dense_c->matrix,
        dense_c->matrix, compute_type(ctp));
    if (!succeeded(status, PRODUCT_INIT))
        return;
    plan_product(objects);
    if (pruneFlag >= PRUNE)
        (void)succeeded(sparselt.SpMMAPrune(&environment, &objects->product, handle->values,
                                            handle->values, PRUNE_STRIP, stream),
                        "cusparseLtSpMMAPrune( &cusparseLt_env, &(matA->matmul), matA->values, "
                        "matA->values, CUSPARSELT_PRUNE_SPMMA_STRIP, stream)");
    if (pruneFlag == PRUNE_AND_CHECK)
        check_pruned(handle, stream);
    (void)succeeded(
        sparselt.MatmulGetWorkspace(&environment, &objects->plan, &bytes[0]),
        "cusparseLtMatmulGetWorkspace( &cusparseLt_env, &(matA->plan), workspace_size)");
    (void)succeeded(
        sparselt.SpMMACompressedSize(&environment, &objects->plan, &bytes[1], &bytes[2]),
        "cusparseLtSpMMACompressedSize( &cusparseLt_env, &(matA->plan), compressed_size, "
        "compressed_buffer_size)");
}

/* The plan serves one product, as in stock; another product creates its own plan. */
void impl_mgpuCuSparseLtSpMM(void *a, void *b, void *c, void *workspace, void *compressed,
                             void *compressedBuffer, hipStream_t stream) {
    const struct sparse_handle *handle = a;
    const struct dense_handle *dense_b = b, *dense_c = c;
    struct sparse_objects *const objects = handle->objects;
    const void *one = sparse_one(0); /* a float, for matrices of any type */
    struct stream *known;
    start_sparselt();
    if (!has_objects(objects, COMPRESS) ||
        !stream_usable(thread_get(), stream, &known, "cusparseLtMatmul(stream)"))
        return;
    lazy_end();
    if (!objects->planned)
        plan_product(objects);
    (void)succeeded(sparselt.SpMMACompress(&environment, &objects->plan, handle->values, compressed,
                                           compressedBuffer, stream),
                    COMPRESS);
    (void)succeeded(sparselt.Matmul(&environment, &objects->plan, one, compressed, dense_b->values,
                                    one, dense_c->values, dense_c->values, workspace, &stream, 1),
                    "cusparseLtMatmul(&cusparseLt_env, &(matA->plan), alphap, dA_compressed, "
                    "matB->values, betap, matC->values, matC->values, d_workspace, nullptr, 0)");
    stream_launched(thread_get(), known);
    drop_plan(objects);
}
