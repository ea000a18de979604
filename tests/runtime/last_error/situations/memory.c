/* mgpuMemAlloc, mgpuMemFree. */
#include "../setting.h"

SITUATION(alloc_miss) {
    void *block;
    CALL(block = mgpuMemAlloc(12345, NULL, false));
    give_back(block);
}

SITUATION(alloc_hit) {
    void *block;
    give_back(block_of(KIB));
    CALL(block = mgpuMemAlloc(KIB, NULL, false));
    give_back(block);
}

SITUATION(alloc_hit_on_a_stream) {
    hipStream_t stream = stream_new();
    void *block = mgpuMemAlloc(KIB, stream, false);
    mgpuMemFree(block, stream);
    CALL(block = mgpuMemAlloc(KIB, stream, false));
    mgpuMemFree(block, stream);
    mgpuStreamDestroy(stream);
}

SITUATION(alloc_on_a_destroyed_stream) {
    hipStream_t stream = stream_destroyed();
    void *block;
    CALL(block = mgpuMemAlloc(2 * KIB, stream, false));
    give_back(block);
}

SITUATION(alloc_nothing) {
    CALL(mgpuMemAlloc(0, NULL, false));
}

SITUATION(alloc_too_much) {
    CALL(mgpuMemAlloc((uint64_t)1 << 50, NULL, false));
}

SITUATION(alloc_absurd) {
    CALL(mgpuMemAlloc(UINT64_MAX, NULL, false));
}

SITUATION(alloc_almost_absurd) {
    CALL(mgpuMemAlloc(UINT64_MAX - 300, NULL, false));
}

SITUATION(alloc_shared) {
    void *block;
    CALL(block = mgpuMemAlloc(KIB, NULL, true));
    give_back(block);
}

SITUATION(alloc_shared_too_much) {
    CALL(mgpuMemAlloc((uint64_t)1 << 50, NULL, true));
}

SITUATION(alloc_shared_nothing) {
    CALL(mgpuMemAlloc(0, NULL, true));
}

SITUATION(free_on_a_stream) {
    hipStream_t stream = stream_new();
    void *block = mgpuMemAlloc(KIB, stream, false);
    CALL(mgpuMemFree(block, stream));
    mgpuStreamDestroy(stream);
}

SITUATION(free_without_a_stream) {
    void *block = block_of(KIB);
    CALL(mgpuMemFree(block, NULL));
}

SITUATION(free_on_a_destroyed_stream) {
    void *block = block_of(KIB);
    hipStream_t stream = stream_destroyed();
    CALL(mgpuMemFree(block, stream));
}

SITUATION(free_on_an_unknown_stream) {
    void *block = block_of(KIB);
    CALL(mgpuMemFree(block, UNKNOWN(hipStream_t)));
}

SITUATION(free_null) {
    CALL(mgpuMemFree(NULL, NULL));
}

SITUATION(free_unknown) {
    CALL(mgpuMemFree(nothing, NULL));
}

SITUATION(free_twice) {
    void *block = block_of(KIB);
    give_back(block);
    CALL(mgpuMemFree(block, NULL));
}

SITUATION(free_twice_on_a_stream) {
    hipStream_t stream = stream_new();
    void *block = mgpuMemAlloc(KIB, stream, false);
    mgpuMemFree(block, stream);
    CALL(mgpuMemFree(block, stream));
    mgpuStreamDestroy(stream);
}

SITUATION(free_inside_a_block) {
    char *block = block_of(KIB);
    CALL(mgpuMemFree(block + 64, NULL));
}

SITUATION(free_inside_a_freed_block) {
    char *block = block_of(KIB);
    give_back(block);
    CALL(mgpuMemFree(block + 64, NULL));
}

SITUATION(free_shared) {
    void *block = mgpuMemAlloc(KIB, NULL, true);
    CALL(mgpuMemFree(block, NULL));
}

SITUATION(free_of_the_programs_own) {
    void *block;
    HIP(hipMalloc, void **, size_t)(&block, KIB);
    CALL(mgpuMemFree(block, NULL));
}

SITUATION(free_after_hips) {
    void *block = block_of(KIB);
    HIP(hipFree, void *)(block);
    CALL(mgpuMemFree(block, NULL));
}
