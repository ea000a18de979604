#include "observe.h"
#include "python.h"

struct policy_cost policy_cost; /* until the manager is there */

void observe(enum observed what, const void *handle, size_t bytes, int device) {
    (void)what;
    (void)handle;
    (void)bytes;
    (void)device;
}
