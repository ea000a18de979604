#include "manager/adopter.h"
#include "proof.h"

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The namespace of processes that the kernel begins with has this number in every Linux. */
static const char machines_namespace[] = "pid:[4026531836]";

static bool is_link_to(const char *path, const char *wanted) {
    char target[64];
    const ssize_t length = readlink(path, target, sizeof target - 1);
    target[length > 0 ? length : 0] = '\0';
    return strcmp(target, wanted) == 0;
}

/* Else /proc tells of another namespace's process 1. */
static bool is_own_proc(void) {
    char number[24];
    snprintf(number, sizeof number, "%ld", (long)getpid());
    return is_link_to("/proc/self", number);
}

/* The signals of process 1 as /proc has them, as bits. */
struct first {
    uint64_t ignored, blocked;
    bool sleeps;
};

static struct first read_first(void) {
    char line[256];
    struct first first = {0};
    FILE *status = fopen("/proc/1/status", "re");
    while (status && fgets(line, sizeof line, status)) {
        if (strncmp(line, "State:\tS", 8) == 0)
            first.sleeps = true;
        else if (strncmp(line, "SigBlk:", 7) == 0)
            first.blocked = strtoull(line + 7, NULL, 16);
        else if (strncmp(line, "SigIgn:", 7) == 0)
            first.ignored = strtoull(line + 7, NULL, 16);
    }
    if (status)
        fclose(status);
    return first;
}

static bool has(uint64_t signals, int number) {
    return signals >> (number - 1) & 1;
}

/* An init sleeps until a signal comes, which it takes by sigwait or a descriptor: SIGTERM too.
 * system() does not block that while it waits for its child, and a process that makes a child does
 * so for a moment only. */
static bool is_init(const struct first *first) {
    return first->sleeps && has(first->blocked, SIGCHLD) &&
           PROOF(init_waits_for_signals, has(first->blocked, SIGTERM));
}

bool adopter_waits(void) {
    if (is_link_to("/proc/self/ns/pid", machines_namespace))
        return true;
    if (!is_own_proc())
        return false;
    const struct first first = read_first();
    return has(first.ignored, SIGCHLD) || is_init(&first);
}
