/* The process that has to wait for the manager when it ends. */
#ifndef MGPU_RT_ADOPTER_H
#define MGPU_RT_ADOPTER_H

#include <stdbool.h>

/* True if process 1 is known to wait for whatever it adopts, so that no zombie stays. It is the
 * machine's own, or it ignores SIGCHLD, or it sleeps with SIGCHLD and SIGTERM blocked, as an init
 * of a container does. An application may wait for its own children only. */
bool adopter_waits(void);

#endif
