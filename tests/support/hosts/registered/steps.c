/* Interrupts a register and an unregister at each instruction, or at each system call, by a signal.
 *
 *     steps signal      the handler drops and unmaps other watched pages
 *
 *     steps CASE BY     at the instructions 0, BY, 2 BY and so on, the handler changes the
 *                       registered pages; each change gets new memory
 *
 *     steps closed N    the program takes the watch's descriptor before system call N
 *
 *     steps replaced    a userfaultfd of the program takes the watch's descriptor
 *
 *     steps calls       prints how many system calls a register and an unregister make that hit
 *
 * CASE is dropped (MADV_DONTNEED) or mapped (new memory). The processor's trap flag sends a SIGTRAP
 * after each instruction. Exits with status 3 if N is too large. */
#include "memory.h"
#include "trap_flag.h"

#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <ucontext.h>

#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#define MADV_GUARD_REMOVE 103
#endif

/* ---- steps ---- */

static void (*act)(void); /* runs in the handler */
static bool at_calls;     /* only before system calls */
static unsigned long steps;
static volatile bool stepping;

static void on_trap(int number, siginfo_t *info, void *context) {
    const ucontext_t *where = context;
    const unsigned char *code = (const unsigned char *)where->uc_mcontext.gregs[REG_RIP];
    (void)number;
    (void)info;
    if (!stepping || (at_calls && (code[0] != 0x0f || code[1] != 0x05)))
        return;
    act();
    steps++;
}

static void step(bool on) {
    stepping = on;
    set_trap_flag(on);
}

/* Registers memory, and unregisters it. */
static void step_through(struct range at) {
    step(true);
    mgpuMemHostRegister(at.address, at.bytes);
    mgpuMemHostUnregister(at.address);
    step(false);
}

/* ---- a handler that unmaps other memory ---- */

static struct range other; /* registered, so its pages are watched */

/* Two events: the kernel waits for the read of each event, and a reader may read the first event
 * before it waits for a lock. */
