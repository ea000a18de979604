/* Statistics of an image that an override has loaded. */
#ifndef MGPU_RT_MGPU_MODULE_H
#define MGPU_RT_MGPU_MODULE_H

/* Tells the calling thread's call which image it has loaded. Does nothing if nothing is counted. */
void module_tell_image(const void *data);

#endif
