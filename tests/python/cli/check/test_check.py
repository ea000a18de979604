"""`mgpu-rt check` reports a fault of each kind exactly once, and reports nothing for correct
programs."""

from __future__ import annotations

import functools
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bench import ROOT
from bench.models.zoo import MODELS
from mgpu_rt._cli import child, softgpu
from mgpu_rt._cli.check import reports
from tests.python.cli import seeded
from tests.python.runtime.hooked import hip, program
from tests.runtime.programs.test_programs import LEAKING
from tests.support import programs
from tests.support.child import library
from tests.support.command import NO_FAULT, UNEXAMINED, command
from tests.support.compiled import compile_c
from tests.support.sources import SOURCES
from tests.support.suites import sampled

HERE = Path(__file__).parent

Report = dict[str, Any]

#: For each fault in faults.mlir: the kind, the reporter, the access, the number of bytes, and the
#: distance from the allocation's end.
FAULTS = [
    ("out-of-bounds", "index_shifted", "store", 4, 0),
    ("out-of-bounds", "begins_before", "load", 4, -516),
    ("out-of-bounds", "far_beyond", "load", 4, 399_488),
    ("out-of-bounds", "size_cut", "store", 4, 0),
    ("out-of-bounds", "atomic_beyond", "load", 4, 0),
    ("out-of-bounds", "atomic_beyond", "atomic", 4, 0),
    ("out-of-bounds", "scalar_beyond", "load", 4, 0),
    ("outside-workgroup-memory", "group_beyond", "store", 4, None),
    ("outside-scratch", "scratch_beyond", "store", 4, None),
    ("write-to-code", "code_written", "store", 4, None),
    ("out-of-bounds", "mgpuMemcpy", "store", 512, -480),
    ("out-of-bounds", "mgpuMemset32", "store", 512, -480),
    ("out-of-bounds", "mgpuMemcpy", "load", 512, -480),
    ("use-after-free", "after_free", "store", 4, -512),
    ("use-after-free", "mgpuMemcpy", "load", 512, -512),
    ("double-free", "mgpuMemFree", None, None, -512),
    ("out-of-bounds", "registered_beyond", "store", 4, 0),
    ("use-after-unregister", "after_unregister", "store", 4, -512),
]


def check(*words: object, **env: str) -> subprocess.CompletedProcess[str]:
    return command("check", *words, **hip(), **env)


@functools.cache
def faults() -> tuple[subprocess.CompletedProcess[str], list[Report]]:
    """Runs faults.mlir, and returns check's reports."""
    built = program(HERE / "faults.mlir", lines=True)
    out = built.with_suffix(".json")
    done = check("--json", out, "--", built)
    return done, json.loads(out.read_text())["reports"]


def behind(report: Report) -> int | None:
    """Returns the number of bytes between the allocation's end and the accessed address."""
    if not (allocation := report.get("allocation")):
        return None
    return report["address"] - allocation["address"] - allocation["bytes"]


def test_each_fault_is_found_once() -> None:
    done, found = faults()
    assert done.returncode == 1, done.stderr
    rows = [
        (
            report["kind"],
            report.get("kernel") or report["call"],
            report.get("access"),
            report.get("bytes"),
            behind(report),
        )
        for report in found
    ]
    # The order of the reports does not matter.
    assert sorted(rows, key=str) == sorted(FAULTS, key=str)
    assert done.stderr.count("\nerror: ") + done.stderr.startswith("error: ") == len(FAULTS)
    assert done.stderr.endswith(f"\nmgpu-rt: {len(FAULTS)} faults{UNEXAMINED}\n")


def test_a_report_says_where_and_whose() -> None:
    done, found = faults()
    report = next(report for report in found if report.get("kernel") == "size_cut")
    assert [report[f"workgroup_{axis}"] for axis in "xyz"] == [1, 0, 0]
    assert (report["wave"], report["lane"], report["allocation"]["bytes"]) == (0, 56, 480)
    assert report["instruction"].startswith("global_store_dword ")
    assert report["allocation"]["allocated"][0]["symbol"] == "main"
    freed = next(report for report in found if report["kind"] == "double-free")
    assert freed["place"][0]["symbol"] == freed["allocation"]["freed"][0]["symbol"] == "main"
    assert "loads 4 bytes at 0x" in done.stderr and "4 bytes before allocation 1 [" in done.stderr


