#include "shared.h"

#include "mode.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* What each process has. A process that was killed has nothing, as with a driver. */
enum { CELLS = 64 };
static struct {
    pthread_mutex_t lock;
    int bus;
    struct cell {
        pid_t process; /* 0: unused */
        uint64_t bytes;
    } cells[CELLS];
} *device;

__attribute__((constructor)) static void make_device(void) {
    const char *wanted = getenv("HIPSTUB_SHARED");
    pthread_mutexattr_t attributes;
    if (wanted == NULL)
        return;
    device = mmap(NULL, sizeof *device, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (device == MAP_FAILED)
        abort();
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(&device->lock, &attributes);
    device->bus = getpid();
}

int shared_bus(void) {
    return device == NULL ? 0 : device->bus;
}

static bool is_used(const struct cell *cell) {
    return cell->process != 0 && (kill(cell->process, 0) == 0 || errno != ESRCH);
}

static struct cell *own_cell(void) {
    for (int i = 0; i < CELLS; i++)
        if (device->cells[i].process == getpid())
            return &device->cells[i];
    for (int i = 0; i < CELLS; i++)
        if (!is_used(&device->cells[i])) {
            device->cells[i] = (struct cell){getpid(), 0};
            return &device->cells[i];
        }
    abort();
}

size_t shared_others(void) {
    size_t bytes = 0;
    for (int i = 0; device != NULL && i < CELLS; i++)
        if (device->cells[i].process != getpid() && is_used(&device->cells[i]))
            bytes += device->cells[i].bytes;
    return bytes;
}

bool shared_take(size_t bytes) {
    if (device == NULL)
        return true;
    pthread_mutex_lock(&device->lock);
    struct cell *own = own_cell();
    const bool fits = own->bytes + shared_others() + bytes <= stub_memory;
    if (fits)
        own->bytes += bytes;
    pthread_mutex_unlock(&device->lock);
    return fits;
}

void shared_return(size_t bytes) {
    if (device == NULL)
        return;
    pthread_mutex_lock(&device->lock);
    own_cell()->bytes -= bytes;
    pthread_mutex_unlock(&device->lock);
}
