"""Provides code to decode: AMD's device libraries, and kernels lowered by MLIR."""

from __future__ import annotations

import hashlib
import re
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from softgpu.tests.kernels import images as kernel_images
from softgpu.tests.kernels import matrix
from softgpu.tests.kernels.test_kernels import MODULES
from tests.support import lower

from .device import ROOT

BITCODE = Path("/usr/lib/x86_64-linux-gnu/amdgcn/bitcode")
LIBRARIES = ("ocml", "ockl", "hip", "asanrtl", "opencl")
LEVELS = (0, 1, 2, 3)
LIBRARY_LEVELS = (0, 2)  # -O1 to -O3 differ in the optimisation of bitcode, which AMD did already
# Bitcode files with settings, which are linked for every target, as in a real program.
SETTINGS = (
    "oclc_daz_opt_off",
    "oclc_finite_only_off",
    "oclc_unsafe_math_off",
    "oclc_correctly_rounded_sqrt_on",
    "oclc_wavefrontsize64_on",
    "oclc_abi_version_400",
)
# Device libraries 5.2.3 do not support gfx942, so the libraries are compiled for gfx942 with the
# settings of gfx90a.
KNOWN_AS = {"gfx942": "gfx90a"}
# AMDGPU has no f64 form of the operations below, so LLVM cannot compile the few functions that call
# such an operation.
NO_F64 = re.compile(r"call [^\n]*@llvm\.(exp|exp2|exp10|log|log2|log10|sin|cos|pow)\.f64\(")
DEFINE = re.compile(r"^define [^\n]*@([\w.]+)\(.*?^}$", re.M | re.S)


def run(*command: str | Path, text: str | None = None) -> str:
    done = subprocess.run([str(c) for c in command], input=text, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return done.stdout


def without_function(ir: str, name: str) -> str:
    """Replaces the function's definition in the IR with a declaration."""
    begin = re.search(rf"^define [^\n]*@{re.escape(name)}\(", ir, re.M)
    if not begin:
        raise RuntimeError(f"{name} cannot be compiled and is not found")
    end = ir.index("\n}\n", begin.start()) + 3
    header = ir[begin.start() : ir.index("\n", begin.start())]
    header = re.sub(r"( !\w+ !\d+)* \{$", "", header).replace("define ", "declare ", 1)
    header = re.sub(
        r"\b(linkonce_odr|internal|weak|hidden|protected|local_unnamed_addr) ", "", header
    )
    return ir[: begin.start()] + header + "\n" + ir[end:]


def text_of(image: bytes) -> bytes:
    """Returns the bytes of the text section of an object or code object."""
    with tempfile.TemporaryDirectory() as folder:
        obj, out = Path(folder) / "x.o", Path(folder) / "x.bin"
        obj.write_bytes(image)
        run("llvm-objcopy-22", "-O", "binary", "-j", ".text", obj, out)
        return out.read_bytes()


def device_library(name: str, target: str, opt: int) -> tuple[bytes, list[str]]:
    """Returns an object with every function that LLVM can compile for the target, and the names of
    the other functions."""
    isa = BITCODE / f"oclc_isa_version_{KNOWN_AS.get(target, target).removeprefix('gfx')}.bc"
    settings = [BITCODE / f"{s}.bc" for s in SETTINGS]
    left_out: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        obj = Path(folder) / "x.o"
        ir = run("llvm-dis-22", "-o", "-", BITCODE / f"{name}.bc")
        # Without external linkage the compiler would drop all functions, because nothing calls
        # them.
        ir = re.sub(r"^define (linkonce_odr|internal) (hidden )?", "define ", ir, flags=re.M)
        for found in DEFINE.finditer(ir):
            if NO_F64.search(found.group(0)):
                left_out.append(found.group(1))
        for function in left_out:
            ir = without_function(ir, function)
        while True:
            source, linked = Path(folder) / "x.ll", Path(folder) / "l.bc"
            source.write_text(ir)
            run("llvm-link-22", source, *settings, isa, "-o", linked)
            done = subprocess.run(
                [
                    *("llc-22", "-mtriple=amdgcn-amd-amdhsa", f"-mcpu={target}", f"-O{opt}"),
                    *("-filetype=obj", str(linked), "-o", str(obj)),
                ],
                capture_output=True,
                text=True,
            )
            if done.returncode == 0:
                return obj.read_bytes(), left_out
            bad = re.search(r"[Ii]n function:? '?([\w.]+)|on function '@([\w.]+)'", done.stderr)
            if not bad or len(left_out) > 200:
                raise RuntimeError(done.stderr[:2000])
            left_out.append(bad.group(1) or bad.group(2))
            ir = without_function(ir, left_out[-1])


#: The folders of the MLIR programs that the tests and the benchmarks run.
PROGRAMS = ("softgpu/tests/device/programs", "bench/programs", "tests/runtime/programs/lowered")


def programs(target: str, opt: int) -> Iterator[tuple[str, bytes]]:
    """Returns the code objects of the MLIR programs in PROGRAMS."""
    for folder in ("softgpu/tests/device/programs", *PROGRAMS):
        for source in sorted((ROOT / folder).glob("*.mlir")):
            for name, image in lower.code_objects(source, target, opt_level=opt).items():
                yield f"{source.stem}/{name}", image


def kernels(target: str, opt: int) -> Iterator[tuple[str, bytes]]:
    """Returns the code objects of the kernels that other tests compare with NumPy."""
    for module in MODULES:
        if module is matrix.MODULE and target != "gfx90a":
            continue
        source = kernel_images.text(module)
        options = {"opt_level": opt, "first": module.first}
        yield module.name, lower.code_objects(source, target, **options)["kernels"]


def kept_library(name: str, target: str, opt: int) -> bytes:
    """Caches the results of device_library between runs, because compiling the opencl library takes
    a minute."""
    recipe = hashlib.sha256((BITCODE / f"{name}.bc").read_bytes())
    recipe.update(Path(__file__).read_bytes())
    kept = ROOT / "build/corpus" / f"{name}-{target}-O{opt}-{recipe.hexdigest()[:16]}.o"
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=kept.parent) as folder:
            made = Path(folder) / "x.o"
            made.write_bytes(device_library(name, target, opt)[0])
            made.replace(kept)
    return kept.read_bytes()