#: for each kind of access and each call, the operations in MLIR that cause the access or the call
OPERATIONS = {
    "load": ("memref.load", "memref.atomic_rmw"),
    "store": ("memref.store", "llvm.store"),
    "atomic": ("memref.atomic_rmw",),
    "mgpuMemcpy": ("gpu.memcpy",),
    "mgpuMemset32": ("gpu.memset",),
    "mgpuMemFree": ("gpu.dealloc",),
}


def test_a_report_says_the_line() -> None:
    text = (HERE / "faults.mlir").read_text().splitlines()
    done, found = faults()
    for report in found:
        file, number = (report.get("line") or report["place"][0]["line"]).split(":")
        line, above = text[int(number) - 1], text[: int(number)]
        operations = OPERATIONS[report.get("call") or report["access"]]
        assert file == "faults.mlir" and any(each in line for each in operations), report
        if kernel := report.get("kernel"):
            function = next(each for each in reversed(above) if "gpu.func" in each)
            assert f"@{kernel}(" in function, report
    assert "\n  at faults.mlir:12, offset 0x" in done.stderr
    assert "called by main (faults.mlir:1" in done.stderr


LAUNCH = """
  gpu.launch blocks(%x, %y, %z) in (%gx = %one, %gy = %one, %gz = %one)
      threads(%i, %ty, %tz) in (%sx = %n, %sy = %one, %sz = %one) {
    memref.store %value, MEMORY[%i] : memref<64xi32>
    gpu.terminator
  }
"""
SAME_CODE = f"""func.func @main() {{
  %one = arith.constant 1 : index
  %n = arith.constant 64 : index
  %value = arith.constant 1 : i32
  %right = gpu.alloc () : memref<64xi32>
  %small = gpu.alloc () : memref<63xi32>
  %wrong = memref.reinterpret_cast %small to offset: [0], sizes: [64], strides: [1]
      : memref<63xi32> to memref<64xi32>
  {LAUNCH.replace("MEMORY", "%right")}
  {LAUNCH.replace("MEMORY", "%wrong")}
  gpu.dealloc %small : memref<63xi32>
  gpu.dealloc %right : memref<64xi32>
  return
}}
"""


@pytest.mark.parametrize(("llvm", "cache"), [(22, "on"), (19, "off")])
def test_a_line_is_of_the_kernel_that_ran_if_two_have_the_same_code(
    llvm: int, cache: str, tmp_path: Path
) -> None:
    """LLVM 19's program loads a module at each launch, so without the cache HIP gives the memory of
    the first kernel's code to the second's."""
    source = tmp_path / "same.mlir"
    source.write_text(SAME_CODE)
    done = check("--llvm", llvm, source, MGPU_RT_CACHE=cache)
    assert done.returncode == 1, done.stderr
    line = SAME_CODE[: SAME_CODE.index("%wrong[%i]")].count("\n") + 1
    assert f"/same.mlir:{line}, offset 0x" in done.stderr


def test_without_a_line_table_a_report_says_the_place_in_the_code() -> None:
    done = check("--", program(HERE / "faults.mlir"))
    assert "\n  at offset 0x" in done.stderr and "main (faults+0x" in done.stderr


def test_a_right_program_keeps_its_status() -> None:
    done = check("--", program(HERE / "right.mlir"))
    assert (done.returncode, done.stderr) == (7, NO_FAULT)


def test_a_call_that_failed_was_not_checked() -> None:
    code = "import ctypes; ctypes.CDLL(None).mgpuModuleLoad(b'no image', ctypes.c_size_t(8))"
    done = check("--", sys.executable, "-c", code)
    assert "'hipModuleLoadData(" in done.stderr
    last = "\nmgpu-rt: found no fault, but 1 call failed: its work was not checked"
    assert done.stderr.endswith(f"{last}{UNEXAMINED}\n")
    assert done.returncode == 1


def test_the_last_line_names_the_signal_that_ended_the_program() -> None:
    code = "import ctypes, os; ctypes.CDLL(None).mgpuStreamSynchronize(None); os.abort()"
    done = check("--", sys.executable, "-c", code)
    said = f"mgpu-rt: found no fault before signal 6 (SIGABRT) ended the program{UNEXAMINED}\n"
    assert (done.returncode, done.stderr) == (134, said)
    names = [child.signal_name(number) for number in (0, -64, -36)]
    assert names == ["", "signal 64 (SIGRTMAX)", "signal 36"]


