/* Reads the recordings of processes that ended before they wrote their JSON. */
#ifndef MGPU_RT_RECORDINGS_H
#define MGPU_RT_RECORDINGS_H

/* Returns the JSON of the recording at a path, as mgpu_rt_recording_json does. */
char *recording_json(const char *path);

#endif
