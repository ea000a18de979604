#include "doorbell.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <stddef.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PAGE = 4096 };

/* Opens a userfaultfd that reports stores to a write-protected page. With UFFD_USER_MODE_ONLY,
 * userfaultfd needs no privileges since Linux 5.11. A container may still forbid userfaultfd, and
 * the function then returns -1. */
static int open_faults(void *page) {
    int file = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
    if (file < 0)
        return -1;
    struct uffdio_api api = {.api = UFFD_API, .features = UFFD_FEATURE_PAGEFAULT_FLAG_WP};
    struct uffdio_register region = {
        .range = {(uintptr_t)page, PAGE},
        .mode = UFFDIO_REGISTER_MODE_WP,
    };
    if (ioctl(file, UFFDIO_API, &api) == 0 && ioctl(file, UFFDIO_REGISTER, &region) == 0)
        return file;
    close(file);
    return -1;
}

bool softgpu_doorbell_open(struct softgpu_doorbell *doorbell) {
    void *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return false;
    /* No thread serves the doorbell in a forked child. A store in the child should cause a
     * segmentation fault, as with the real driver, instead of waiting forever. */
    madvise(page, PAGE, MADV_DONTFORK);
    int kick = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (kick < 0) {
        munmap(page, PAGE);
        return false;
    }
    /* The following store maps the page, because only a mapped page can be protected. The stored
     * value must not be 0, because 0 is the first packet's number. */
    *(volatile uint64_t *)page = UINT64_MAX;
    *doorbell = (struct softgpu_doorbell){.bell = page, .faults = open_faults(page), .kick = kick};
    return true;
}

void softgpu_doorbell_close(struct softgpu_doorbell *doorbell) {
    if (doorbell->faults >= 0)
        close(doorbell->faults);
    close(doorbell->kick);
    munmap(doorbell->bell, PAGE);
}

static bool protect(struct softgpu_doorbell *doorbell, bool on) {
    struct uffdio_writeprotect request = {
        .range = {(uintptr_t)doorbell->bell, PAGE},
        .mode = on ? UFFDIO_WRITEPROTECT_MODE_WP : 0,
    };
    return ioctl(doorbell->faults, UFFDIO_WRITEPROTECT, &request) == 0;
}

bool softgpu_doorbell_arm(struct softgpu_doorbell *doorbell) {
    if (!doorbell->armed)
        doorbell->armed = doorbell->faults >= 0 && protect(doorbell, true);
    return doorbell->armed;
}

void softgpu_doorbell_disarm(struct softgpu_doorbell *doorbell) {
    if (!doorbell->armed)
        return;
    struct uffd_msg message;
    while (read(doorbell->faults, &message, sizeof message) > 0)
        continue; /* each message reports a store to the bell; protect() below lets the store
                     continue */
    protect(doorbell, false);
    doorbell->armed = false;
}

void softgpu_doorbell_sleep(struct softgpu_doorbell *doorbell) {
    struct pollfd files[] = {
        {.fd = doorbell->faults, .events = POLLIN},
        {.fd = doorbell->kick, .events = POLLIN},
    };
    uint64_t kicks;
    if (poll(files, 2, -1) > 0 && files[1].revents && read(doorbell->kick, &kicks, 8) < 0)
        return; /* another thread has already read the eventfd */
}

void softgpu_doorbell_kick(struct softgpu_doorbell *doorbell) {
    uint64_t one = 1;
    if (write(doorbell->kick, &one, sizeof one) < 0)
        return; /* the eventfd's counter is full */
}
