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
from tests.support.child import Mgpu, in_cases
from tests.support.folders import folder
from tests.support.images import code_object

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


def run(llvm: int, strip: bool, **environment: str) -> tuple[subprocess.CompletedProcess, dict]:
    way = programs.ways()["linked"]
    program = programs.build("samename", llvm, ROUNDS, way.linked)
    with tempfile.TemporaryDirectory() as scratch:
        stats = Path(scratch, "stats")
        if strip:
            program = Path(scratch, "stripped")
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


#: Constants that hold images, each in a library of its own: the symbol, and the module in
#: samename.mlir. Maps them to the rows of their kernels: the launches, and the module's name.
CONSTANTS = {
    "two modules": (
        [("first_binary", "first"), ("second_bin_cst", "second")],
        {"first::mark": (1, "first"), "second::mark": (1, "second")},
    ),
    "one module": ([("first_binary", "first")], {"mark": (1, "first")}),
    # of modules with the same bytes, the row shows the first one's name
    "the same bytes": (
        [("main_kernel_0_binary", "first"), ("main_kernel_1_binary", "first")],
        {"mark": (2, "main_kernel_0")},
    ),
    "one name in two libraries": (
        [("main_kernel_gpubin_cst", "first"), ("main_kernel_gpubin_cst", "second")],
        {"HASH::mark": (1, "main_kernel")},
    ),
    "not made by MLIR": ([("table", "first")], {"mark": (1, None)}),
}


@in_cases(tuple(CONSTANTS), MGPU_RT_TRACE="trace.json")
def test_statistics_and_trace_show_one_name(mgpu: Mgpu, case: str) -> None:
    images, expected = CONSTANTS[case]
    at = folder("constants")
    os.chdir(at)
    for number, (symbol, module) in enumerate(images):
        find = ctypes.CDLL(str(constant(at / f"{number}.so", symbol, module))).image
        find.restype = ctypes.c_void_p
        loaded = mgpu.load(mgpu.ffi.cast("void *", find()))
        mgpu.launch(mgpu.function(loaded, "mark"))
    stats = mgpu.stats()
    assert len(stats["kernels"]) == len(stats["modules"])
    hashes = {module["image"][:8]: "HASH" for module in stats["modules"]}
    rows = {
        "::".join(hashes.get(word, word) for word in name.split("::")): row
        for name, row in stats["kernels"].items()
    }
    assert {name: (row["launches"], row["module"]) for name, row in rows.items()} == expected
    events = recordings.trace("trace.json")["traceEvents"]
    launched = {event["args"].get("kernel") for event in events} - {None}
    assert launched == set(stats["kernels"])
