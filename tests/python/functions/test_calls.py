"""Calls functions that need no GPU. The tests cover numbers, memrefs, results, and all type
errors."""

from __future__ import annotations

import ctypes
import gc
import math
import subprocess
import sys
import weakref
from pathlib import Path
from typing import Any

import numpy
import pytest

import mgpu_rt
from tests.python.functions import HOST, library
from tests.support.child import ROOT, environment
from tests.support.patience import run_process

ARRAY = numpy.arange(12, dtype="f4").reshape(3, 4)
ROW = numpy.arange(5, dtype="f4")


@pytest.fixture(scope="module", params=(22, 19))
def host(request: pytest.FixtureRequest) -> mgpu_rt.Library:
    return library(HOST, llvm=request.param)


# ---- arguments ----


@pytest.mark.parametrize(
    "array",
    [
        ARRAY,
        ARRAY.T,
        ARRAY[::-1, ::2],
        ARRAY[:, ::-1],
        numpy.asfortranarray(ARRAY),
        ARRAY[:0],
        ARRAY[:, :0],
        ARRAY[1:2],
        ARRAY.copy().reshape(4, 3)[1:, 1:],
        memoryview(ARRAY),
    ],
)
def test_strides_of_any_kind_are_passed(host: mgpu_rt.Library, array: Any) -> None:
    wanted = float(numpy.asarray(array).sum())
    assert host.sum(array) == host.sum_expanded(array) == wanted


def test_numbers_of_each_type_are_passed(host: mgpu_rt.Library) -> None:
    wanted = -1 - 2 * 2 - 3 * 4 - 4 * 8 - 5 * 16 + 1.5 * 32 + 2.25 * 64
    for function in (host.weigh, host.weigh_expanded):
        assert function(-1, -2, -3, -4, -5, 1.5, 2.25) == wanted
        given = (numpy.int8(-1), ctypes.c_int16(-2), numpy.int64(-3), -4, numpy.array(-5))
        assert function(*given, numpy.float64(1.5), ctypes.c_double(2.25)) == wanted
    assert host.twice(1.25) == 2.5 and math.isnan(host.twice(math.nan))
    assert host.twice(-math.inf) == -math.inf and math.copysign(1, host.twice(-0.0)) == -1
    assert [host.flip(x) for x in (True, 0, numpy.bool_(True))] == [False, True, False]


def test_an_offset_of_the_type_is_kept(host: mgpu_rt.Library) -> None:
    """The array's first element is always the memref's first element, even if the memref's type
    contains an offset."""
    numbers = numpy.arange(20, dtype="f4")
    assert host.at_offset(numbers[3:11:2]) == 5


def test_integers_of_either_sign_and_others_are_taken(host: mgpu_rt.Library) -> None:
    counts, truths = numpy.zeros(0, "u8"), numpy.zeros(2, "?")

    class Brain(numpy.ndarray):
        """Imitates an array of ml_dtypes.bfloat16."""

        class dtype:
            name = "bfloat16"

    brain = numpy.zeros(1, "V2").view(Brain)
    for kind in ("i4", "u4"):
        assert host.fixed(numpy.zeros((2, 3), kind), counts, truths, brain) is None


# ---- results ----


def test_results_are_numbers_and_arrays(host: mgpu_rt.Library) -> None:
    for function in (host.many, host.many_expanded):
        truth, own, half, table, same, again, k, tenth, index = function(ROW, -3)
        assert (truth, half, k, tenth, index) == (True, 1.5, -3, 0.1, -7)
        assert truth is True and (own == 2 * ROW).all() and (again == own).all()
        assert table.tolist() == [1, 2, 3] and table.dtype == "i4"
        assert same.ctypes.data == ROW.ctypes.data
        table[0] = 7  # the constant itself cannot be written
    assert host.double(ROW).tolist() == [0, 2, 4, 6, 8] and host.double(ROW[:0]).shape == (0,)
    assert host.one_element(2.5) == 2.5 and host.one_element(1).shape == ()
    assert host['an odd "name"']() == 42


