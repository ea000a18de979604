"""Checks the library as a linker and a loader see it: one binary serves callers of every LLVM."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from cffi import FFI
from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile

from mgpu_rt import _abi
from tests.release.docs.generated import FORKS
from tests.support.child import ROOT, STUB, Mgpu, environment, in_child
from tests.support.compiled import LIB, RUNTIME, compile_c, stream_program
from tests.support.images import code_object
from tests.support.patience import run_process
from tests.support.suites import in_check

INCLUDE = ROOT / "csrc" / "include"
EXTENSIONS = re.findall(r"\b(mgpu_rt_\w+)\(", _abi.cdef())
SONAME_LINKS = [
    *(f"{RUNTIME}.{major}" for major in range(12, 18)),
    *(f"{RUNTIME}.{major}.1" for major in range(18, 24)),
    (NEWEST := f"{RUNTIME}.24.0"),
]


@pytest.fixture(scope="module")
def elf():
    with open(LIB / RUNTIME, "rb") as file:
        yield ELFFile(file)


def _dynamic(elf: ELFFile, tag: str) -> list:
    section = elf.get_section_by_name(".dynamic")
    assert isinstance(section, DynamicSection)
    return list(section.iter_tags(tag))


# ---- the library ----


def test_exports_are_exactly_the_declared_names(elf: ELFFile) -> None:
    exported = {
        symbol.name
        for symbol in elf.get_section_by_name(".dynsym").iter_symbols()
        if symbol["st_shndx"] != "SHN_UNDEF"
    }
    assert exported == {function.name for function in _abi.functions()} | set(EXTENSIONS)


def test_a_loader_finds_the_library_as_stock(elf: ELFFile) -> None:
    """The library links neither libpython nor libamdhip64: it finds these two libraries when it
    needs them. It stays loaded, and binds its functions when it is loaded."""
    DF_1_NOW, DF_1_NODELETE = 0x1, 0x8
    needed = {tag.needed for tag in _dynamic(elf, "DT_NEEDED")}
    assert {"libc.so.6"} <= needed <= {"libc.so.6", "ld-linux-x86-64.so.2"}
    assert [tag.soname for tag in _dynamic(elf, "DT_SONAME")] == [RUNTIME]
    (flags,) = _dynamic(elf, "DT_FLAGS_1")
    assert flags["d_val"] & DF_1_NODELETE and flags["d_val"] & DF_1_NOW
    assert "PT_GNU_RELRO" in [segment["p_type"] for segment in elf.iter_segments()]
    assert sorted(path.name for path in LIB.glob(f"{RUNTIME}.*")) == sorted(SONAME_LINKS)


@pytest.mark.parametrize(
    "soname", in_check([RUNTIME, *SONAME_LINKS], lambda name: name not in (RUNTIME, NEWEST))
)
def test_a_program_linked_with_any_llvm_is_served(soname: str, tmp_path: Path) -> None:
    """The program is linked with a name that the library has in some LLVM release."""
    env = environment(
        LD_LIBRARY_PATH=str(LIB), MGPU_RT_MANAGER="off", HIPSTUB_LOG=str(tmp_path / "log")
    )
    program = stream_program(tmp_path, soname)
    result = run_process([program], env)
    assert (result.returncode, result.stdout, result.stderr) == (3, "done\n", "")
    assert json.loads((tmp_path / "log").read_text())["counts"]["hipStreamCreate"] == 1


# ---- the header ----


@pytest.mark.parametrize(("compiler", "standard"), [("cc", "c11"), ("c++", "c++17")])
def test_header_compiles(compiler: str, standard: str, tmp_path: Path) -> None:
    if not shutil.which(compiler):
        pytest.skip(f"no {compiler} here")
    language = "c" if compiler == "cc" else "c++"
    flags = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only", f"-I{INCLUDE}"]
    result = subprocess.run(
        [compiler, f"-std={standard}", *flags, "-x", language, "-"],
        input='#include "mgpu_rt.h"\n#include "mgpu_rt.h"\n',
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr


def test_the_private_header_declares_what_cffi_does(tmp_path: Path) -> None:
    """If a function is declared twice with different types, the compiler reports an error."""
    header = "mgpu_rt_private.h"
    text = re.sub(r"/\*.*?\*/", "", (INCLUDE / header).read_text(), flags=re.DOTALL)
    named = re.findall(r"\b(mgpu_rt_\w+)\(", _abi.PRIVATE)
    assert re.findall(r"\b(mgpu_rt_\w+)\(", text) == named
    source = f'#include "{header}"\n{_abi.PRIVATE}\nint main(void) {{ return 0; }}\n'
    compile_c(tmp_path / "both", source, f"-I{INCLUDE}", "-Werror", "-Wall")


# ---- what old callers do not pass ----

#: The functions that gained arguments after LLVM 12, as LLVM 12 to 17 declare them. LLVM's own
#: tests use one function with two arguments and with three arguments. Since LLVM 22,
#: mgpuModuleLoadJIT also takes a size. For mgpuLaunchClusterKernel, LLVM passes the arguments that
#: are declared below, and AMD's fork passes one more argument.
OLD = {
    "mgpuModuleLoad": "hipModule_t (*)(void *)",
    "mgpuModuleLoadJIT": "hipModule_t (*)(void *, int)",
    "mgpuLaunchKernel": "void (*)(hipFunction_t, intptr_t, intptr_t, intptr_t, intptr_t, intptr_t,"
    " intptr_t, int32_t, hipStream_t, void **, void **)",
    "mgpuLaunchKernelRT": "void (*)(void *, intptr_t, intptr_t, intptr_t, intptr_t, intptr_t,"
    " intptr_t, int32_t, hipStream_t, void **, void **)",
    "mgpuLaunchClusterKernel": "void (*)(hipFunction_t, intptr_t, intptr_t, intptr_t, intptr_t,"
    " intptr_t, intptr_t, intptr_t, intptr_t, intptr_t, int32_t, hipStream_t, void **, void **)",
    "mgpuMemAlloc": "void *(*)(uint64_t, hipStream_t)",
    "mgpuEventElapsedTime": "float (*)(hipEvent_t, hipEvent_t)",
}


def test_every_late_argument_is_tested() -> None:
    assert {f.name for f in _abi.functions() if "late_" in f.params} == set(OLD)


def _late(mgpu: Mgpu, name: str, garbage: int | None):
    """Returns a function that calls the named function with `garbage` as the last argument. If
    `garbage` is None, the call has no last argument, as in a program of LLVM 12."""
    function = getattr(mgpu.lib, name)
    if garbage is None:
        return mgpu.ffi.cast(OLD[name], function)
    if name == "mgpuMemAlloc":
        return lambda *arguments: function(*arguments, bool(garbage))
    if name == "mgpuEventElapsedTime":
        return lambda *arguments: function(*arguments, mgpu.ffi.cast("void *", garbage))
    return lambda *arguments: function(*arguments, garbage)


def _is_address(value: int | str) -> bool:
    return isinstance(value, int) and value >= 1 << 16


def _calls(mgpu: Mgpu, image: bytes, garbage: int | None) -> list[tuple]:
    """Calls the functions that gained arguments after LLVM 12, once each; returns HIP's calls and
    answers."""
    ffi, lib = mgpu.ffi, mgpu.lib
    stub = FFI()
    stub.cdef("char *hipstub_json(void); void hipstub_reset(void);")
    record = stub.dlopen(str(STUB))
    stream = lib.mgpuStreamCreate()
    lib.mgpuEventElapsedTime(ffi.NULL, ffi.NULL, ffi.NULL)  # from here on events have times
    record.hipstub_reset()
    module = _late(mgpu, "mgpuModuleLoad", garbage)(mgpu.image(image))
    _late(mgpu, "mgpuModuleLoadJIT", garbage)(mgpu.image(image), 2)
    launch = (1, 2, 3, 4, 5, 6, 0, stream, ffi.NULL, ffi.NULL)
    function = mgpu.function(module, "test_func")
    _late(mgpu, "mgpuLaunchKernel", garbage)(function, *launch)
    _late(mgpu, "mgpuLaunchClusterKernel", garbage)(function, 1, 1, 1, *launch)
    _late(mgpu, "mgpuLaunchKernelRT", garbage)(ffi.cast("void *", function), *launch)
    lib.mgpuMemFree(_late(mgpu, "mgpuMemAlloc", garbage)(4096, stream), stream)
    start, stop = lib.mgpuEventCreate(), lib.mgpuEventCreate()
    _late(mgpu, "mgpuEventElapsedTime", garbage)(start, stop)
    lib.mgpuEventDestroy(start)
    lib.mgpuEventDestroy(stop)
    calls = json.loads(stub.string(record.hipstub_json()))["calls"]
    lib.mgpuStreamDestroy(stream)
    return [
        (call["name"], call["result"], *(v for v in call["args"].values() if not _is_address(v)))
        for call in calls
    ]


@in_child(MGPU_RT_CACHE="off")
def test_garbage_in_late_arguments_changes_nothing(mgpu: Mgpu) -> None:
    image = code_object("forum")
    expected = _calls(mgpu, image, 0)
    names = [call[0] for call in expected]
    assert names.count("hipModuleLoadData") == 2
    assert {"hipModuleLaunchKernel", "hipLaunchKernel", "hipMalloc", "hipFree"} <= set(names)
    for garbage in (None, 1, len(image), 0x7FFF12345678, 2**64 - 1):
        assert _calls(mgpu, image, garbage) == expected, garbage


# ---- what LLVM emits ----

#: The folder with the function names that a release's passes emit.
EMITTERS = {
    15: Path("/usr/lib/llvm-15/bin/mlir-opt"),
    19: Path("/usr/lib/llvm-19/bin/mlir-opt"),
    22: Path("/usr/lib/llvm-22/lib/libMLIR.so.22.1"),
}


@pytest.mark.parametrize("release", EMITTERS)
def test_every_name_that_llvm_emits_is_served(release: int) -> None:
    """If a release emits a function's name, the table says that this release calls the function.
    The library lacks the functions for 2:4 sparse matrices."""
    data = EMITTERS[release].read_bytes()
    emitted = {name.decode() for name in re.findall(rb"\0(mgpu[A-Z]\w+)(?=\0)", data)}
    served = {f.name for f in _abi.functions() if f.first_llvm <= release <= f.last_llvm}
    assert len(emitted) >= 18
    lacking = {name for name in emitted - served if "SparseLt" not in name}
    assert lacking <= {"mgpuCusparseLtCreate2To4SpMat"}


def test_no_release_emits_names_of_other_releases() -> None:
    others = {function.name for function in _abi.functions() if function.last_llvm == 0}
    assert others == set(FORKS)
