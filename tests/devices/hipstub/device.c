#include "calls.h"
#include "memory.h"
#include "mode.h"
#include "objects.h"
#include "shared.h"
#include "stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Thread_local int device_of_thread;

int current_device(void) {
    return device_of_thread;
}

hipError_t emu_hipInit(unsigned flags) {
    (void)flags;
    return hipSuccess;
}

hipError_t emu_hipGetDeviceCount(int *count) {
    if (count == NULL)
        return hipErrorInvalidValue;
    *count = stub_devices;
    return stub_devices > 0 ? hipSuccess : hipErrorNoDevice;
}

hipError_t emu_hipGetDevice(int *device) {
    if (device == NULL)
        return hipErrorInvalidValue;
    *device = device_of_thread;
    return hipSuccess;
}

hipError_t emu_hipSetDevice(int device) {
    if (device < 0 || device >= stub_devices)
        return hipErrorInvalidDevice;
    device_of_thread = device;
    return hipSuccess;
}

void device_reset(void) {
    stream_wait_all(false);
    const int device = current_device();
    for (struct object *object; (object = object_on(device, MODULE)) != NULL;)
        emu_hipModuleUnload((hipModule_t)object);
    for (struct object *object; (object = object_on(device, STREAM)) != NULL;)
        emu_hipStreamDestroy((hipStream_t)object);
    memory_reset(device);
}

hipError_t emu_hipDeviceGetName(char *name, int length, int device) {
    static const char known[] = "stub of HIP";
    if (device < 0 || device >= stub_devices)
        return hipErrorInvalidDevice;
    if (name == NULL || length < (int)sizeof known)
        return hipErrorInvalidValue;
    memcpy(name, known, sizeof known);
    return hipSuccess;
}

/* Stores the device's name and target, in the layout of HIP up to 7.2. */
hipError_t emu_hipGetDeviceProperties(void *properties, int device) {
    enum { SIZE = 792, TARGET = 396, LARGE_BAR = 764 };
    const char *const xnack = getenv("HSA_XNACK");
    const char on_or_off = xnack != NULL && strcmp(xnack, "1") == 0 ? '+' : '-';
    if (properties == NULL)
        return hipErrorInvalidValue;
    if (device < 0 || device >= stub_devices)
        return hipErrorInvalidDevice;
    memset(properties, 0, SIZE);
    snprintf((char *)properties + TARGET, SIZE - TARGET, "gfx90a:sramecc+:xnack%c", on_or_off);
    memcpy((char *)properties + LARGE_BAR, &stub_large_bar, sizeof stub_large_bar);
    return emu_hipDeviceGetName(properties, TARGET, device);
}

hipError_t emu_hipDeviceGetAttribute(int *value, int attribute, int device) {
    if (value == NULL)
        return hipErrorInvalidValue;
    if (device < 0 || device >= stub_devices)
        return hipErrorInvalidDevice;
    const int attributes[][2] = {
        {hipDeviceAttributeCanMapHostMemory, 1},
        {hipDeviceAttributeConcurrentKernels, 1},
        {hipDeviceAttributeCooperativeLaunch, 1},
        {hipDeviceAttributeClockRate, 1700000},
        {hipDeviceAttributeComputeCapabilityMajor, stub_capability / 10},
        {hipDeviceAttributeComputeCapabilityMinor, stub_capability % 10},
        {hipDeviceAttributeMaxBlockDimX, 1024},
        {hipDeviceAttributeMaxThreadsPerBlock, 1024},
        {hipDeviceAttributeMaxGridDimX, 0x7fffffff},
        {hipDeviceAttributeMultiprocessorCount, 2},
        {hipDeviceAttributeMaxSharedMemoryPerBlock, 65536},
        {hipDeviceAttributePageableMemoryAccess, stub_pageable},
        {hipDeviceAttributeIntegrated, stub_integrated},
        {stub_version < HIP_6 ? -1 : hipDeviceAttributeIsLargeBar, stub_large_bar},
        {shared_bus() == 0 ? -1 : hipDeviceAttributePciBusId, shared_bus()},
        {hipDeviceAttributePciDeviceId, device},
        {hipDeviceAttributePciDomainID, 0},
        {hipDeviceAttributeWarpSize, 64},
    };
    for (size_t i = 0; attribute >= 0 && i < sizeof attributes / sizeof *attributes; ++i)
        if (attributes[i][0] == attribute) {
            *value = attributes[i][1];
            return hipSuccess;
        }
    return hipErrorInvalidValue;
}

hipError_t emu_hipRuntimeGetVersion(int *version) {
    if (version == NULL)
        return hipErrorInvalidValue;
    *version = stub_version;
    return hipSuccess;
}

hipError_t emu_hipDriverGetVersion(int *version) {
    return emu_hipRuntimeGetVersion(version);
}
