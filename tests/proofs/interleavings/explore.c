/* Searches depth first, and visits each state once. */
#include "threads.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The linker collects the scenarios, and names the begin and the end of their section. */
extern const struct scenario *const __start_scenarios[], *const __stop_scenarios[];

/* Each array has one element for each thread. The arrays are aligned and linked after the runtime.
 * The arrays therefore share no cache line with the runtime's variables, which change with the
 * state. */
static int operations[THREADS] __attribute__((aligned(64)));
static unsigned first_operations[THREADS];

/* Returns whether a thread has not yet begun. */
static bool is_new(const struct machine *machine, int thread) {
    const struct coroutine *one = &machine->threads[thread];
    return one->status == AT_OPERATION && one->left == operations[thread];
}

/* ---- states that were there ---- */

enum { FIRST_ROOM = 1 << 10 };

static struct name *visits;
static size_t visit_count, visit_room;

static struct name *visit_of(struct name name) {
    size_t slot = name.words[0] & (visit_room - 1);
    while (visits[slot].words[0] &&
           (visits[slot].words[0] != name.words[0] || visits[slot].words[1] != name.words[1]))
        slot = (slot + 1) & (visit_room - 1);
    return &visits[slot];
}

static void make_room_for_visits(size_t room) {
    struct name *old = visits;
    const size_t before = visit_room;
    visits = __real_calloc(room, sizeof *visits);
    if (!visits)
        explore_fail("no memory for so many states");
    visit_room = room;
    for (size_t i = 0; i < before; i++)
        if (old[i].words[0])
            *visit_of(old[i]) = old[i];
    __real_free(old);
}

static void forget_visits(void) {
    visit_count = visit_room = 0;
    make_room_for_visits(FIRST_ROOM);
}

/* ---- the way to a state ---- */

struct frame {
    struct saved *saved;
    int thread;      /* the next thread to run */
    unsigned choice; /* of it */
};
static struct frame *frames;
static size_t depth, frame_room;

static void print_way(void) {
    for (size_t i = 0; i < depth; i++) {
        const struct machine *before = (const void *)frames[i].saved->content;
        const struct coroutine *thread = &before->threads[frames[i].thread];
        if (thread->status == AT_OPERATION)
            printf("  thread %d begins %s\n", frames[i].thread,
                   scenario
                       ->names[is_new(before, frames[i].thread) ? first_operations[frames[i].thread]
                                                                : frames[i].choice]);
        else if (thread->status == AT_CHOICE)
            printf("  thread %d: HIP says %u\n", frames[i].thread, frames[i].choice);
        else if (i == 0 || frames[i - 1].thread != frames[i].thread)
            printf("  thread %d goes on\n", frames[i].thread);
    }
}

void explore_fail(const char *what) {
    printf("%s: %s\n", scenario->name, what);
    printf("first operations %u %u %u\n", first_operations[0], first_operations[1],
           first_operations[2]);
    exploring = false;
    print_way();
    fflush(stdout);
    _exit(1);
}

/* Returns true if the thread must begin after the preceding thread. If two threads have the same
 * first operation and the same number of operations, their order makes no difference. */
static bool waits_for_its_turn(int thread) {
    return thread && is_new(&now, thread) && is_new(&now, thread - 1) &&
           operations[thread - 1] == operations[thread] &&
           first_operations[thread - 1] == first_operations[thread];
}

static bool can_play(int thread) {
    const struct coroutine *one = &now.threads[thread];
    return !waits_for_its_turn(thread) && one->status != OVER &&
           (one->status != AT_LOCK || !now.owners[one->waits]);
}

static bool all(int status) {
    for (int thread = 0; thread < THREADS; thread++)
        if (now.threads[thread].status != OVER && now.threads[thread].status != status)
            return false;
    return true;
}

static void check(void) {
    exploring = false;
    scenario->check();
    if (all(AT_OPERATION))
        scenario->check_between();
    if (!all(OVER) && !can_play(0) && !can_play(1) && !can_play(2))
        explore_fail("all threads wait for each other");
    exploring = true;
}