@pytest.mark.parametrize("end", ["os._exit(0)", "os.kill(os.getpid(), signal.SIGKILL)"])
def test_the_last_line_says_that_a_process_of_the_program_did_not_exit(end: str) -> None:
    code = f"import ctypes, os, signal; ctypes.CDLL(None).mgpuStreamSynchronize(None); {end}"
    done = check("--", "sh", "-c", '"$@"; exit 3', "sh", sys.executable, "-c", code)
    said = f"mgpu-rt: found no fault before a signal or _exit ended the program{UNEXAMINED}\n"
    assert (done.returncode, done.stderr.splitlines(keepends=True)[-1]) == (3, said)


def test_a_warning_names_the_kernel_that_ran_for_a_minute() -> None:
    frame = {"object": "p", "offset": 16, "symbol": "main", "line": "p.mlir:7"}
    other = {"op": "launch", "stream": 1, "place": [frame], "kernel": "spins"}
    said = reports.text({"kind": "unordered", "other": other}).splitlines()
    assert said[0].startswith("warning: kernel spins ran longer than a minute, for which check ")
    assert said[1:] == [
        "  launched by main (p.mlir:7)",
        "  a kernel that loops without end, or waits for a later call of the host, does not end "
        "here",
    ]
    assert reports.text({"kind": "unordered"}).startswith("warning: a kernel ran longer than a ")


def test_a_report_whose_places_have_no_frames_is_printed() -> None:
    """A stream that the program destroyed as an event has an end, but no place of it."""
    handle = {"object": "stream", "number": 2, "before": 1, "ended_before": []}
    empty = {"place": [], "made": [], "ended": [], **handle}
    said = reports.text({"kind": "use-after-destroy", "call": "mgpuMemcpy", **empty})
    assert "stream 1, which had this handle before, destroyed by an unknown call" in said
    alone, both = (
        reports.text({"kind": "never-destroyed", "count": count, "last": 1 + count, **empty})
        for count in (1, 2)
    )
    assert "stream 2 is never destroyed [" in alone
    assert "stream 2 is never destroyed, nor is stream 3, created there [" in both
    side = {"op": "copy", "stream": 1, "place": []}
    other = {"kind": "early-free", "call": "mgpuMemFree", **side, "other": side}
    assert "the copy on stream 1 by an unknown call" in reports.text(other)


INTERCEPTED = """
import contextlib, mgpu_rt, sys
from mgpu_rt.hooks import LaunchHook
stream = mgpu_rt.load().mgpuStreamCreate()
with mgpu_rt.intercept(LaunchHook()) if sys.argv[1:] else contextlib.nullcontext():
    mgpu_rt.load().mgpuStreamSynchronize(stream)
mgpu_rt.load().mgpuStreamDestroy(stream)
"""


def test_a_program_that_answers_its_own_calls_is_refused() -> None:
    """The calls after the hook would not be checked, and the last line named a signal."""
    done = check("--", sys.executable, "-c", INTERCEPTED, "hook")
    said = "mgpu_rt.intercept answers: leave the `with` out under check"
    assert done.returncode == 1 and said in done.stderr, done.stderr
    done = check("--", sys.executable, "-c", INTERCEPTED)
    assert (done.returncode, done.stderr) == (0, NO_FAULT)


#: Copies 4 bytes that lie just before the higher of the two closest allocations, and sets 4 bytes
#: just behind the lower one. Prints the bytes between both allocations, and their numbers.
BETWEEN = """
import ctypes
call = ctypes.CDLL(None)
call.mgpuMemAlloc.restype = ctypes.c_void_p
size, four = 4096, ctypes.c_size_t(4)
made = [call.mgpuMemAlloc(ctypes.c_uint64(size), None, False) for _ in range(64)]
placed = sorted(made)
gap, lower, higher = min((b - a - size, a, b) for a, b in zip(placed, placed[1:]))
call.mgpuMemcpy(ctypes.create_string_buffer(4), ctypes.c_void_p(higher - 4), four, None)
call.mgpuMemset32(ctypes.c_void_p(lower + size + 4), 0, ctypes.c_size_t(1), None)
print(gap, 1 + made.index(lower), 1 + made.index(higher))
"""
GUARD = 1 << 20  # bytes behind each allocation that belong to no other allocation


