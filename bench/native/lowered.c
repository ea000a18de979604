/* The frame around a lowered program: runs the program's main in rounds (rounds.h), and discards
 * the program's output, because printing is not measured.
 *
 * With BENCH_GRAPH the frame builds a graph from the program's main (graph.h). The first line of
 * output is the time to build the graph; each later line is the time of a round of replays. */
#include "graph.h"
#include "rounds.h"

void lowered_main(void); /* the program's main, renamed */

void printF32(float value);
void printNewline(void);

void printF32(float value) {
    (void)value;
}
void printNewline(void) {}

/* Builds BUILDINGS graphs at the first request, and replays the last graph in rounds at later
 * requests. */
static int serve_graph(void) {
    take_answers();
    if (begin_round() == 0)
        return 0;
    open_graphs();
    lowered_main(); /* loads the modules, before a graph is built */
    wait_for_device();
    while (graph.count < BUILDINGS) {
        begin_building();
        lowered_main();
        end_building();
    }
    answer(building_time());
    answer_rounds(replay_graph);
    return 0;
}

int main(void) {
    return wants_graph() ? serve_graph() : serve(lowered_main);
}
