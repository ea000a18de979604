#include "hip/refusal.h"
#include "base/call.h"
#include "hip/cuda.h"
#include "hip/hip.h"

/* No handle, no device memory, no image; HIP may read it. */
static char unknown[4096];

/* HIP's answer; the error by which it is known where HIP was not asked, or took it. */
static hipError_t or_known(hipError_t answer, hipError_t known) {
    call_tell(CALL_REFUSED);
    return answer != hipSuccess ? answer : known;
}

/* HIP 7 reads what a stream's handle points to, except where it launches. */
hipError_t refusal_of_stream(void) {
    const hipStream_t stream = (hipStream_t)(void *)unknown;
    hipError_t answer = hipSuccess;
    if (cuda_present())
        answer = hipErrorContextIsDestroyed;
    else if (hip_version < HIP_7)
        answer = hip.StreamQuery(stream);
    else
        answer = hip.ModuleLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL);
    return or_known(answer, hipErrorContextIsDestroyed);
}

/* HIP 5.2 reads what an event's handle points to, and later ones do in some calls. */
hipError_t refusal_of_event(void) {
    const hipError_t known = hipErrorInvalidHandle;
    return or_known(cuda_present() ? known : hip.EventSynchronize(NULL), known);
}

hipError_t refusal_of_module(void) {
    const hipError_t known = hipErrorNotFound;
    return or_known(cuda_present() ? known : hip.ModuleUnload((hipModule_t)(void *)unknown), known);
}

hipError_t refusal_of_block(void) {
    const hipError_t known = hipErrorInvalidValue;
    return or_known(cuda_present() ? known : hip.Free(unknown), known);
}

hipError_t refusal_of_image(const void *data) {
    hipModule_t module;
    const hipError_t known = hipErrorInvalidImage;
    const bool asked = !cuda_present();
    return or_known(asked ? hip.ModuleLoadData(&module, data ? unknown : NULL) : known, known);
}