def test_an_access_between_two_allocations_is_of_the_nearer_one() -> None:
    """Both accesses lie in the guard behind the lower allocation."""
    done = check("--", sys.executable, "-c", BETWEEN)
    gap, lower, higher = map(int, done.stdout.split())
    assert gap == GUARD
    assert f", 4 bytes before allocation {higher} [out-of-bounds]" in done.stderr
    assert f", 4 bytes behind allocation {lower} [out-of-bounds]" in done.stderr


ON_THE_HOST = """
func.func @main() {
  %one = arith.constant 1 : index
  %zero = arith.constant 0 : index
  %number = arith.constant 1.0 : f32
  %memory = memref.alloc() : memref<4xf32>
  gpu.launch blocks(%a, %b, %c) in (%x = %one, %y = %one, %z = %one)
             threads(%d, %e, %f) in (%i = %one, %j = %one, %k = %one) {
    memref.store %number, %memory[%zero] : memref<4xf32>
    gpu.terminator
  }
  return
}
"""


def test_memory_of_the_host_is_named(tmp_path: Path) -> None:
    source = tmp_path / "host.mlir"
    source.write_text(ON_THE_HOST)
    built = program(source)
    done = check("--", built)
    assert done.returncode == 1
    assert ", an address of the host [unmapped]" in done.stderr
    assert "  this is memory of the host that is not registered: copy it to " in done.stderr
    done = command("run", "--device", "softgpu", "--", built, **hip())
    assert "4 bytes: memory of the host that is not registered (gpu.host_register" in done.stderr


WILD = """
func.func @main() {
  %one = arith.constant 1 : index
  %far = arith.constant 300000 : index
  %memory = gpu.alloc () : memref<100xi64>
  gpu.launch blocks(%a, %b, %c) in (%x = %one, %y = %one, %z = %one)
             threads(%d, %e, %f) in (%i = %one, %j = %one, %k = %one) {
    %number = memref.load %memory[%far] : memref<100xi64>
    memref.store %number, %memory[%d] : memref<100xi64>
    gpu.terminator
  }
  return
}
"""


def test_a_wild_access_names_no_memory_that_hip_registered(tmp_path: Path) -> None:
    """The address lies 286 KB behind memory that HIP has registered for its own use."""
    source = tmp_path / "wild.mlir"
    source.write_text(WILD)
    done = check("--", program(source))
    assert done.returncode == 1
    # The host may have memory of its own at the address, which the report then says.
    assert "loads 8 bytes" in done.stderr and "registered memory" not in done.stderr


REGISTERED = """
func.func @main() {
  %one = arith.constant 1 : index
  %behind = arith.constant 1001 : index
  %number = arith.constant 1.0 : f32
  %memory = memref.alloc() : memref<1000xf32>
  %any = memref.cast %memory : memref<1000xf32> to memref<*xf32>
  gpu.host_register %any : memref<*xf32>
  %all = memref.cast %memory : memref<1000xf32> to memref<?xf32>
  %device = call @mgpuMemGetDeviceMemRef1dFloat(%all) : (memref<?xf32>) -> memref<?xf32>
  gpu.launch blocks(%a, %b, %c) in (%x = %one, %y = %one, %z = %one)
             threads(%d, %e, %f) in (%i = %one, %j = %one, %k = %one) {
    memref.store %number, %device[%behind] : memref<?xf32>
    gpu.terminator
  }
  gpu.host_unregister %any : memref<*xf32>
  return
}
func.func private @mgpuMemGetDeviceMemRef1dFloat(memref<?xf32>) -> (memref<?xf32>)
"""


def test_an_access_behind_registered_memory_names_it(tmp_path: Path) -> None:
    source = tmp_path / "registered.mlir"
    source.write_text(REGISTERED)
    done = check("--", program(source))
    assert ", 4 bytes behind registered memory [out-of-bounds]" in done.stderr
    assert "registered memory (the program's or HIP's) has 4,000 bytes at " in done.stderr


# ---- no false report ----


#: The number of iterations of programs with a thousand. One program keeps its thousand, in which
#: each handle and address comes back a thousand times.
SHORTER = {
    **dict.fromkeys(("fanin", "forum", "globals", "layers", "loopargs", "overlap", "samename"), 50),
    "many": 4,  # each with fifty launches
}


@pytest.mark.check
@pytest.mark.parametrize("name", sorted(SOURCES))
def test_programs_have_no_fault(name: str) -> None:
    if name == "cluster":
        pytest.skip("its target is not emulated")
    done = check("--", programs.build(name, 22, SHORTER.get(name), library(), "softgpu"))
    # These programs wait for a stream only through an event, and never destroy that stream.
    left = name in LEAKING
    assert ("[never-destroyed]" in done.stderr) is left
    assert (done.stderr.count("[") > 0) is left


