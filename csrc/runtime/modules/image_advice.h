/* Tells the user whether the driver refused an image for its GPU or its version. */
#ifndef MGPU_RT_IMAGE_ADVICE_H
#define MGPU_RT_IMAGE_ADVICE_H

#include "mgpu.h"
#include "modules/image/image.h"

/* Reports that the driver refused an image. Does not call HIP, so HIP's last error is preserved. */
void advise_image(const char *expression, hipError_t error, const struct image *image);

/* Returns true if the image is for one of this machine's AMD devices, and has a version that HIP
 * accepts. Returns false if the library cannot tell. A separate thread asks HIP for the devices, so
 * the calling thread's last error is unchanged. */
bool image_suits_device(const struct image *image);

#endif
