"""Builds the cffi module mgpu_rt._host and the C library libmlir_rocm_runtime.so.

Both come out of one `build_ext`: the library is compiled by the same setuptools compiler, from the
declarations in csrc/abi.def. In a checkout (`--inplace`, editable installs) it lies in build/lib,
in a wheel in mgpu_rt/lib.
"""

from __future__ import annotations

import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT))

from mgpu_rt import __version__, abi  # noqa: E402

LIBRARY = "libmlir_rocm_runtime.so"
CUDA_LIBRARY = "libmlir_cuda_runtime.so"
#: The names by which programs lowered by some LLVM ask for the library (its SONAME there), and for
#: its twin: it serves those too.
SONAMES = [
    CUDA_LIBRARY,
    *(
        f"{library}.{version}"
        for library in (LIBRARY, CUDA_LIBRARY)
        for version in (*range(12, 18), *(f"{major}.1" for major in range(18, 24)), "24.0")
    ),
]

#: Across files, too: the exported functions take in the implementations, and these the tables'
#: lookups. It spares a fifth of the fast path's instructions.
OPTIMISE = ["-O3", "-flto"]


def compile_flags() -> list[str]:
    """The library's own flags: the warnings are errors of ours, not of a newer compiler."""
    return [
        *("-std=c11", "-D_GNU_SOURCE", *OPTIMISE, "-g", "-fPIC", "-fvisibility=hidden"),
        *("-Wall", "-Wextra", "-Wpedantic"),
        f'-DMGPU_RT_VERSION="{__version__}"',
    ]


class BuildRuntime(build_ext):
    """build_ext, and the C library after it."""

    def run(self) -> None:
        super().run()
        self.build_runtime()

    def build_runtime(self) -> None:
        editable = self.inplace or self.editable_mode
        out = ROOT / "build" / "lib" if editable else Path(self.build_lib, "mgpu_rt", "lib")
        work = ROOT / "build" / "runtime"
        out.mkdir(parents=True, exist_ok=True)
        work.mkdir(parents=True, exist_ok=True)
        exports = work / "exports.map"
        exports.write_text(abi.export_map(), encoding="utf-8")
        compiler = self.compiler
        # Only what these sources need: the compiler that built Python has flags of its own.
        compiler.set_executables(compiler_so="cc", linker_so="cc -shared")
        sources = sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("csrc/runtime/*.c"))
        objects = compiler.compile(
            sources,
            output_dir=str(work),
            include_dirs=[str(ROOT / "csrc" / "include")],
            extra_preargs=compile_flags(),
            depends=[str(path) for path in ROOT.glob("csrc/**/*.[h]")]
            + [str(path) for path in ROOT.glob("csrc/**/*.def")],
        )
        compiler.link_shared_object(
            objects,
            str(out / LIBRARY),
            libraries=["dl", "pthread"],
            extra_postargs=[
                *OPTIMISE,
                f"-Wl,-soname,{LIBRARY}",
                f"-Wl,--version-script={exports}",
                # A host that closes the library leaves exit handlers and threads' blocks behind.
                *("-Wl,-z,nodelete", "-Wl,-z,relro", "-Wl,-z,now", "-Wl,-z,defs"),
                *("-Wl,--as-needed", "-Wl,-O1"),
            ],
        )
        if editable:  # which Python manages the caches of what was built here
            (out / "mgpu_rt.python").write_text(f"{sys.executable}\n", encoding="utf-8")
        if not editable:
            for table in ("abi.def", "runtime/options.def"):
                self.copy_file(str(ROOT / "csrc" / table), str(out.parent))
        for name in SONAMES:
            link = out / name
            link.unlink(missing_ok=True)
            link.symlink_to(LIBRARY)
        probe = compiler.compile(["csrc/probe.c"], output_dir=str(work), extra_preargs=["-O1"])
        compiler.link_executable(
            probe, "mgpu-rt-probe", str(out), ["mlir_rocm_runtime"], [str(out)]
        )


setup(
    cffi_modules=["mgpu_rt/build.py:ffibuilder"],
    cmdclass={"build_ext": BuildRuntime},
)