@pytest.mark.parametrize("name", sampled([model.name for model in MODELS], ["mlp"]))
def test_models_have_no_fault(name: str) -> None:
    model = seeded.executable(f"check {name}", seeded.source(name), name)
    wait = f"{softgpu.hip({})},hipDeviceSynchronize"
    done = check("--", "sh", "-c", 'echo 1 | "$0"', model, BENCH_WAIT=wait)
    assert (done.returncode, done.stderr) == (0, NO_FAULT)


BARRIER = """func.func @main() {
  %c1 = arith.constant 1 : index
  %threads = arith.constant THREADS : index
  %c100 = arith.constant 100 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%t, %ty, %tz) in (%sx = %c100, %sy = %c1, %sz = %c1) {
    %in = arith.cmpi ult, %t, %threads : index
    scf.if %in {
      gpu.barrier
    }
    gpu.terminator
  }
  return
}
"""


@pytest.mark.check
@pytest.mark.parametrize(
    ("threads", "words"),
    [
        (32, "32 of the wave's 64 lanes [divergent-barrier]"),
        (64, "1 of the workgroup's 2 waves [divergent-barrier]"),
        (100, ""),
    ],
)
def test_all_threads_must_reach_a_barrier(threads: int, words: str, tmp_path: Path) -> None:
    """The last wave of the workgroup has 36 lanes."""
    source = tmp_path / "barrier.mlir"
    source.write_text(BARRIER.replace("THREADS", str(threads)))
    done = check(source)
    lines = done.stderr.splitlines()
    if not words:
        assert (done.returncode, done.stderr) == (0, NO_FAULT)
        return
    said = f"error: kernel main_kernel reaches a barrier with {words}"
    assert (done.returncode, lines[0]) == (1, said)
    assert lines[1].startswith(f"  at {source}:9, ") and "s_barrier" in lines[1]
    assert lines[-1] == f"mgpu-rt: 1 fault{UNEXAMINED}"


# ---- blocks of the host's malloc ----


SOURCE = Path(__file__).with_name("host_blocks.c").read_text()

#: For each case: the access to the host's memory, the size of its block, and the address in it.
COPIES = {
    "too_small": ("store", 500, 0),
    "inside": ("store", 600, 100),
    "cleared": ("store", 500, 0),
    "shrunk": ("store", 500, 0),
    "aligned": ("store", 448, 0),
    "of_posix": ("store", 500, 0),
    "of_pages": ("store", 500, 0),
    "one_of_many": ("store", 400, 0),
    "empty": ("store", 0, 0),
    "read_too_far": ("load", 500, 0),
}


def test_copies_past_the_end_of_a_block_are_found(tmp_path: Path) -> None:
    built = library()
    flags = ("-w", "-O1", "-pthread", str(built), f"-Wl,-rpath,{built.parent}")
    program, out = compile_c(tmp_path / "copies", SOURCE, *flags), tmp_path / "found.json"
    done = command("check", "--json", out, "--", program, **hip())
    assert done.returncode == 1, done.stderr
    found = {
        report["place"][0]["symbol"]: (
            report["access"],
            report["allocation"]["bytes"],
            report["address"] - report["allocation"]["address"],
        )
        for report in json.loads(out.read_text())["reports"]
    }
    assert found == COPIES
    assert "error: mgpuMemcpy stores 512 bytes at 0x" in done.stderr
    assert ", the last 12 bytes of them behind the host's block [out-of-bounds]\n" in done.stderr
    assert "  the host's block has 500 bytes at 0x" in done.stderr
    assert done.stderr.endswith(f"\nmgpu-rt: {len(COPIES)} faults{UNEXAMINED}\n")


def test_a_json_file_is_this_runs(tmp_path: Path) -> None:
    """The file has the level of each report, and the failed calls. No earlier file stays."""
    out, bad = tmp_path / "found.json", tmp_path / "bad.mlir"
    check("--json", out, ROOT / "examples" / "race.mlir")
    found = json.loads(out.read_text())
    assert ([each["level"] for each in found["reports"]], found["failed_calls"]) == (["error"], 0)
    bad.write_text("func.func @main(")
    assert check("--json", out, bad).returncode == 2
    assert not out.exists()
