#include "explore.h"

extern const struct scenario explore_events, explore_modules, explore_modules_reset,
    explore_streams, explore_streams_asked, explore_streams_reset, explore_streams_moved,
    explore_blocks, explore_blocks_asked, explore_blocks_graph, explore_blocks_joined,
    explore_blocks_reported, explore_blocks_sized, explore_staging, explore_streams_reported,
    explore_modules_reported;
const struct scenario *const scenarios[] = {&explore_events,
                                            &explore_modules,
                                            &explore_modules_reset,
                                            &explore_streams,
                                            &explore_streams_asked,
                                            &explore_streams_reset,
                                            &explore_blocks,
                                            &explore_blocks_asked,
                                            &explore_blocks_graph,
                                            &explore_blocks_joined,
                                            &explore_streams_moved,
                                            &explore_staging,
                                            &explore_streams_reported,
                                            &explore_modules_reported,
                                            &explore_blocks_reported,
                                            &explore_blocks_sized,
                                            NULL};
