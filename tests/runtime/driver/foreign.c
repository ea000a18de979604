/* Other code calls the HARMLESS functions of HIP one after the other, and a hit follows each call.
 * The program prints the functions that HIP has. If a hit computes a wrong result, the program
 * prints "wrong". Then other code calls the function of OTHERS that the first word names. Any HIP
 * can serve. */
#include "program.h"

enum { BYTES = 1 << 16, WORDS = BYTES / 4 };

static int number, numbers[4];
static char text[BYTES]; /* room for each structure of HIP */
static size_t size;
static void *block, *stream, *place;
static uint32_t host[WORDS];

static void hit(void) {
    static uint32_t word;
    void *const mine = mgpuStreamCreate();
    uint32_t *const memory = mgpuMemAlloc(BYTES, mine, false);
    mgpuMemset32(memory, ++word, WORDS, mine);
    mgpuMemcpy(host, memory, BYTES, mine);
    mgpuStreamSynchronize(mine);
    if (host[0] != word || host[WORDS - 1] != word)
        puts("wrong");
    mgpuMemFree(memory, mine);
    mgpuStreamDestroy(mine);
}

#define HARMLESS(CALL)                                                                             \
    CALL(hipApiName, (unsigned), (1))                                                              \
    CALL(hipChooseDevice, (int *, const void *), (&number, text))                                  \
    CALL(hipChooseDeviceR0000, (int *, const void *), (&number, text))                             \
    CALL(hipChooseDeviceR0600, (int *, const void *), (&number, text))                             \
    CALL(hipDeviceCanAccessPeer, (int *, int, int), (&number, 0, 0))                               \
    CALL(hipDeviceComputeCapability, (int *, int *, int), (numbers, numbers + 1, 0))               \
    CALL(hipDeviceGet, (int *, int), (&number, 0))                                                 \
    CALL(hipDeviceGetAttribute, (int *, int, int), (&number, 5, 0))                                \
    CALL(hipDeviceGetByPCIBusId, (int *, const char *), (&number, "0000:00:00.0"))                 \
    CALL(hipDeviceGetName, (char *, int, int), (text, 64, 0))                                      \
    CALL(hipDeviceGetP2PAttribute, (int *, int, int, int), (&number, 1, 0, 0))                     \
    CALL(hipDeviceGetPCIBusId, (char *, int, int), (text, 64, 0))                                  \
    CALL(hipDeviceGetUuid, (void *, int), (text, 0))                                               \
    CALL(hipDeviceTotalMem, (size_t *, int), (&size, 0))                                           \
    CALL(hipDriverGetVersion, (int *), (&number))                                                  \
    CALL(hipExtGetLastError, (void), ())                                                           \
    CALL(hipFuncGetAttributes, (void *, const void *), (text, text))                               \
    CALL(hipGetDevice, (int *), (&number))                                                         \
    CALL(hipGetDeviceCount, (int *), (&number))                                                    \
    CALL(hipGetDeviceProperties, (void *, int), (text, 0))                                         \
    CALL(hipGetDevicePropertiesR0000, (void *, int), (text, 0))                                    \
    CALL(hipGetDevicePropertiesR0600, (void *, int), (text, 0))                                    \
    CALL(hipGetErrorName, (int), (1))                                                              \
    CALL(hipGetErrorString, (int), (1))                                                            \
    CALL(hipGetLastError, (void), ())                                                              \
    CALL(hipInit, (unsigned), (0))                                                                 \
    CALL(hipMemGetAddressRange, (void **, size_t *, void *), (&place, &size, block))               \
    CALL(hipPeekAtLastError, (void), ())                                                           \
    CALL(hipPointerGetAttribute, (void *, int, void *), (text, 7, block))                          \
    CALL(hipPointerGetAttributes, (void *, const void *), (text, block))                           \
    CALL(hipRuntimeGetVersion, (int *), (&number))                                                 \
    CALL(hipSetDevice, (int), (0))                                                                 \
    CALL(hipStreamGetCaptureInfo, (void *, int *, void *), (stream, &number, text))                \
    CALL(hipStreamGetCaptureInfo_v2, (void *, int *, void *, void *, void *, size_t *),            \
         (stream, &number, text, NULL, NULL, NULL))                                                \
    CALL(hipStreamGetDevice, (void *, int *), (stream, &number))                                   \
    CALL(hipStreamGetFlags, (void *, unsigned *), (stream, (unsigned *)&number))                   \
    CALL(hipStreamGetPriority, (void *, int *), (stream, &number))                                 \
    CALL(hipStreamIsCapturing, (void *, int *), (stream, &number))

#define OTHERS(CALL)                                                                               \
    CALL(hipDeviceSynchronize, (void), ())                                                         \
    CALL(hipDeviceReset, (void), ())                                                               \
    CALL(hipEventCreate, (void **), (&place))                                                      \
    CALL(hipFree, (void *), (NULL))                                                                \
    CALL(hipHostRegister, (void *, size_t, unsigned), (host, BYTES, 0))                            \
    CALL(hipMalloc, (void **, size_t), (&place, BYTES))                                            \
    CALL(hipMemGetInfo, (size_t *, size_t *), (&size, &size))                                      \
    CALL(hipMemset, (void *, int, size_t), (block, 0, BYTES))                                      \
    CALL(hipStreamCreate, (void **), (&place))                                                     \
    CALL(hipStreamQuery, (void *), (stream))                                                       \
    CALL(hipStreamSynchronize, (void *), (stream))

int main(int count, char **names) {
    stream = mgpuStreamCreate();
    block = mgpuMemAlloc(BYTES, stream, false);
    hit();
#define FUNCTION(name, parameters) ((long(*) parameters)program_hip(#name))
#define CALL_HARMLESS(name, parameters, arguments)                                                 \
    if (program_hip(#name)) {                                                                      \
        (void)FUNCTION(name, parameters) arguments;                                                \
        puts(#name);                                                                               \
        hit();                                                                                     \
    }
    HARMLESS(CALL_HARMLESS)
#define CALL_OTHER(name, parameters, arguments)                                                    \
    if (count > 1 && strcmp(names[1], #name) == 0)                                                 \
        (void)FUNCTION(name, parameters) arguments;
    OTHERS(CALL_OTHER)
    hit();
    fflush(stdout);
    _Exit(0);
}
