/* Checks for the readers of images whether memory is readable. */
#include "modules/image/formats.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static uintptr_t page_size(void) {
    return (uintptr_t)sysconf(_SC_PAGESIZE);
}

/* The kernel's rt_sigprocmask reads the mask's 8 bytes before it checks the operation. The call
 * returns EFAULT if the bytes are unreadable and EINVAL if they are readable, and changes nothing.
 * Every Linux kernel has this system call and every sandbox permits it, unlike process_vm_readv and
 * MADV_POPULATE_READ. */
static bool page_is_readable(uintptr_t page) {
    const int no_such_change = ~0;
    const long mask_bytes = 8;
    return page && (syscall(SYS_rt_sigprocmask, no_such_change, page, NULL, mask_bytes) == 0 ||
                    PROOF(page_is_readable, errno != EFAULT));
}

/* Returns true if the pages from `begin` to `end` are readable. The addresses `begin` and `end` are
 * aligned to pages. */
static bool pages_are_readable(uintptr_t begin, uintptr_t end) {
    const int error = errno; /* the program's */
    bool readable = true;
    for (uintptr_t page = begin; page < end && readable; page += page_size())
        readable = page_is_readable(page);
    errno = error;
    return readable;
}

static uintptr_t page_of(uintptr_t address) {
    return address & ~(page_size() - 1);
}

bool view_holds(struct view *view, uint64_t offset, uint64_t size) {
    const uintptr_t start = (uintptr_t)view->bytes;
    uint64_t end;
    uintptr_t last;
    if (__builtin_add_overflow(offset, size, &end) || end > view->limit)
        return false;
    if (end <= view->known)
        return true;
    if (__builtin_add_overflow(start, end - 1, &last) || page_of(last) + page_size() == 0)
        return false;
    const uintptr_t behind = page_of(last) + page_size();
    if (!pages_are_readable(page_of(start + view->known), behind))
        return false;
    view->known = behind - start < view->limit ? behind - start : view->limit;
    return true;
}

size_t view_text_length(struct view *view) {
    size_t length = 0;
    while (view_holds(view, length, 1)) {
        const char *from = (const char *)view->bytes + length;
        const char *end = memchr(from, '\0', view->known - length);
        if (end)
            return length + (size_t)(end - from);
        length = view->known;
    }
    return SIZE_MAX;
}
