/* Other code calls HIP in a signal handler that interrupts the library.
 *
 *     interrupted CASE FIRST BY    at the instructions FIRST, FIRST + BY, ... of the library
 *
 * CASE is calls, or exit: the handlers at exit. With MGPU_RT_EXCLUSIVE=on, the library keeps memory
 * registered, and postpones a wait. A child process for each instruction makes the calls. After the
 * interrupted calls other code calls HIP once more. Nothing may then be left of what the library
 * kept. The processor's trap flag sends a SIGTRAP after each instruction. HIP's own instructions do
 * not count, because HIP's locks are not the library's. Prints the number of children. */
#include "program.h"

#include <link.h>
#include <ucontext.h>

int hipMalloc(void **memory, size_t bytes);

enum { BYTES = 4096, PATIENCE = 60, NO_SUCH_STEP = 3, LEFT = 4 };

static uintptr_t code, code_end; /* the library's */

static unsigned long chosen, steps;
static volatile bool stepping;
static char *memory;
static void *stream, *block;

static void call_hip(void) {
    void *made;
    hipMalloc(&made, 64);
}

static void on_trap(int number, siginfo_t *info, void *context) {
    const uintptr_t at = (uintptr_t)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
    (void)number, (void)info;
    if (stepping && at - code < code_end - code && steps++ == chosen)
        call_hip();
}

static int find_library(struct dl_phdr_info *found, size_t size, void *data) {
    (void)size, (void)data;
    for (int i = 0; i < found->dlpi_phnum && strstr(found->dlpi_name, "libmlir_rocm"); i++)
        if (found->dlpi_phdr[i].p_type == PT_LOAD && found->dlpi_phdr[i].p_flags & PF_X) {
            code = found->dlpi_addr + found->dlpi_phdr[i].p_vaddr;
            code_end = code + found->dlpi_phdr[i].p_memsz;
        }
    return 0;
}

static void set_trap_flag(bool on) {
    stepping = on;
    if (on)
        __asm__ volatile("subq $128, %%rsp; pushfq; orq $0x100, (%%rsp); popfq; addq $128, %%rsp" ::
                             : "memory", "cc");
    else
        __asm__ volatile(
            "subq $128, %%rsp; pushfq; andq $~0x100, (%%rsp); popfq; addq $128, %%rsp" ::
                : "memory", "cc");
}

static bool at_exit;

/* Runs after the library's handlers at exit, because the program registered it before. */
static void end(void) {
    set_trap_flag(false);
    if (steps <= chosen)
        _exit(NO_SUCH_STEP);
    if (at_exit)
        _exit(0); /* HIP's handlers at exit have run */
    call_hip();
    const int registered = (int)hipstub_live("registrations"),
              pending = (int)hipstub_pending(stream);
    if (registered || pending)
        fprintf(stderr, "%lu: %d registrations, %d pending\n", chosen, registered, pending);
    _exit(registered || pending ? LEFT : 0);
}

static void keep_memory(void) {
    mgpuMemHostRegister(memory, BYTES);
    mgpuMemHostUnregister(memory);
}

static void make_calls(void) {
    keep_memory();
    mgpuMemset32(block, 7, BYTES / 4, stream);
    mgpuStreamSynchronize(stream);
    mgpuMemcpy(block, memory, BYTES, stream); /* the library gives the memory back */
    keep_memory();
    mgpu_rt_empty_cache();
    keep_memory();
    mgpuMemset32(block, 7, BYTES / 4, stream);
    mgpuStreamSynchronize(stream);
}

static void run_child(void) {
    alarm(PATIENCE);
    atexit(end);
    stream = mgpuStreamCreate();
    block = mgpuMemAlloc(BYTES, stream, false);
    memory = aligned_alloc(BYTES, BYTES);
    memset(memory, 1, BYTES);
    make_calls(); /* starts the library's threads */
    set_trap_flag(true);
    if (!at_exit)
        make_calls();
    if (!at_exit)
        end();
    exit(0);
}

int main(int count, char **words) {
    enum { MOST = 1000, AT_ONCE = 40 };
    const unsigned long by = count > 3 ? strtoul(words[3], NULL, 10) : 1;
    const struct sigaction trap = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};
    int children = 0, ended = 0, status = 0, running = 0;
    at_exit = strcmp(words[1], "exit") == 0;
    dl_iterate_phdr(find_library, NULL);
    sigaction(SIGTRAP, &trap, NULL);
    chosen = strtoul(words[2], NULL, 10);
    for (bool more = true; more || running;) {
        while (more && running < AT_ONCE) {
            if (fork() == 0)
                run_child();
            running++, children++, chosen += by;
            more = children < MOST;
        }
        wait(&status);
        running--;
        if (WIFEXITED(status) && WEXITSTATUS(status) == NO_SUCH_STEP)
            more = false, ended++;
        else if (status)
            return fprintf(stderr, "a child ends with %x\n", status), 1;
    }
    printf("%d\n", children - ended);
    return 0;
}
