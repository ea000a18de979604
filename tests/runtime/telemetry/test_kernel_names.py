"""All counts distinguish kernels that have the same name in different images."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from tests.support import programs, recordings
from tests.support.child import Mgpu, in_child
from tests.support.folders import in_folder
from tests.support.images import code_object

COUNTED = {"MGPU_RT_STATS": "/dev/null"}
ROUNDS = 5

#: A constant as MLIR creates it: static, and named after the gpu.module.
CONSTANT = """
__asm__(".section .rodata\\n.balign 4096\\n.type {symbol}, @object\\n{symbol}:\\n"
        ".incbin \\"{path}\\"\\n.size {symbol}, . - {symbol}\\n.text\\n");
const void *image(void) {{
    const void *at;
    __asm__("lea {symbol}(%%rip), %0" : "=r"(at));
    return at;
}}
"""


def constant(out: Path, symbol: str, module: str, *flags: str) -> Path:
    """Builds a shared library that contains an image of samename.mlir."""
    image, source = out.with_suffix(".image"), out.with_suffix(".c")
    image.write_bytes(code_object("samename", module))
    source.write_text(CONSTANT.format(symbol=symbol, path=image))
    subprocess.run(["cc", "-shared", "-fPIC", *flags, "-o", out, source], check=True)
    return out


def launch_mark(mgpu: Mgpu, *libraries: Path) -> None:
    for path in libraries:
        find = ctypes.CDLL(str(path)).image
        find.restype = ctypes.c_void_p
        module = mgpu.load(mgpu.ffi.cast("void *", find()))
        mgpu.launch(mgpu.function(module, "mark"))


def launch_marks(mgpu: Mgpu, *images: tuple[str, str]) -> None:
    """Launches a kernel of each image, which has a library in this folder. An image is named by its
    symbol, and by its module in samename.mlir."""
    folder = Path.cwd()
    launch_mark(mgpu, *(constant(folder / f"{n}.so", *one) for n, one in enumerate(images)))


def names(mgpu: Mgpu) -> list[str]:
    return sorted(mgpu.stats()["kernels"])


def run(llvm: int, strip: bool, **environment: str) -> tuple[subprocess.CompletedProcess, dict]:
    way = programs.ways()["linked"]
    program = programs.build("samename", llvm, ROUNDS, way.linked)
    with tempfile.TemporaryDirectory() as folder:
        stats = Path(folder, "stats")
        if strip:
            program = Path(folder, "stripped")
            built = programs.build("samename", llvm, ROUNDS, way.linked)
            subprocess.run(["strip", "-o", program, built], check=True)
        env = programs.run_environment(way, "stub", llvm, "builtin", **environment)
        env["MGPU_RT_STATS"] = f"1,{stats}"
        done = subprocess.run([program], env=env, capture_output=True, text=True)
        return done, recordings.stats(stats)


def test_the_constants_symbol_names_the_module() -> None:
    for llvm in (22, 19):
        done, stats = run(llvm, strip=False)
        assert done.stdout == "12\n"
        rows = {name: (row["launches"], row["module"]) for name, row in stats["kernels"].items()}
        assert rows == {"first::mark": (ROUNDS, "first"), "second::mark": (ROUNDS, "second")}
        assert {(m["name"], *m["kernels"]) for m in stats["modules"]} == {
            ("first", "first::mark"),
            ("second", "second::mark"),
        }
        for module in stats["modules"]:
            assert f" {module['image'][:8]}::mark\n" in done.stderr


def test_a_stripped_program_shows_the_images_hash() -> None:
    _, stats = run(22, strip=True)
    expected = {f"{module['image'][:8]}::mark" for module in stats["modules"]}
    assert len(expected) == 2
    assert set(stats["kernels"]) == expected
    assert {row["module"] for row in stats["kernels"].values()} == {None}


def test_a_program_that_was_rebuilt_since_names_no_module(tmp_path: Path) -> None:
    way = programs.ways()["linked"]
    program = shutil.copy(programs.build("samename", 22, ROUNDS, way.linked), tmp_path / "program")
    env = programs.run_environment(way, "stub", 22, "builtin", MGPU_RT_STATS=str(tmp_path / "s"))
    subprocess.run([program], env=env, capture_output=True, check=True)
    assert "first::mark" in recordings.stats(tmp_path / "s")["kernels"]
    later = time.time() + 60
    os.utime(program, (later, later))
    assert "first::mark" not in recordings.stats(tmp_path / "s")["kernels"]


@in_child(policies=("builtin",), MGPU_RT_TRACE="trace.json")
@in_folder
def test_the_trace_shows_the_same_names(mgpu: Mgpu) -> None:
    launch_marks(mgpu, ("first_binary", "first"), ("second_bin_cst", "second"))
    trace = recordings.trace("trace.json")
    launched = {event["args"].get("kernel") for event in trace["traceEvents"]}
    assert launched - {None} == {"first::mark", "second::mark"}


@in_child(policies=("builtin",), **COUNTED)
@in_folder
def test_a_name_that_one_image_has_stays_plain(mgpu: Mgpu) -> None:
    launch_marks(mgpu, ("first_binary", "first"))
    assert names(mgpu) == ["mark"]
    assert mgpu.stats()["kernels"]["mark"]["module"] == "first"


@in_child(policies=("builtin",), **COUNTED)
@in_folder
def test_images_of_the_same_bytes_share_a_row(mgpu: Mgpu) -> None:
    """Several modules may contain the same image; the image's row shows the name of the first such
    module."""
    launch_marks(mgpu, ("main_kernel_0_binary", "first"), ("main_kernel_1_binary", "first"))
    kernels = mgpu.stats()["kernels"]
    assert {name: row["launches"] for name, row in kernels.items()} == {"mark": 2}
    assert kernels["mark"]["module"] == "main_kernel_0"


@in_child(policies=("builtin",), **COUNTED)
@in_folder
def test_modules_of_one_name_in_two_libraries_are_told_apart_by_their_hash(mgpu: Mgpu) -> None:
    launch_marks(mgpu, ("main_kernel_gpubin_cst", "first"), ("main_kernel_gpubin_cst", "second"))
    images = {module["image"][:8] for module in mgpu.stats()["modules"]}
    assert names(mgpu) == sorted(f"{image}::mark" for image in images)


@in_child(policies=("builtin",), **COUNTED)
@in_folder
def test_a_constant_that_mlir_did_not_make_names_nothing(mgpu: Mgpu) -> None:
    launch_marks(mgpu, ("table", "first"))
    assert mgpu.stats()["kernels"]["mark"]["module"] is None
