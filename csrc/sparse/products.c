/* Computes products of sparse matrices. Products run on the stream that the program passes; stock
 * always uses the null stream. */
#include "sparse.h"

enum { DEFAULT_ALGORITHM = 0 }; /* the default algorithm of every operation, in every version */

/* PRODUCT(expression, call): a call to the library on a stream. `env` is the stream's environment,
 * and `one` is 1 of the type in which the library computes. */
#define PRODUCT(expression, call)                                                                  \
    do {                                                                                           \
        struct sparse_work work;                                                                   \
        const void *const one = sparse_one(ctp);                                                   \
        if (!sparse_begin(&work, stream, expression))                                              \
            break;                                                                                 \
        void *const env = work.handle;                                                             \
        sparse_end(&work, call);                                                                   \
    } while (0)

/* ---- alpha and beta ---- */

/* cudaDataType_t; hipDataType has the same numbers. */
enum {
    R_32F = 0,
    R_16F = 2,
    C_32F = 4,
    C_16F = 6,
    R_32I = 10,
    C_32I = 11,
    R_16BF = 14,
    C_16BF = 15,
};

/* Returns the address of a constant 1 of a type, for alpha or beta.
 * For types without a case below, alpha and beta have the type double, as in stock. For complex
 * types, each constant has an imaginary part of 0. Stock passes constants without an imaginary
 * part. For integer types, stock passes a double. */
static const void *sparse_one(int type) {
    static const uint16_t half[2] = {0x3c00}, brain[2] = {0x3f80};
    static const float single[2] = {1};
    static const int32_t integer[2] = {1};
    static const double wide[2] = {1};
    switch (type) {
    case R_16F:
    case C_16F:
        return half;
    case R_16BF:
    case C_16BF:
        return brain;
    case R_32F:
    case C_32F:
        return single;
    case R_32I:
    case C_32I:
        return integer;
    default:
        return wide;
    }
}

/* ---- matrix times vector ---- */

intptr_t impl_mgpuSpMVBufferSize(int32_t ma, void *a, void *x, void *y, int32_t ctp,
                                 hipStream_t stream) {
    size_t bytes = 0;
    PRODUCT("%1$sSpMV_bufferSize( %1$s_env, modeA, alphap, matA, vecX, betap, vecY, cTp, "
            "%2$s_SPMV_ALG_DEFAULT, &bufferSize)",
            sparse.SpMV_bufferSize(env, ma, one, a, x, one, y, ctp, DEFAULT_ALGORITHM, &bytes));
    return (intptr_t)bytes;
}

void impl_mgpuSpMV(int32_t ma, void *a, void *x, void *y, int32_t ctp, void *buf,
                   hipStream_t stream) {
    PRODUCT("%1$sSpMV(%1$s_env, modeA, alphap, matA, vecX, betap, vecY, cTp, "
            "%2$s_SPMV_ALG_DEFAULT, buf)",
            sparse.SpMV(env, ma, one, a, x, one, y, ctp, DEFAULT_ALGORITHM, buf));
}

/* ---- matrix times dense matrix ---- */

intptr_t impl_mgpuSpMMBufferSize(int32_t ma, int32_t mb, void *a, void *b, void *c, int32_t ctp,
                                 hipStream_t stream) {
    size_t bytes = 0;
    PRODUCT("%1$sSpMM_bufferSize( %1$s_env, modeA, modeB, alphap, matA, matB, betap, "
            "matC, cTp, %2$s_SPMM_ALG_DEFAULT, &bufferSize)",
            sparse.SpMM_bufferSize(env, ma, mb, one, a, b, one, c, ctp, DEFAULT_ALGORITHM, &bytes));
    return (intptr_t)bytes;
}

