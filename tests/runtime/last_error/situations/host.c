/* Situations of mgpuMemHost*, and of the functions that neither allocate nor submit. */
#include "../setting.h"

/* ---- host memory ---- */

static char pages[4][4096] __attribute__((aligned(4096)));

struct row { /* a memref of rank 1 */
    char *allocated, *aligned;
    int64_t offset, size, stride;
};

SITUATION(host_register) {
    CALL(mgpuMemHostRegister(pages[0], sizeof pages[0]));
    mgpuMemHostUnregister(pages[0]);
}

SITUATION(host_register_null) {
    CALL(mgpuMemHostRegister(NULL, sizeof pages[0]));
}

SITUATION(host_register_nothing) {
    CALL(mgpuMemHostRegister(pages[0], 0));
}

SITUATION(host_register_twice) {
    mgpuMemHostRegister(pages[1], sizeof pages[1]);
    CALL(mgpuMemHostRegister(pages[1], sizeof pages[1]));
    mgpuMemHostUnregister(pages[1]);
}

SITUATION(host_register_memref) {
    struct row row = {pages[2], pages[2], 0, sizeof pages[2], 1};
    CALL(mgpuMemHostRegisterMemRef(1, (struct mgpu_memref *)&row, 1));
    mgpuMemHostUnregister(pages[2]);
}

SITUATION(host_unregister) {
    mgpuMemHostRegister(pages[0], sizeof pages[0]);
    CALL(mgpuMemHostUnregister(pages[0]));
}

SITUATION(host_unregister_memref) {
    struct row row = {pages[2], pages[2], 0, sizeof pages[2], 1};
    mgpuMemHostRegister(pages[2], sizeof pages[2]);
    CALL(mgpuMemHostUnregisterMemRef(1, (struct mgpu_memref *)&row, 1));
}

SITUATION(host_unregister_null) {
    CALL(mgpuMemHostUnregister(NULL));
}

SITUATION(host_unregister_unknown) {
    CALL(mgpuMemHostUnregister(pages[3]));
}

SITUATION(device_memref) {
    float *memory = (float *)pages[0];
    mgpuMemHostRegister(pages[0], sizeof pages[0]);
    CALL(mgpuMemGetDeviceMemRef1dFloat(memory, memory, 0, 4, 1));
    mgpuMemHostUnregister(pages[0]);
}

SITUATION(device_memref_unregistered) {
    float *memory = (float *)pages[3];
    CALL(mgpuMemGetDeviceMemRef1dFloat(memory, memory, 0, 4, 1));
}

SITUATION(device_memref_of_int32) {
    int32_t *memory = (int32_t *)pages[0];
    mgpuMemHostRegister(pages[0], sizeof pages[0]);
    CALL(mgpuMemGetDeviceMemRef1dInt32(memory, memory, 0, 4, 1));
    mgpuMemHostUnregister(pages[0]);
}

SITUATION(device_memref_of_int32_unregistered) {
    CALL(mgpuMemGetDeviceMemRef1dInt32(NULL, NULL, 0, 4, 1));
}

/* ---- the device ---- */

SITUATION(set_device) {
    CALL(mgpuSetDefaultDevice(0));
}

SITUATION(set_device_too_large) {
    CALL(mgpuSetDefaultDevice(99));
}

SITUATION(set_device_negative) {
    CALL(mgpuSetDefaultDevice(-1));
}

/* ---- tensor maps ---- */

SITUATION(tensor_map) {
    if (mgpuTensorMapEncodeTiled != NULL)
        CALL(mgpuTensorMapEncodeTiled(host, 0, 1, host, NULL, NULL, NULL, NULL, 0, 0, 0, 0));
}

SITUATION(tensor_map_of_a_memref) {
    struct row row = {host, host, 0, KIB, 1};
    const int64_t box = 64;
    if (mgpuTensorMapEncodeTiledMemref != NULL)
        CALL(mgpuTensorMapEncodeTiledMemref(1, (struct mgpu_memref *)&row, 0, 0, 0, 0, 0, &box));
}
