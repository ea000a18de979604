/* Blocks of graphs: a graph owns a block until the graph is destroyed, even if the program frees
 * the block. */
#include "memory/blocks.h"
#include "memory/eviction.h"

bool block_give_graph(void *address, uint64_t graph) {
    struct block *block = block_find(address);
    if (block)
        store_relaxed(&block->graph, graph); /* the caller holds the block */
    return block_change(block, BLOCK_LIVE, BLOCK_GRAPH);
}

/* No pending work uses the block. */
static bool take_from_graph(struct block *block) {
    const int device = block->device;
    if (block_change(block, BLOCK_GRAPH, BLOCK_LIVE))
        return true;
    if (!block_change(block, BLOCK_GRAPH_OWNED, BLOCK_IDLE))
        return false;
    block_unask(block);
    block_clear_fences(block);
    block_pool_put(block); /* from here on another thread may take the block */
    eviction_after_free(block, device);
    return true;
}

bool block_take_from_graph(uint64_t graph) {
    bool taken = false;
    for (struct block *block = block_first(); block; block = handle_next(block))
        if (load_relaxed(&block->graph) == graph)
            taken |= take_from_graph(block);
    return taken;
}

/* The search visits all blocks: 20 µs beside 100 of them, 16 ms beside 100,000. A graph and a
 * capture are built rarely, so they need no lists of their own. */
void *block_serve_graph(uint64_t bytes, int device, const struct stream *stream, uint64_t graph) {
    const size_t least = block_round(bytes), most = block_class(bytes);
    for (struct block *block = block_first(); block; block = handle_next(block)) {
        const size_t size = block_size(block);
        if (size < least || size > most || block_device(block) != device ||
            !PROOF(block_is_of_this_capture, load_relaxed(&block->graph) == graph) ||
            block->fence.stream != stream ||
            !PROOF(kept_block_serves_its_graph,
                   block_change(block, BLOCK_GRAPH_OWNED, BLOCK_GRAPH)))
            continue;
        block_unask(block);
        block_ask(block, bytes);
        return block_address(block);
    }
    return NULL;
}

void *block_alloc_captured(uint64_t bytes, struct stream *stream, uint64_t graph,
                           hipError_t *error) {
    const size_t size = block_round(bytes); /* only the graph uses the block */
    const int device = stream->device;
    *error = hipSuccess;
    (void)device_kept(device);
    void *address = graph ? block_serve_graph(bytes, device, stream, graph) : NULL;
    if (address) {
        call_tell(CALL_HIT);
        return address;
    }
    *error = hip.Malloc(&address, size);
    if (*error != hipSuccess)
        return NULL;
    stats_miss(CACHE_MEMORY);
    struct block *block =
        block_insert(address, size, bytes, device,
                     PROOF_VALUE(captured_block_is_its_graphs, BLOCK_GRAPH, BLOCK_LIVE));
    if (!block)
        return address;
    store_relaxed(&block->graph, graph);
    PROOF_STEP(captured_block_has_a_number, block_ask_number(block));
    return address;
}