/* Pushes the current state, from which the search continues. */
static void push(void) {
    struct saved *saved = threads_save();
    const struct name name = threads_name(saved);
    struct name *visit = visit_of(name);
    if (visit->words[0]) {
        __real_free(saved);
        return;
    }
    *visit = name;
    if (2 * ++visit_count > visit_room)
        make_room_for_visits(2 * visit_room);
    check();
    if (depth == frame_room) {
        frame_room = frame_room ? 2 * frame_room : 4096;
        frames = __real_realloc(frames, frame_room * sizeof *frames);
    }
    frames[depth++] = (struct frame){.saved = saved};
}

/* Advances the frame to the next choice or to the next thread. A thread's first operation is fixed
 * before the search, and is no choice. */
static void advance(struct frame *frame) {
    const struct machine *before = (const void *)frame->saved->content;
    const struct coroutine *thread = &before->threads[frame->thread];
    const bool chooses = thread->status == AT_CHOICE || thread->status == AT_OPERATION;
    if (chooses && !is_new(before, frame->thread) && ++frame->choice < thread->choices)
        return;
    frame->choice = 0;
    frame->thread++;
}

static void choose(int thread, unsigned choice) {
    now.threads[thread].chosen = is_new(&now, thread) ? first_operations[thread] : choice;
}

/* Returns the next thread that can run in the frame's state, or THREADS if none is left. */
static int next_thread(struct frame *frame) {
    for (; frame->thread < THREADS; frame->thread++) {
        threads_restore(frame->saved);
        if (can_play(frame->thread))
            break;
    }
    return frame->thread;
}

/* Visits all states that follow a state. Returns false if the exploration found shared memory that
 * was not yet counted as shared. */
static bool explore(const struct saved *first) {
    found_shared = false;
    threads_restore(first);
    forget_visits();
    push();
    while (depth && !found_shared) {
        const size_t before = depth;
        struct frame *frame = &frames[depth - 1];
        if (next_thread(frame) == THREADS) {
            __real_free(frames[--depth].saved);
            if (depth)
                advance(&frames[depth - 1]);
            continue;
        }
        choose(frame->thread, frame->choice);
        if (threads_run(frame->thread))
            push();
        if (depth == before)
            advance(&frames[depth - 1]);
    }
    while (depth)
        __real_free(frames[--depth].saved);
    return !found_shared;
}

/* Selects the next combination of the threads' first operations. Returns false if no combination is
 * left. */
static bool next_first_operations(void) {
    for (int thread = THREADS; thread-- > 0;) {
        if (!operations[thread] || ++first_operations[thread] == scenario->operations)
            continue;
        for (int after = thread + 1; after < THREADS; after++)
            first_operations[after] = operations[after] && operations[after] == operations[thread]
                                          ? first_operations[thread]
                                          : 0;
        return true;
    }
    return false;
}

/* Visits all states that follow the threads' first operations. Returns their number. */
static size_t explore_combination(const struct saved *first) {
    while (!explore(first))
        continue;
    return visit_count;
}

static void explore_all(const struct saved *first) {
    size_t states = 0;
    do
        states += explore_combination(first);
    while (next_first_operations());
    printf("%s: %zu states\n", scenario->name, states);
}

/* explore SCENARIO OPERATIONS... [FIRST...]: how many operations each thread plays, and with which
 * operation each begins. By default, the explorer tries all combinations of first operations. A
 * failure prints the numbers of the combination that failed. */
int main(int count, char **words_given) {
    for (const struct scenario *const *one = __start_scenarios; one < __stop_scenarios; one++)
        if (count > 1 && strcmp((*one)->name, words_given[1]) == 0)
            scenario = *one;
    const bool is_one_combination = count == 2 + 2 * THREADS;
    if (!scenario || (count != 2 + THREADS && !is_one_combination))
        return fputs("explore SCENARIO OPERATIONS... [FIRST...], of three threads\n", stderr), 2;
    for (int thread = 0; thread < THREADS; thread++) {
        operations[thread] = atoi(words_given[2 + thread]);
        if (is_one_combination)
            first_operations[thread] = atoi(words_given[2 + THREADS + thread]);
    }
    scenario->set_up(scenario->exclusive);
    threads_make(operations);
    const struct saved *first = threads_save();
    if (is_one_combination)
        printf("%s: %zu states\n", scenario->name, explore_combination(first));
    else
        explore_all(first);
    return 0;
}
