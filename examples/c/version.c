/* The smallest program that uses mgpu_rt.h:
 *
 *     cc version.c $(mgpu-rt config --cflags --libs) -o version */
#include <mgpu_rt.h>
#include <stdio.h>

int main(void) {
    printf("mgpu_rt %s\n", mgpu_rt_version());
    return 0;
}
