/* mgpuMemcpy, mgpuMemset*. */
#include "../setting.h"

SITUATION(copy_up) {
    hipStream_t stream = stream_new();
    void *block = mgpuMemAlloc(KIB, stream, false);
    CALL(mgpuMemcpy(block, host, KIB, stream));
    mgpuStreamSynchronize(stream);
    mgpuMemFree(block, stream);
    mgpuStreamDestroy(stream);
}

SITUATION(copy_up_after_work) {
    hipStream_t stream = stream_new();
    void *block = mgpuMemAlloc(KIB, stream, false);
    launch(kernel(), 1, 1, 0, stream);
    CALL(mgpuMemcpy(block, host, KIB, stream));
    mgpuStreamSynchronize(stream);
    mgpuMemFree(block, stream);
    mgpuStreamDestroy(stream);
}

SITUATION(copy_down) {
    hipStream_t stream = stream_new();
    void *block = mgpuMemAlloc(KIB, stream, false);
    CALL(mgpuMemcpy(host, block, KIB, stream));
    mgpuStreamSynchronize(stream);
    mgpuMemFree(block, stream);
    mgpuStreamDestroy(stream);
}

SITUATION(copy_between_blocks) {
    hipStream_t stream = stream_new();
    void *from = mgpuMemAlloc(KIB, stream, false), *to = mgpuMemAlloc(KIB, stream, false);
    CALL(mgpuMemcpy(to, from, KIB, stream));
    mgpuMemFree(from, stream);
    mgpuMemFree(to, stream);
    mgpuStreamDestroy(stream);
}

SITUATION(copy_without_a_stream) {
    void *block = block_of(KIB);
    CALL(mgpuMemcpy(block, host, KIB, NULL));
    mgpuStreamSynchronize(NULL);
    give_back(block);
}

SITUATION(copy_from_pinned_memory) {
    hipStream_t stream = stream_new();
    void *pinned, *block = mgpuMemAlloc(KIB, stream, false);
    HIP(hipHostMalloc, void **, size_t, unsigned)(&pinned, KIB, 0);
    CALL(mgpuMemcpy(block, pinned, KIB, stream));
    mgpuStreamSynchronize(stream);
    mgpuMemFree(block, stream);
    mgpuStreamDestroy(stream);
}

SITUATION(copy_nothing) {
    void *block = block_of(KIB);
    CALL(mgpuMemcpy(block, host, 0, NULL));
    give_back(block);
}

SITUATION(copy_null_and_nothing) {
    CALL(mgpuMemcpy(NULL, NULL, 0, NULL));
}

SITUATION(copy_to_null) {
    hipStream_t stream = stream_new();
    void *block = mgpuMemAlloc(KIB, stream, false);
    CALL(mgpuMemcpy(NULL, block, KIB, stream));
    mgpuMemFree(block, stream);
    mgpuStreamDestroy(stream);
}

SITUATION(copy_beyond_a_block) {
    hipStream_t stream = stream_new();
    void *block = mgpuMemAlloc(KIB, stream, false);
    CALL(mgpuMemcpy(block, host, sizeof host, stream));
    mgpuMemFree(block, stream);
    mgpuStreamDestroy(stream);
}

SITUATION(copy_on_a_destroyed_stream) {
    void *block = block_of(KIB);
    hipStream_t stream = stream_destroyed();
    CALL(mgpuMemcpy(block, host, KIB, stream));
    give_back(block);
}

SITUATION(copy_nothing_on_a_destroyed_stream) {
    hipStream_t stream = stream_destroyed();
    CALL(mgpuMemcpy(NULL, NULL, 0, stream));
}

SITUATION(copy_on_an_unknown_stream) {
    void *block = block_of(KIB);
    CALL(mgpuMemcpy(block, host, KIB, UNKNOWN(hipStream_t)));
    give_back(block);
}

SITUATION(fill32) {
    void *block = block_of(KIB);
    CALL(mgpuMemset32(block, 1, KIB / 4, NULL));
    give_back(block);
}

SITUATION(fill32_nothing) {
    void *block = block_of(KIB);
    CALL(mgpuMemset32(block, 1, 0, NULL));
    give_back(block);
}

SITUATION(fill32_null) {
    CALL(mgpuMemset32(NULL, 1, 4, NULL));
}

SITUATION(fill32_of_nobodys_memory) {
    CALL(mgpuMemset32((void *)0x1000, 1, 4, NULL));
}

SITUATION(fill32_on_a_destroyed_stream) {
    void *block = block_of(KIB);
    hipStream_t stream = stream_destroyed();
    CALL(mgpuMemset32(block, 1, KIB / 4, stream));
    give_back(block);
}

SITUATION(fill16) {
    hipStream_t stream = stream_new();
    void *block = mgpuMemAlloc(KIB, stream, false);
    CALL(mgpuMemset16(block, 1, KIB / 2, stream));
    mgpuStreamSynchronize(stream);
    mgpuMemFree(block, stream);
    mgpuStreamDestroy(stream);
}

SITUATION(fill16_null) {
    CALL(mgpuMemset16(NULL, 1, 4, NULL));
}

SITUATION(fill16_on_a_destroyed_stream) {
    void *block = block_of(KIB);
    hipStream_t stream = stream_destroyed();
    CALL(mgpuMemset16(block, 1, KIB / 2, stream));
    give_back(block);
}
