/* Answers the manager's requests. */
#ifndef MGPU_RT_SERVICES_H
#define MGPU_RT_SERVICES_H

struct channel;

/* Carries out what the manager has asked for. */
void services_answer(struct channel *channel);

#endif