static void change_other(void) {
    enum { RARELY = 64 };
    char *const page = other.address + steps / RARELY % (other.bytes / PAGE) * PAGE;
    madvise(other.address, PAGE, MADV_DONTNEED);
    if (steps % RARELY == 0)
        mmap(page, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    madvise(other.address + other.bytes - PAGE, PAGE, MADV_DONTNEED);
}

static void signal_case(void) {
    const struct range at = {window, 2 * PAGE};
    other = (struct range){window + 4 * PAGE, 40 * PAGE};
    map(at);
    map(other);
    mgpuMemHostRegister(other.address, other.bytes);
    act = change_other;
    step_through(at);
    step_through(at);
    mgpuMemHostUnregister(other.address);
    pass(at);
    pass(at);
}

/* ---- a handler that changes the registered memory ---- */

static struct range page, target; /* the target is a part of the page */
static unsigned long chosen;

static void map_page(void) {
    if (steps == chosen)
        mmap(page.address, page.bytes, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

static void drop_page(void) {
    if (steps == chosen)
        madvise(page.address, page.bytes, MADV_DONTNEED);
}

/* Drops the page without an event. The kernel sends the event of a drop before the drop. So another
 * thread may still be in the middle of the madvise that drop_page stands for. */
static void drop_late(void) {
    if (madvise(page.address, page.bytes, MADV_GUARD_INSTALL) == 0)
        madvise(page.address, page.bytes, MADV_GUARD_REMOVE);
}

/* Registers and unregisters the target, and changes the page at the chosen instruction. Another
 * part of the page is registered all the time, so the page is always watched. */
static void change_once(bool drops) {
    struct range part;
    open_window();
    page = (struct range){window, PAGE};
    part = (struct range){window, 512};
    target = (struct range){window + 1024, 512};
    map(page);
    mgpuMemHostRegister(part.address, part.bytes);
    steps = 0;
    step_through(target);
    if (drops && steps > chosen)
        drop_late();
    for (int i = 0; i < 3; i++) {
        fill(target.address, target.bytes);
        pass(target);
    }
    mgpuMemHostUnregister(part.address);
    munmap(window, BYTES);
}

static void change_case(bool drops, unsigned long by) {
    const struct range start = {window, PAGE};
    map(start);
    pass(start); /* starts the watch, and the library blocks signals while it starts threads */
    act = drops ? drop_page : map_page;
    for (;; chosen += by) {
        change_once(drops);
        if (steps <= chosen)
            return;
    }
}

/* ---- a descriptor that the program takes ---- */

static int pipe_ends[2], watch;

/* Returns the number of the watch's descriptor. */
static int find_watch(void) {
    int found = -1;
    DIR *all = opendir("/proc/self/fd");
    for (struct dirent *each; (each = readdir(all));) {
        char text[64] = "";
        if (readlinkat(dirfd(all), each->d_name, text, sizeof text - 1) > 0 &&
            strstr(text, "[userfaultfd]"))
            found = atoi(each->d_name);
    }
    closedir(all);
    return found;
}

static void take_descriptor(void) {
    if (steps == chosen && watch > STDERR_FILENO)
        dup2(pipe_ends[0], watch);
}

static void drop_and_pass(struct range at) {
    fill(at.address, at.bytes);
    pass(at);
    madvise(at.address, at.bytes, MADV_DONTNEED);
    fill(at.address, at.bytes);
    pass(at);
    map(at);
    pass(at);
}

static void closed_case(unsigned long call) {
    enum { CONTENT = 4096 };
    const struct range at = {window, 2 * PAGE}, before = {window + 4 * PAGE, 2 * PAGE};
    static char content[CONTENT];
    int left = 0;
    if (pipe(pipe_ends) != 0 || write(pipe_ends[1], content, CONTENT) != CONTENT)
        fail("pipe", window, 0);
    map((struct range){window, BYTES});
    pass(before);
    if ((watch = find_watch()) < 3)
        fail("no high descriptor", window, 0);
    chosen = call;
    at_calls = true;
    act = take_descriptor;
    step_through(at);
    step_through(at);
    if (steps <= chosen)
        exit(3);
    for (int i = 0; i < 4; i++) {
        drop_and_pass(at);
        drop_and_pass(before);
    }
    if (ioctl(pipe_ends[0], FIONREAD, &left) != 0 || left != CONTENT)
        fail("the library read the program's pipe", window, (size_t)left);
    if (ioctl(watch, FIONREAD, &left) != 0 || left != CONTENT)
        fail("the library closed the program's descriptor", window, (size_t)left);
}

/* A userfaultfd of the program answers the library's ioctls as the library's own userfaultfd does,
 * but knows nothing of the watched pages. */
static void replaced_case(void) {
    const struct range at = {window, 2 * PAGE};
    struct uffdio_api api = {.api = UFFD_API};
    const int own = (int)syscall(SYS_userfaultfd, O_CLOEXEC | 1 /* UFFD_USER_MODE_ONLY */);
    if (own < 0 || ioctl(own, UFFDIO_API, &api) != 0)
        fail("userfaultfd", window, 0);
    map(at);
    pass(at);
    dup2(own, find_watch());
    for (int i = 0; i < 3; i++)
        pass(at);
}

/* ---- counting ---- */

static void act_not(void) {}

static void calls_case(void) {
    const struct range at = {window, 2 * PAGE};
    map(at);
    pass(at);
    pass(at);
    at_calls = true;
    act = act_not;
    step_through(at);
    printf("%lu\n", steps);
}

int main(int argc, char **argv) {
    const struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};
    if (argc < 2)
        return 2;
    sigaction(SIGTRAP, &action, NULL);
    open_window();
    stream = mgpuStreamCreate();
    block = mgpuMemAlloc(BYTES, stream, false);
    const unsigned long number = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
    if (strcmp(argv[1], "signal") == 0)
        signal_case();
    else if (strcmp(argv[1], "closed") == 0)
        closed_case(number);
    else if (strcmp(argv[1], "replaced") == 0)
        replaced_case();
    else if (strcmp(argv[1], "calls") == 0)
        calls_case();
    else
        change_case(strcmp(argv[1], "dropped") == 0, number);
    mgpuMemFree(block, stream);
    mgpuStreamDestroy(stream);
    return 0;
}
