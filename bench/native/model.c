/* The frame around a lowered model (bench/models). The frame fills the model's buffers with
 * numbers, and makes forward passes on request from the other end of a pipe (rounds.h). The frame
 * ends the process if a round's output differs from NumPy's output, which EXPECTED_FILE contains as
 * floats.
 *
 * With BENCH_GRAPH the frame builds a graph from a forward pass (graph.h). The first line of output
 * is the time to build the graph; each later line is the time of a round of replays. */
#include "graph.h"
#include "rounds.h"

#include <math.h>

static const double TOLERANCE =
    1e-3; /* relative to the largest number; kernels may add in another order than NumPy */

void lowered_main(void); /* the program's main, renamed */

/* A contiguous memref of any rank, as MLIR passes it. */
struct unranked_memref {
    int64_t rank;
    struct {
        float *allocated, *aligned;
        int64_t offset;
        int64_t sizes_then_strides[];
    } *descriptor;
};

int64_t _mlir_ciface_next_round(struct unranked_memref *output);
void _mlir_ciface_fill(struct unranked_memref *memref, int64_t seed, float scale);

__asm__(".section .rodata\n.balign 8\nexpected:\n.incbin \"" EXPECTED_FILE
        "\"\nexpected_end:\n.previous\n");
extern const float expected[] __attribute__((visibility("hidden")));
extern const float expected_end[] __attribute__((visibility("hidden")));

static size_t count_of(const struct unranked_memref *memref) {
    size_t count = 1;
    for (int64_t i = 0; i < memref->rank; i++)
        count *= (size_t)memref->descriptor->sizes_then_strides[i];
    return count;
}

/* Fills the memref with the numbers of bench/models/numbers.py. */
void _mlir_ciface_fill(struct unranked_memref *memref, int64_t seed, float scale) {
    const size_t count = count_of(memref);
    for (size_t i = 0; i < count; i++) {
        uint32_t bits = (uint32_t)(i * 2654435761u + (uint64_t)seed * 2246822507u);
        bits ^= bits >> 15;
        bits *= 739982445u;
        bits ^= bits >> 12;
        bits *= 695872825u;
        bits ^= bits >> 15;
        const float unit = (float)(bits >> 8) / (float)(1 << 23) - 1.0f;
        memref->descriptor->aligned[i] = unit * scale;
    }
}

static void check(const float *output, size_t count) {
    double largest = 0;
    if (count != (size_t)(expected_end - expected))
        fail("wrong output", "not as many numbers as NumPy's");
    for (size_t i = 0; i < count; i++)
        largest = fmax(largest, fabs((double)expected[i]));
    for (size_t i = 0; i < count; i++) {
        char words[96];
        if (fabs((double)output[i] - (double)expected[i]) <= TOLERANCE * largest)
            continue;
        snprintf(words, sizeof words, "%g in place of %g at %zu of %zu", (double)output[i],
                 (double)expected[i], i, count);
        fail("wrong output", words);
    }
}

static void erase(float *output, size_t count) {
    for (size_t i = 0; i < count; i++)
        output[i] = NAN; /* an element that the round does not write counts as wrong */
}

/* Answers a round whose output is right. */
static void check_and_answer(const float *output, size_t count) {
    const uint64_t taken = end_round();
    check(output, count);
    answer(taken);
}

/* Returns 1 for the first pass, which loads modules and allocates memory without a graph. Then
 * returns 1 for each pass that becomes a graph. Finally replays the last graph in rounds, and
 * returns 0, so that main ends. */
static long next_of_graph(float *output, size_t count) {
    static int passes;
    long calls;
    if (passes == 0)
        open_graphs();
    else if (passes > 1)
        end_building();
    if (passes++ == 0)
        return begin_round() > 0;
    wait_for_device();
    if (graph.count < BUILDINGS) {
        begin_building();
        return 1;
    }
    answer(building_time());
    for (erase(output, count); (calls = begin_round()) > 0; erase(output, count)) {
        for (long i = 0; i < calls; i++)
            replay_graph();
        check_and_answer(output, count);
    }
    return 0;
}

int64_t _mlir_ciface_next_round(struct unranked_memref *output) {
    float *numbers = output->descriptor->aligned;
    const size_t count = count_of(output);
    if (wants_graph())
        return next_of_graph(numbers, count);
    if (rounds.count > 0)
        check_and_answer(numbers, count);
    erase(numbers, count);
    return begin_round();
}

int main(void) {
    take_answers();
    lowered_main();
    return 0;
}
