/* Answers the manager's requests. */
#ifndef MGPU_RT_SERVICES_H
#define MGPU_RT_SERVICES_H

struct channel;

/* Carries out the manager's pending request. */
void services_answer(struct channel *channel);

#endif
