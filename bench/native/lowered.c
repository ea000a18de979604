/* The frame around a lowered program: runs the program's main in rounds (rounds.h), and discards
 * the program's output, because printing is not measured.
 *
 *     PROGRAM record FILE FIRST OTHER MORE    writes the library's recording after FIRST calls of
 *                                             main, and another one after MORE calls more
 *
 * With BENCH_GRAPH the frame builds a graph from the program's main (graph.h). The first line of
 * output is the time to build the graph; each later line is the time of a round of replays. */
#include "graph.h"
#include "rounds.h"

void lowered_main(void); /* the program's main, renamed */
void *mgpu_rt_record(size_t *bytes);

void printI64(int64_t value);
void printF32(float value);
void printF64(double value);
void printNewline(void);
void _mlir_ciface_printMemrefF32(void *memref);
void _mlir_ciface_printMemrefI32(void *memref);

void printI64(int64_t value) {
    (void)value;
}
void printF32(float value) {
    (void)value;
}
void printF64(double value) {
    (void)value;
}
void printNewline(void) {}
void _mlir_ciface_printMemrefF32(void *memref) {
    (void)memref;
}
void _mlir_ciface_printMemrefI32(void *memref) {
    (void)memref;
}

/* Calls main `calls` times, then writes the library's recording to a file. Returns 0 on success. */
static int record_after(const char *path, long calls) {
    size_t size = 0;
    for (long i = 0; i < calls; i++)
        lowered_main();
    wait_for_device();
    void *recording = mgpu_rt_record(&size);
    FILE *file = recording ? fopen(path, "w") : NULL;
    const bool written = file && fwrite(recording, 1, size, file) == size;
    free(recording);
    return file && fclose(file) == 0 && written ? 0 : 1;
}

/* Builds BUILDINGS graphs at the first request, and replays the last graph in rounds at later
 * requests. */
static int serve_graph(void) {
    FILE *answers = take_answers();
    long calls;
    if (scanf("%ld", &calls) != 1)
        return 0;
    open_graphs();
    lowered_main(); /* loads the modules, before a graph is built */
    wait_for_device();
    while (graph.count < BUILDINGS) {
        begin_building();
        lowered_main();
        end_building();
    }
    fprintf(answers, "%llu\n", (unsigned long long)building_time());
    fflush(answers);
    pin();
    answer_rounds(answers, replay_graph);
    return 0;
}

int main(int argc, char **argv) {
    if (wants_graph())
        return serve_graph();
    if (argc == 6 && strcmp(argv[1], "record") == 0)
        return record_after(argv[2], atol(argv[3])) || record_after(argv[4], atol(argv[5]));
    return serve(argc, argv, lowered_main);
}
