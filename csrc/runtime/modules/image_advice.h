/* Tells the user why the driver refused an image. */
#ifndef MGPU_RT_IMAGE_ADVICE_H
#define MGPU_RT_IMAGE_ADVICE_H

#include "mgpu.h"
#include "modules/image/image.h"

/* Reports that the driver refused an image. Does not call HIP, so HIP's last error is preserved. */
void advise_image(const char *expression, hipError_t error, const struct image *image);

#endif