def test_memory_is_freed_once_with_its_last_array(
    host: mgpu_rt.Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    library, found = mgpu_rt.load(), list[int]()
    free = library.free
    monkeypatch.setattr(library, "free", lambda address: (found.append(address), free(address)))
    results = host.many(ROW, 0)
    view, same = results[5][1:], results[4]
    del results
    gc.collect()
    assert found == [] and view.tolist() == [2, 4, 6, 8]
    del view
    gc.collect()
    assert len(found) == 1
    del same  # the caller's
    gc.collect()
    assert len(found) == 1


def test_a_result_that_is_an_argument_keeps_it(host: mgpu_rt.Library) -> None:
    given = numpy.arange(4, dtype="f4")
    alive = weakref.ref(given)
    same = host.many(given, 0)[4]
    del given
    gc.collect()
    assert alive() is not None and same.tolist() == [0, 1, 2, 3]
    del same
    gc.collect()
    assert alive() is None


def test_results_outlive_the_library() -> None:
    opened = library(HOST)
    _, own, _, table, *_ = opened.many(ROW, 0)
    function = opened.double
    del opened
    gc.collect()
    assert own.tolist() == [0, 2, 4, 6, 8] and table.tolist() == [1, 2, 3]
    assert function(ROW).tolist() == own.tolist()  # the function keeps the library alive


# ---- what does not fit ----


@pytest.mark.parametrize(
    ("name", "arguments", "error", "words"),
    [
        ("double", (), TypeError, r"double takes 1 arguments, \(memref<\?xf32>\), and got 0"),
        ("double", (ROW, ROW), TypeError, "and got 2"),
        ("double", (3,), TypeError, "a int is not an array"),
        ("double", ([1.0],), TypeError, "a list is not an array"),
        ("double", (ARRAY,), ValueError, r"the array's shape is \(3, 4\)"),
        ("double", (ROW.astype("f8"),), TypeError, "the elements are f64"),
        ("double", (ROW.astype("i4"),), TypeError, "the elements are si32"),
        ("double", (ROW.astype("c8"),), TypeError, "the elements are complex<f32>"),
        ("double", (ROW.astype(object),), TypeError, "the type 'object' are no argument"),
        ("double", (ROW.astype("M8[s]"),), TypeError, "the elements are <M8"),
        ("double", (numpy.zeros(4, "f4,f4"),), TypeError, "the elements are |V8"),
        ("double", (ROW[::-1],), ValueError, "the array has gaps between its elements"),
        ("double", (numpy.broadcast_to(numpy.float32(1), 4),), ValueError, "read-only"),
        ("double", (b"abcd",), ValueError, "read-only"),
        ("double", (mgpu_rt.In(3),), TypeError, "In takes an array, not 3"),
        ("double", (mgpu_rt.MemRef(ROW),), TypeError, "a MemRef is not an array"),
        ("fixed", (ARRAY,) * 4, TypeError, r"fixed, argument 1 \(memref<2x3xi32>\): the elements"),
        ("fixed", (numpy.zeros((3, 2), "i4"),) * 4, ValueError, r"the array's shape is \(3, 2\)"),
        ("at_offset", (ROW[:4],), ValueError, r"the array's strides are \(1,\) elements"),
        ("rank", (ROW,), TypeError, "Python cannot pass this type: give the memref a rank"),
        (
            "flip",
            (2,),
            ValueError,
            r"argument 1 \(i1\): 2 does not fit: the parameter takes 0",
        ),
        ("flip", (0.5,), ValueError, "0.5 does not fit"),
        (
            "weigh",
            (256, 0, 0, 0, 0, 0, 0),
            ValueError,
            "256 does not fit in the parameter's 1 byte",
        ),
        ("weigh", (0.5, 0, 0, 0, 0, 0, 0), TypeError, "'float' object cannot be interpreted as"),
        ("weigh", (0, 0, 0, 1 << 64, 0, 0, 0), ValueError, r"argument 4 \(i64\)"),
        ("weigh", ("1", 0, 0, 0, 0, 0, 0), TypeError, "a str is not a number"),
        ("weigh", (0, 0, 0, 0, 0, 1e60, 0), ValueError, "does not fit in the parameter's 4"),
        ("weigh", (0, 0, 0, 0, 0, 0, 10**400), ValueError, "does not fit in the parameter's 8"),
        ("twice", (1e39,), ValueError, "does not fit in the parameter's 4"),
        ("twice", (ROW,), TypeError, "a ndarray is not a number"),
        ("twice", (1j,), TypeError, "a real number, not 'complex'"),
        ("takes_vector", (ROW,), TypeError, "Python cannot pass this type"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(
    host: mgpu_rt.Library,
    name: str,
    arguments: tuple[Any, ...],
    error: type[Exception],
    words: str,
) -> None:
    with pytest.raises(error, match=words):
        host[name](*arguments)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("vectors", "vectors returns vector<4xf32>, which Python cannot receive"),
        ("half", "half returns f16, which Python cannot receive"),
        ("pair", "returns i32, i32 in registers, .* llvm.emit_c_interface"),
    ],
)
def test_results_that_python_cannot_take_are_refused(
    host: mgpu_rt.Library, name: str, words: str
) -> None:
    with pytest.raises(TypeError, match=words):
        host[name]


def test_functions_that_are_not_there_are_refused(host: mgpu_rt.Library) -> None:
    for name in ("elsewhere", "hidden", "main"):
        assert name not in host
        with pytest.raises(AttributeError, match=f"has no function '{name}'; it has sum, "):
            getattr(host, name)
        with pytest.raises(KeyError, match="has no function"):
            host[name]
    assert {"sum", "many"} <= set(dir(host))


# ---- what is no library of lowered code ----


def test_another_library_needs_the_types(tmp_path: Path) -> None:
    path = tmp_path / "library.so"
    code = b"double cos(double x) { return x ? 0 : 1; }"
    subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", path], input=code, check=True)
    known = mgpu_rt.Library(path, functions={"cos": "(f64) -> f64", "nope": "() -> ()"})
    assert known.cos(0) == 1.0
    with pytest.raises(AttributeError, match="defines no 'nope'"):
        _ = known.nope


def test_files_that_are_no_library_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        mgpu_rt.Library(tmp_path / "none.so")
    with pytest.raises(ValueError, match="is not an ELF file"):
        mgpu_rt.Library(HOST)
    compiled, command = tmp_path / "x.o", ("cc", "-c", "-x", "c", "-", "-o")
    subprocess.run([*command, compiled], input=b"int x;", check=True)
    words = "only ET_DYN and ET_EXEC .*; `mgpu-rt lower --emit library` makes one"
    with pytest.raises(OSError, match=words):
        mgpu_rt.Library(compiled)
    lacking = tmp_path / "lacking.so"
    code = b"int nobody_has(void); int f(void) { return nobody_has(); }"
    subprocess.run(["cc", "-shared", "-fPIC", *command[2:], lacking], input=code, check=True)
    with pytest.raises(OSError, match="undefined symbol: nobody_has"):
        mgpu_rt.Library(lacking)


# ---- the end of a process ----


#: An array, its view, a library and a thread inside a call exist when the interpreter exits. The
#: function that is registered before mgpu_rt's functions for the exit runs after them. It prints
#: whether the library is still loaded.
ENDS = """
import atexit, sys
def last():
    with open("/proc/self/maps") as maps:
        print("loaded" if sys.argv[1] in maps.read() else "unloaded", flush=True)
atexit.register(last)
import threading, numpy, mgpu_rt
library = mgpu_rt.Library(sys.argv[1])
kept = library.double(numpy.arange(4, dtype="f4"))
view = kept[1:]
class Cycle:
    pass
cycle = Cycle()
cycle.itself, cycle.array, cycle.library = cycle, library.double(kept), library
sys.modules["kept"] = cycle
def call():
    while True:
        library.double(kept)
threading.Thread(target=call, daemon=True).start()
print("end", flush=True)
"""


def test_a_process_ends_with_everything_alive() -> None:
    path = mgpu_rt.lower(HOST).resolve()  # as the system lists the file
    result = run_process(
        [sys.executable, "-c", ENDS, path], environment("softgpu", PYTHONPATH=str(ROOT))
    )
    assert (result.returncode, result.stdout, result.stderr) == (0, "end\nloaded\n", "")
