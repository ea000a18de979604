/* The frame around a lowered program: runs the program's main in rounds (rounds.h), and discards
 * the program's output, because printing is not measured.
 *
 *     PROGRAM statistics FIRST MORE    the library's statistics after so many calls of main, and
 *                                      after so many more: a list of two
 *
 * With BENCH_GRAPH the frame builds a graph from the program's main (graph.h). The first line of
 * output is the time to build the graph; each later line is the time of a round of replays. */
#include "graph.h"
#include "rounds.h"

void lowered_main(void); /* the program's main, renamed */
char *mgpu_rt_stats_json(void);

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

/* Calls main `calls` times, then prints the text `before` and the library's statistics. */
static void print_after(FILE *answers, const char *before, long calls) {
    for (long i = 0; i < calls; i++)
        lowered_main();
    wait_for_device();
    char *said = mgpu_rt_stats_json();
    fprintf(answers, "%s%s", before, said ? said : "null");
    free(said);
}

static int print_statistics(const char *first, const char *more) {
    FILE *answers = take_answers();
    print_after(answers, "[", atol(first));
    print_after(answers, ", ", atol(more));
    fprintf(answers, "]\n");
    return fclose(answers);
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
    if (argc == 4 && strcmp(argv[1], "statistics") == 0)
        return print_statistics(argv[2], argv[3]);
    return serve(argc, argv, lowered_main);
}
