/* Other code calls HIP in a signal handler that interrupts the library.
 *
 *     interrupted CASE CHILDREN    at so many instructions of the library, evenly spread
 *
 * CASE is calls, or exit: the handlers at exit. With MGPU_RT_EXCLUSIVE=on, the library keeps memory
 * registered, and postpones a wait. A child process for each instruction makes the calls. After the
 * interrupted calls other code calls HIP once more. Nothing may then be left of what the library
 * kept. The processor's trap flag sends a SIGTRAP after each instruction. HIP's own instructions do
 * not count, because HIP's locks are not the library's. Prints how many children were interrupted.
 */
#include "program.h"
#include "trap_flag.h"

#include <link.h>
#include <ucontext.h>

int hipMalloc(void **memory, size_t bytes);
int mgpu_rt_empty_cache(void);

enum { BYTES = 4096, PATIENCE = 60, NO_SUCH_STEP = 3, LEFT = 4 };

static uintptr_t code, code_end; /* the library's */

static unsigned long chosen, steps, *all_steps;
static volatile bool stepping;
static char *memory;
static void *stream, *block;

static void call_hip(void) {
    void *made;
    hipMalloc(&made, 64);
}

static void on_trap(int number, siginfo_t *info, void *context) {
    greg_t *const registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    (void)number, (void)info;
    if (!stepping || (uintptr_t)registers[REG_RIP] - code >= code_end - code || steps++ != chosen)
        return;
    call_hip();
    stepping = false;
    registers[REG_EFL] &= ~(greg_t)0x100; /* no further trap */
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

static void step(bool on) {
    stepping = on;
    set_trap_flag(on);
}

static bool at_exit;

/* Runs after the library's handlers at exit, because the program registered it before. */
static void end(void) {
    step(false);
    if (steps <= chosen) {
        *all_steps = steps;
        _exit(NO_SUCH_STEP);
    }
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
    step(true);
    if (!at_exit)
        make_calls();
    if (!at_exit)
        end();
    exit(0);
}

/* Returns whether a child was interrupted; ends the program if something is wrong. */
static bool was_interrupted(void) {
    int status = 0;
    wait(&status);
    const bool is_late = WIFEXITED(status) && WEXITSTATUS(status) == NO_SUCH_STEP;
    if (status && !is_late) {
        fprintf(stderr, "a child ends with %x\n", status);
        exit(1);
    }
    return !is_late;
}

static void start(unsigned long at) {
    chosen = at;
    if (fork() == 0)
        run_child();
}

int main(int count, char **words) {
    const struct sigaction trap = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};
    const int children = count > 2 ? atoi(words[2]) : 1;
    int interrupted = 0;
    at_exit = strcmp(words[1], "exit") == 0;
    all_steps =
        mmap(NULL, sizeof *all_steps, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    dl_iterate_phdr(find_library, NULL);
    sigaction(SIGTRAP, &trap, NULL);
    start(~0ul); /* counts the steps */
    (void)was_interrupted();
    const unsigned long all = *all_steps;
    for (int i = 0; i < children; i++)
        start(all * (unsigned long)i / (unsigned long)children);
    for (int i = 0; i < children; i++)
        interrupted += was_interrupted();
    printf("%d\n", interrupted);
    return 0;
}
