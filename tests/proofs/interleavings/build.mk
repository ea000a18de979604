# The explorer of interleavings: the runtime's caches and calls under a scheduler of threads.
#     make -f tests/proofs/interleavings/build.mk build/interleavings/explore
# tests/support/variants.py leaves a proof out of a copy (csrc/runtime/proof.h).

interleavings_dir := build/interleavings
interleavings_here := tests/proofs/interleavings
# Each includes the files of the cache of its name, to look at what is static there.
interleavings_scenarios := events modules streams blocks staging witness word
interleavings_included := streams/events modules/modules streams/streams_pool memory/block_pools memory/blocks memory/staging driver/witness
interleavings_layers := process telemetry modules/image driver shared streams modules memory launch sparse
interleavings_runtime := $(filter-out $(interleavings_included:%=csrc/runtime/%.c),$(foreach layer,$(interleavings_layers),$(wildcard csrc/runtime/$(layer)/*.c)))
interleavings_flags := -std=c11 -D_GNU_SOURCE -O1 -w -Icsrc/include -Icsrc/runtime -I$(interleavings_here) \
    -ffunction-sections -fno-builtin -DMGPU_RT_VERSION='""' -DWITHOUT=no_proof_is_left_out
interleavings_wrapped := pthread_mutex_lock pthread_mutex_timedlock pthread_mutex_unlock malloc calloc realloc \
    aligned_alloc free memcpy memset report_failure report_once \
    image_describe mapped_for_good device_memory_number device_shares_memory \
    page_watch_open page_watch_add page_watch_remove page_watch_settled page_watch_is_lost \
    pages_are_private syscall clock_gettime thread_is_alone
interleavings_objects := $(interleavings_runtime:csrc/runtime/%.c=$(interleavings_dir)/%.o) \
    $(interleavings_scenarios:%=$(interleavings_dir)/here/%.o)
interleavings_plain := explore threads model library reports program

$(interleavings_dir)/%.o: csrc/runtime/%.c $(interleavings_here)/build.mk
	@mkdir -p $(@D)
	$(CC) $(interleavings_flags) -fsanitize=thread -MMD -MP -c $< -o $@

$(interleavings_scenarios:%=$(interleavings_dir)/here/%.o): $(interleavings_dir)/here/%.o: $(interleavings_here)/%.c $(interleavings_here)/build.mk
	@mkdir -p $(@D)
	$(CC) $(interleavings_flags) -fsanitize=thread -MMD -MP -c $< -o $@

$(interleavings_plain:%=$(interleavings_dir)/here/%.o): $(interleavings_dir)/here/%.o: $(interleavings_here)/%.c $(interleavings_here)/build.mk
	@mkdir -p $(@D)
	$(CC) $(interleavings_flags) -O2 -MMD -MP -c $< -o $@

$(interleavings_dir)/explore: $(interleavings_objects) $(interleavings_plain:%=$(interleavings_dir)/here/%.o)
	$(CC) $^ $(interleavings_wrapped:%=-Wl,--wrap=%) -Wl,--gc-sections -pthread -ldl -o $@

-include $(wildcard $(interleavings_dir)/*/*.d $(interleavings_dir)/*/*/*.d)
