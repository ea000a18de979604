"""Tests devices, streams and events as Python objects, the display in a notebook, and logging."""

from __future__ import annotations

import copy
import gc
import json
import logging
import pickle
import threading
from pathlib import Path

import numpy
import pytest

import mgpu_rt
from mgpu_rt import hooks
from mgpu_rt._launch.streams import handle_of
from mgpu_rt._notebook import Statistics, Table
from tests.python.functions import DEVICE, library
from tests.support import browser
from tests.support.child import Mgpu, in_child
from tests.support.patience import HANG

on_both = in_child(policies=("builtin",), backends=("stub", "softgpu"))
on_softgpu = in_child(policies=("builtin",), backends=("softgpu",))


# ---- streams and events ----


@on_both
def test_a_stream_is_lent_by_with(mgpu: Mgpu) -> None:
    runtime, outer, inner = mgpu_rt.load(), mgpu_rt.Stream(), mgpu_rt.Stream()
    assert handle_of(outer) == outer.handle == int(outer.__index__())
    with outer:
        assert runtime.chosen_stream == outer.handle
        with inner, inner:
            assert runtime.chosen_stream == inner.handle
        assert runtime.chosen_stream == outer.handle
        with pytest.raises(KeyError), inner:
            raise KeyError
        assert runtime.chosen_stream == outer.handle
    assert runtime.chosen_stream is None
    seen: list[object] = []
    with outer:
        thread = threading.Thread(target=lambda: seen.append(runtime.chosen_stream))
        thread.start()
        thread.join(HANG)
    assert seen == [None]
    assert mgpu.stderr() == ""


@on_both
def test_handles_end_with_their_objects(mgpu: Mgpu) -> None:
    stream, event = mgpu_rt.Stream(), mgpu_rt.Event()
    assert repr(stream).startswith("<mgpu_rt.Stream 0x")
    handle = stream.handle
    del stream
    gc.collect()
    again = mgpu_rt.Stream()
    assert again.handle == handle  # the library had released the stream
    again.close()
    again.close()
    with event:
        event.record()
        event.synchronize()
    for thing, kind in ((again, "stream"), (event, "event")):
        assert thing.closed and "closed" in repr(thing)
        with pytest.raises(ValueError, match=f"the {kind} is closed"):
            _ = thing.handle
    with pytest.raises(ValueError, match="the stream is closed"), again:
        pass
    assert mgpu_rt.load().chosen_stream is None
    assert mgpu.stderr() == ""


@on_softgpu
def test_events_order_streams_and_have_times(mgpu: Mgpu) -> None:
    functions, array = library(DEVICE), mgpu_rt.to_device(numpy.arange(1000, dtype="f4"))
    first, second = mgpu_rt.Stream(), mgpu_rt.Stream()
    start = mgpu_rt.Event(timing=True)
    start.record(first)
    with first:
        functions.scale(array, 2)
    second.wait(first.record())
    with second:
        functions.scale(array, 3)
        end = mgpu_rt.Event()
        end.record()
    end.synchronize()
    assert (array.to_host() == 6 * numpy.arange(1000)).all()
    assert end.milliseconds_since(start) >= 0
    with pytest.raises(mgpu_rt.HipError, match="the time between the events is not known"):
        mgpu_rt.Event().milliseconds_since(start)  # the event was never recorded
    first.synchronize()


@in_child(policies=("builtin",), HIPSTUB_DEVICES="2")
def test_a_device_is_the_threads_within_with(mgpu: Mgpu) -> None:
    first, second = mgpu_rt.Device(), mgpu_rt.Device(1)
    assert mgpu_rt.Device.current() == first
    with second, second:
        assert mgpu_rt.Device.current() == second
        assert mgpu_rt.empty(4).device == 1
        with first:
            assert mgpu_rt.Device.current() == first
        assert mgpu_rt.Device.current() == second
    assert mgpu_rt.Device.current() == first
    with pytest.raises(mgpu_rt.HipError, match="device 7 cannot be used"), mgpu_rt.Device(7):
        pass
    assert mgpu_rt.Device.current() == first
    with pytest.raises(ValueError, match="-1 is not a number of a device"):
        mgpu_rt.Device(-1)
    assert len({first, mgpu_rt.Device(0), second}) == 2 and repr(second) == "mgpu_rt.Device(1)"


# ---- notebooks ----

HOSTILE = '<script>alert("x")</script>'


def statistics() -> Statistics:
    counts = {"hits": 999, "misses": 1, "evictions": 0}
    held = {
        "allocated": 4096,
        "peak_allocated": 8192,
        "reserved": 1 << 20,
        "peak_reserved": 1 << 21,
    }
    calls = {"mgpuLaunchKernel": {"calls": 1000, "ns": 2_500_000}, HOSTILE: {"calls": 1, "ns": 1}}
    return Statistics(
        cache={"modules": counts, "streams": counts},
        memory={"0": held, "1": held},
        abi=calls,
        hip={"hipModuleLaunchKernel": {"calls": 1000, "ns": 1_500_000}},
    )


@on_softgpu
def test_statistics_are_a_dict_and_tables_are_text(mgpu: Mgpu) -> None:
    mgpu_rt.empty(4)
    found = mgpu_rt.stats()
    assert isinstance(found, dict) and json.loads(json.dumps(found)) == found
    assert pickle.loads(pickle.dumps(found)) == copy.deepcopy(found) == found
    assert "counted with MGPU_RT_STATS" in found._repr_html_()
    for table in (mgpu_rt.memory_summary(), mgpu_rt.memory_history()):
        assert isinstance(table, str) and table._repr_html_() == f"<pre>{table}</pre>"


def test_names_in_a_notebook_are_escaped() -> None:
    assert "<script>" not in statistics()._repr_html_() + Table(HOSTILE)._repr_html_()


@pytest.mark.skipif(browser.find() is None, reason="there is no Chromium")
def test_a_browser_shows_statistics(tmp_path: Path) -> None:
    path = tmp_path / "cell.html"
    path.write_text(f"<!doctype html><meta charset=utf-8>{statistics()._repr_html_()}")
    with browser.page() as page:
        page.show(path, width=700)
        rows = page.value(
            "[...document.querySelectorAll('tr')].map(r => [...r.cells].map(c => c.innerText))"
        )
    assert ["modules", "999", "1", "0"] in rows
    assert ["device 0", "4.1 kB", "8.2 kB", "1.0 MB", "2.1 MB"] in rows
    assert ["mgpuLaunchKernel", "1000", "2.500"] in rows


# ---- logging ----


def test_lines_of_hooks_go_to_pythons_logging(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Messages go to Python's logging if the program has configured logging, and to stderr
    otherwise."""
    logger = logging.getLogger("mgpu_rt")
    monkeypatch.setattr(logger, "propagate", False)  # pytest has its own handlers
    hooks.say("a line")
    assert capfd.readouterr().err == "a line\n"
    seen: list[logging.LogRecord] = []
    handler = logging.Handler()
    monkeypatch.setattr(handler, "emit", seen.append)
    logger.addHandler(handler)
    try:
        hooks.say("mgpu_rt: 5 % of \x1b")
    finally:
        logger.removeHandler(handler)
    assert [(r.levelname, r.getMessage()) for r in seen] == [("WARNING", "mgpu_rt: 5 % of \\u001b")]
    assert capfd.readouterr().err == ""
