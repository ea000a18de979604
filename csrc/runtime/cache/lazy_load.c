#include "cache/lazy_load.h"
#include "base/call.h"
#include "base/options.h"
#include "base/proof.h"

/* By image; and by what the program calls them, their addresses. */
static struct handle_map images = HANDLE_MAP(struct deferred), names = HANDLE_MAP(struct handle);

/* A load can wait where nothing can change the image or take it away. PTX cannot, as the next call
 * says at what level it is compiled. */
static bool can_wait(const struct load *load) {
    const enum image_kind kind = load->image.kind;
    return options.load_lazy && PROOF(waiting_image_is_a_constant, load->constant) &&
           !DOUBT(image_is_ptx, kind == IMAGE_PTX) && kind != IMAGE_TEXT && kind != IMAGE_BITCODE;
}

struct deferred *deferred_new(const struct load *load) {
    struct deferred *deferred = can_wait(load) ? handle_enter(&images, load->data) : NULL;
    int unused = DEFERRED_NEW;
    if (!deferred || !handle_enter(&names, deferred) ||
        !PROOF(image_waits_once, cas_acq_rel(&deferred->state, &unused, DEFERRED_HELD)))
        return NULL;
    deferred->device = load->device;
    call_tell(CALL_BYPASS);
    return deferred;
}

struct deferred *deferred_find(hipModule_t handle) {
    return options.load_lazy && handle_find(&names, handle) ? (struct deferred *)handle : NULL;
}