void impl_mgpuSpMM(int32_t ma, int32_t mb, void *a, void *b, void *c, int32_t ctp, void *buf,
                   hipStream_t stream) {
    PRODUCT("%1$sSpMM(%1$s_env, modeA, modeB, alphap, matA, matB, betap, matC, cTp, "
            "%2$s_SPMM_ALG_DEFAULT, buf)",
            sparse.SpMM(env, ma, mb, one, a, b, one, c, ctp, DEFAULT_ALGORITHM, buf));
}

/* ---- dense times dense, where the sparse one has elements ---- */

intptr_t impl_mgpuSDDMMBufferSize(int32_t ma, int32_t mb, void *a, void *b, void *c, int32_t ctp,
                                  hipStream_t stream) {
    size_t bytes = 0;
    PRODUCT(
        "%1$sSDDMM_bufferSize( %1$s_env, modeA, modeB, alphap, matA, matB, betap, "
        "matC, cTp, %2$s_SDDMM_ALG_DEFAULT, &bufferSize)",
        sparse.SDDMM_bufferSize(env, ma, mb, one, a, b, one, c, ctp, DEFAULT_ALGORITHM, &bytes));
    return (intptr_t)bytes;
}

void impl_mgpuSDDMM(int32_t ma, int32_t mb, void *a, void *b, void *c, int32_t ctp, void *buf,
                    hipStream_t stream) {
    PRODUCT("%1$sSDDMM(%1$s_env, modeA, modeB, alphap, matA, matB, betap, matC, cTp, "
            "%2$s_SDDMM_ALG_DEFAULT, buf)",
            sparse.SDDMM(env, ma, mb, one, a, b, one, c, ctp, DEFAULT_ALGORITHM, buf));
}

/* ---- matrix times matrix ---- */

/* Stock passes 1 as beta. With a beta of 1, hipSPARSE 5.3 computes wrong values. A beta of 0 gives
 * the right result, because C is empty at first. */
static const void *product_beta(const void *one) {
    static const double zeros[2];
    return host->cuda_present() ? one : zeros;
}

intptr_t impl_mgpuSpGEMMWorkEstimation(void *s, int32_t ma, int32_t mb, void *a, void *b, void *c,
                                       int32_t ctp, intptr_t bs, void *buf, hipStream_t stream) {
    size_t bytes = (size_t)bs;
    PRODUCT("%1$sSpGEMM_workEstimation( %1$s_env, modeA, modeB, alphap, matA, matB, "
            "betap, matC, cTp, %2$s_SPGEMM_DEFAULT, spgemmDesc, &newBufferSize, buf)",
            sparse.SpGEMM_workEstimation(env, ma, mb, one, a, b, product_beta(one), c, ctp,
                                         DEFAULT_ALGORITHM, s, &bytes, buf));
    return (intptr_t)bytes;
}

intptr_t impl_mgpuSpGEMMCompute(void *s, int32_t ma, int32_t mb, void *a, void *b, void *c,
                                int32_t ctp, intptr_t bs, void *buf, hipStream_t stream) {
    size_t bytes = (size_t)bs;
    PRODUCT("%1$sSpGEMM_compute( %1$s_env, modeA, modeB, alphap, matA, matB, betap, matC, "
            "cTp, %2$s_SPGEMM_DEFAULT, spgemmDesc, &newBufferSize2, buf2)",
            sparse.SpGEMM_compute(env, ma, mb, one, a, b, product_beta(one), c, ctp,
                                  DEFAULT_ALGORITHM, s, &bytes, buf));
    return (intptr_t)bytes;
}

void impl_mgpuSpGEMMCopy(void *s, int32_t ma, int32_t mb, void *a, void *b, void *c, int32_t ctp,
                         hipStream_t stream) {
    PRODUCT("%1$sSpGEMM_copy(%1$s_env, modeA, modeB, alphap, matA, matB, betap, matC, "
            "cTp, %2$s_SPGEMM_DEFAULT, spgemmDesc)",
            sparse.SpGEMM_copy(env, ma, mb, one, a, b, product_beta(one), c, ctp, DEFAULT_ALGORITHM,
                               s));
}
