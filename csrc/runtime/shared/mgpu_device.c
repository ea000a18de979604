/* mgpuSetDefaultDevice: sets the device of the calling thread only, as HIP does. */
#include "driver/hip.h"
#include "driver/report.h"
#include "shared/thread.h"

static struct advice no_such_device = {
    .text = "the program chose device %d; HIP has %d, counted from 0"};

void impl_mgpuSetDefaultDevice(int32_t device) {
    (void)thread_get();
    REPORT("hipSetDevice(device)", hip.SetDevice(device), &no_such_device, device,
           hip_device_count);
}
