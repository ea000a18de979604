/* Disassembles an instruction with LLVM's tool, if the tool is installed. Only messages about
 * faults contain disassembly, so a child process is fast enough. */
#include "device.h"

#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const tools[] = {"llvm-mc-22", "llvm-mc", "llvm-mc-19"};

static pid_t start(const char *tool, const char *mcpu, int input, int output) {
    char cpu[32], path[512];
    snprintf(cpu, sizeof cpu, "--mcpu=%s", mcpu);
    const char *search = getenv("PATH");
    snprintf(path, sizeof path, "PATH=%s", search ? search : "/usr/bin:/bin");
    char *arguments[] = {(char *)tool, "--disassemble", "--triple=amdgcn-amd-amdhsa", cpu, NULL};
    /* The tool gets a minimal environment, so that it does not load libraries that are preloaded
     * into this process. */
    char *environment[] = {path, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    pid_t child = -1;
    if (posix_spawnp(&child, tool, &actions, NULL, arguments, environment) != 0)
        child = -1;
    posix_spawn_file_actions_destroy(&actions);
    return child;
}

static size_t read_all(int file, char *text, size_t size) {
    size_t used = 0;
    for (ssize_t got; used < size && (got = read(file, text + used, size - used)) > 0;)
        used += (size_t)got;
    return used;
}

/* Runs one tool on a line of bytes, and returns the length of the tool's output. */
static size_t run(const char *tool, const char *mcpu, const char *bytes, char *output,
                  size_t size) {
    int to_tool[2], from_tool[2];
    if (pipe2(to_tool, O_CLOEXEC) != 0)
        return 0;
    if (pipe2(from_tool, O_CLOEXEC) != 0) {
        close(to_tool[0]), close(to_tool[1]);
        return 0;
    }
    pid_t child = start(tool, mcpu, to_tool[0], from_tool[1]);
    close(to_tool[0]), close(from_tool[1]);
    /* The line fits into the pipe, so the write cannot block. If no child was started, nothing is
     * written, because a write to a pipe without a reader raises SIGPIPE. */
    bool sent = child > 0 && write(to_tool[1], bytes, strlen(bytes)) > 0;
    close(to_tool[1]);
    size_t length = sent ? read_all(from_tool[0], output, size - 1) : 0;
    close(from_tool[0]);
    output[length] = '\0';
    if (child > 0)
        waitpid(child, NULL, 0);
    return length;
}

/* Copies the first line that is neither empty nor a directive, and replaces tabs by spaces. */
static bool first_instruction(const char *output, char *text, size_t size) {
    for (const char *line = output; *line; line += *line == '\n') {
        line += strspn(line, " \t");
        size_t length = strcspn(line, "\n"), used = 0;
        for (size_t i = 0; i < length && used + 1 < size && *line != '.'; i++)
            text[used++] = line[i] == '\t' ? ' ' : line[i];
        text[used] = '\0';
        if (used > 0)
            return true;
        line += length;
    }
    return false;
}

void softgpu_disassemble(const struct softgpu_target *target, const uint32_t *words, unsigned count,
                         char *text, size_t size) {
    char bytes[128], output[2048];
    size_t used = 0;
    for (unsigned i = 0; i < 4 * count && used + 8 < sizeof bytes; i++)
        used += (size_t)snprintf(bytes + used, sizeof bytes - used, "0x%02x ",
                                 (words[i / 4] >> (8 * (i % 4))) & 0xff);
    bytes[used++] = '\n';
    bytes[used] = '\0';
    *text = '\0';
    for (size_t i = 0; i < sizeof tools / sizeof *tools; i++)
        if (run(tools[i], target->name, bytes, output, sizeof output) > 0 &&
            first_instruction(output, text, size))
            return;
}
