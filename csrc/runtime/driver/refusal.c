#include "driver/refusal.h"
#include "driver/cuda.h"
#include "driver/hip.h"
#include "proof.h"
#include "telemetry/call.h"

/* An address that is no handle, no device memory and no image; HIP may read it. */
static char unknown[4096];

/* Returns HIP's answer. If the library did not query HIP, or if HIP accepted the argument, returns
 * the error that HIP usually reports. */
static hipError_t or_known(hipError_t answer, hipError_t known) {
    call_tell(CALL_REFUSED);
    return answer != hipSuccess ? answer : known;
}

/* NVIDIA's driver keeps no last error of a thread, so a query changes no last error. */
static bool asks_hip(void) {
    return DOUBT(refusal_is_hips_own, !cuda_present());
}

/* HIP 7 reads the object at a stream's handle, except in launches. */
hipError_t refusal_of_stream(void) {
    const hipStream_t stream = (hipStream_t)(void *)unknown;
    hipError_t answer = hipSuccess;
    if (!asks_hip())
        answer = hipErrorContextIsDestroyed;
    else if (PROOF(hip_reads_no_handle, hip_version < HIP_7))
        answer = hip.StreamQuery(stream);
    else
        answer = hip.ModuleLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL);
    return or_known(answer, hipErrorContextIsDestroyed);
}

/* HIP 5.2 reads the object at an event's handle, and later releases do so in some calls. */
hipError_t refusal_of_event(void) {
    const hipError_t known = hipErrorInvalidHandle;
    return or_known(asks_hip() ? hip.EventSynchronize(NULL) : known, known);
}

hipError_t refusal_of_module(void) {
    const hipError_t known = hipErrorNotFound;
    return or_known(asks_hip() ? hip.ModuleUnload((hipModule_t)(void *)unknown) : known, known);
}

hipError_t refusal_of_block(void) {
    const hipError_t known = hipErrorInvalidValue;
    return or_known(asks_hip() ? hip.Free(unknown) : known, known);
}

hipError_t refusal_of_image(const void *data) {
    hipModule_t module;
    const hipError_t known = hipErrorInvalidImage;
    const void *const wrong = PROOF(image_is_not_null, data) ? unknown : NULL;
    return or_known(asks_hip() ? hip.ModuleLoadData(&module, wrong) : known, known);
}
