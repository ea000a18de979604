/* Graphs: the driver has the same kinds of nodes, and describes them in other layouts. */
#include "cuhip.h"

static CUresult current(CUcontext *context) {
    return cuda.CtxGetCurrent(context);
}

hipError_t graph_add_kernel(hipGraphNode_t *node, hipGraph_t graph, const hipGraphNode_t *after,
                            size_t count, const hipKernelNodeParams *p) {
    const struct launch launch = {p->func,           p->gridDim, p->blockDim,
                                  p->sharedMemBytes, NULL,       p->kernelParams};
    void *translated[5];
    struct cuda_kernel_node description = {
        .function = p->func,
        .grid = {p->gridDim.x, p->gridDim.y, p->gridDim.z},
        .block = {p->blockDim.x, p->blockDim.y, p->blockDim.z},
        .shared_bytes = p->sharedMemBytes,
        .params = p->kernelParams,
    };
    const hipError_t error = launch_prepare(&launch, p->extra, translated);
    if (error)
        return error;
    description.extra = p->extra ? translated : NULL;
    return from_cuda(cuda.GraphAddKernelNode(node, graph, after, count, &description));
}

hipError_t graph_add_fill(hipGraphNode_t *node, hipGraph_t graph, const hipGraphNode_t *after,
                          size_t count, const hipMemsetParams *p) {
    const struct cuda_fill_node description = {p->dst,         p->pitch, p->value,
                                               p->elementSize, p->width, p->height};
    CUcontext context;
    CUresult result = current(&context);
    if (result == CUDA_SUCCESS)
        result = cuda.GraphAddMemsetNode(node, graph, after, count, &description, context);
    return from_cuda(result);
}

/* Memory that the driver does not know is pageable host memory. */
static struct cuda_copy_end end_of(const void *address) {
    unsigned type = 0;
    void *value = &type;
    const int attribute = CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
    const bool known =
        cuda.PointerGetAttributes(1, &attribute, &value, address) == CUDA_SUCCESS && type != 0;
    return (struct cuda_copy_end){.type = known ? CU_MEMORYTYPE_UNIFIED : CU_MEMORYTYPE_HOST,
                                  .host = known ? NULL : (void *)(uintptr_t)address,
                                  .device = known ? (void *)(uintptr_t)address : NULL};
}

hipError_t graph_add_copy(hipGraphNode_t *node, const struct graph_copy *c) {
    const struct cuda_copy_node description = {
        .from = end_of(c->from), .to = end_of(c->to), .bytes = c->bytes, .height = 1, .depth = 1};
    CUcontext context;
    CUresult result = current(&context);
    if (!c->from || !c->to || !c->bytes)
        return hipErrorInvalidValue;
    if (result == CUDA_SUCCESS)
        result = cuda.GraphAddMemcpyNode(node, c->graph, c->after, c->count, &description, context);
    return from_cuda(result);
}
