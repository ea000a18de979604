/* Ways to end a program, by name. */
#ifndef TESTS_ENDS_H
#define TESTS_ENDS_H

#include "program.h"

/* Ends the program; returns if the name is not one of a way, for a main that returns. */
static inline void end_by(const char *how, char **argv) {
    static const struct {
        const char *name;
        int number;
    } signals[] = {
        {"SIGINT", SIGINT}, {"SIGKILL", SIGKILL}, {"SIGSEGV", SIGSEGV}, {"SIGTERM", SIGTERM}};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        if (strcmp(how, signals[i].name) == 0) {
            signal(signals[i].number, SIG_DFL); /* a job in the background ignores SIGINT */
            raise(signals[i].number);
        }
    if (strcmp(how, "exit") == 0)
        exit(0);
    if (strcmp(how, "exit 3") == 0)
        exit(3);
    if (strcmp(how, "quick_exit") == 0)
        quick_exit(0);
    if (strcmp(how, "quick_exit 3") == 0)
        quick_exit(3);
    if (strcmp(how, "_exit") == 0)
        _exit(0);
    if (strcmp(how, "abort") == 0)
        abort();
    if (strcmp(how, "pthread_exit") == 0)
        pthread_exit(NULL);
    if (strcmp(how, "exec") == 0)
        execl(argv[0], argv[0], "success", (char *)NULL);
}

#endif
