/* Blocks of graphs: a graph owns a block until the graph is destroyed, even if the program frees
 * the block. */
#include "memory/blocks.h"
#include "memory/eviction.h"

bool block_give_graph(void *address) {
    struct block *block = block_find(address);
    if (!block_change(block, BLOCK_LIVE, BLOCK_GRAPH))
        return false;
    block->graph = 0;
    return true;
}

bool block_serve_graph(void *address, uint64_t bytes) {
    struct block *block = block_find(address);
    if (!PROOF(kept_block_serves_its_graph, block_change(block, BLOCK_GRAPH_OWNED, BLOCK_GRAPH)))
        return false;
    block_ask_again(block, bytes);
    return true;
}

bool block_take_from_graph(void *address) {
    struct block *block = block_find(address);
    if (block_change(block, BLOCK_GRAPH, BLOCK_LIVE))
        return true;
    if (!block_change(block, BLOCK_GRAPH_OWNED, BLOCK_IDLE))
        return false;
    block_unask(block);
    block_put_done(block);
    return true;
}

/* Takes a block of this size that the graph owns, or returns NULL. The search visits all blocks,
 * but a program builds a graph only once. */
static struct block *take_graph_owned(size_t size, int device, const struct stream *stream,
                                      uint64_t graph) {
    for (struct block *block = block_first(); block; block = handle_next(block)) {
        int owned = BLOCK_GRAPH_OWNED;
        if (block_size(block) == size && block_device(block) == device &&
            PROOF(block_is_of_this_capture, block->graph == graph) &&
            block->fence.stream == stream && cas_acq_rel(&block->state, &owned, BLOCK_GRAPH))
            return block;
    }
    return NULL;
}

void *block_alloc_captured(uint64_t bytes, struct stream *stream, uint64_t graph,
                           hipError_t *error) {
    const size_t size = block_class(bytes);
    const int device = stream->device;
    void *address = NULL;
    *error = hipSuccess;
    (void)device_kept(device);
    struct block *block = graph ? take_graph_owned(size, device, stream, graph) : NULL;
    if (block) {
        block_ask_again(block, bytes);
        call_tell(CALL_HIT);
        return block_address(block);
    }
    *error = hip.Malloc(&address, size);
    if (*error != hipSuccess)
        return NULL;
    stats_miss(CACHE_MEMORY);
    block = block_insert(address, size, bytes, device,
                         PROOF_VALUE(captured_block_is_its_graphs, BLOCK_GRAPH, BLOCK_LIVE));
    if (!block)
        return address;
    block->graph = graph;
    eviction_enqueue(block);
    PROOF_STEP(captured_block_has_a_number, block_ask_number(block));
    return address;
}
