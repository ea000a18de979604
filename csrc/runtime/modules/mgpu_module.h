/* Functions about loaded images, for the callers in other folders. */
#ifndef MGPU_RT_MGPU_MODULE_H
#define MGPU_RT_MGPU_MODULE_H

/* Records which image the current call has loaded. If the library does not count calls, this
 * function does nothing. */
void module_tell_image(const void *data);

#endif
