"""What is said of sharing is what the library does."""

from __future__ import annotations

from mgpu_rt.images import image as images
from tests.images import corpus
from tests.support.child import Mgpu, in_child


def _load_twice(mgpu: Mgpu, content: bytes) -> bool | None:
    """True if one module served both loads; None if the driver below does not take the image."""
    before = _hits(mgpu)
    for _ in range(2):
        module = mgpu.load(mgpu.image(content))
        if not module:
            return None
        mgpu.ModuleUnload(module)
    return _hits(mgpu) > before


def _hits(mgpu: Mgpu) -> int:
    return mgpu.stats()["cache"]["modules"]["hits"]


def _asked(mgpu: Mgpu) -> int:
    """Loads that came to the driver: what is damaged does not."""
    return mgpu.stats()["hip"].get("hipModuleLoadData", {"calls": 0})["calls"]


@in_child(policies=("builtin",), backends=("stub", "custub"), MGPU_RT_STATS="/dev/null")
def test_the_cache_shares_what_is_said_to_be_shared(mgpu: Mgpu) -> None:
    """Over AMD's HIP and over NVIDIA's driver, each with the images that it takes."""
    outcomes: list[bool] = []
    refused = 0
    for name, content in corpus.images().items():
        said = images.at(content) or images.ptx(content.rstrip(b"\0"))
        before = _asked(mgpu)
        shared = _load_twice(mgpu, content)
        damaged = shared is None and _asked(mgpu) == before
        refused += damaged
        assert damaged == (said.damage is not None), name
        if shared is not None:
            assert said.shared == shared, name
            assert said.shared == (said.private is None), name
            outcomes.append(shared)
    assert outcomes.count(True) >= 10
    assert outcomes.count(False) >= 7
    assert refused >= 3
