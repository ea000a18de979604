// A kernel in HIP. Its object file registers the kernel with HIP and defines a symbol `scale` on
// the host that stands for it: with that address anybody launches it (host_symbol.c).
//
//     clang++ -x hip --offload-arch=gfx90a -c kernel.hip -o kernel.o
//
// With ROCm's headers instead of the next five lines: #include <hip/hip_runtime.h>.
#define __global__ __attribute__((global))
typedef struct ihipStream_t *hipStream_t;
struct dim3 { unsigned x, y, z; };
extern "C" int hipLaunchKernel(const void *kernel, dim3 grid, dim3 block, void **arguments,
                               unsigned long shared, hipStream_t stream);

extern "C" __global__ void scale(float *numbers, float factor, int count) {
    const int i = __builtin_amdgcn_workgroup_id_x() * 64 + __builtin_amdgcn_workitem_id_x();
    if (i < count)
        numbers[i] *= factor;
}
