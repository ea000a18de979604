"""The command's verdicts on sharing agree with the library's decisions."""

from __future__ import annotations

from mgpu_rt._images import image as images
from mgpu_rt._images.sharing import why_not_shared
from tests.runtime.images import corpus
from tests.support.child import Mgpu, in_child


def _load_twice(mgpu: Mgpu, content: bytes) -> bool | None:
    """Returns True if one module served both loads, and False if the loads got two modules. Returns
    None if HIP or NVIDIA's driver refuses the image."""
    before = _hits(mgpu)
    for _ in range(2):
        module = mgpu.load(mgpu.image(content))
        if not module:
            return None
        mgpu.ModuleUnload(module)
    return _hits(mgpu) > before


def _hits(mgpu: Mgpu) -> int:
    """Returns the hits; nothing is counted before the first call."""
    return mgpu.stats()["cache"]["modules"]["hits"] or 0


@in_child(policies=("builtin",), backends=("stub", "custub"), MGPU_RT_STATS="/dev/null")
def test_inspect_and_the_cache_agree_on_sharing(mgpu: Mgpu) -> None:
    """The test runs over AMD's HIP and NVIDIA's driver, each with images that it accepts."""
    outcomes: list[bool] = []
    for name, content in corpus.images().items():
        image = images.at(content) or images.ptx(content.rstrip(b"\0"))
        shared = _load_twice(mgpu, content)
        if shared is not None:
            assert (why_not_shared(image.loaded) is None) == shared, name
            outcomes.append(shared)
    assert outcomes.count(True) >= 10
    assert outcomes.count(False) >= 7
