"""Lowers MLIR programs to host objects, to code objects, and to what mlir-runner takes.

Three toolchains, chosen by the LLVM release whose calling habits are wanted:

* 22: everything by 22; the module is loaded by a global constructor, 5 calls a launch.
* 19: device code by 22, host code by 19; 7 calls a launch. The device code is not 19's own, since
  AMD's HIP 5.2.3 refuses the image that 19 makes.
* 15: the command of the forum's report, word for word; 7 calls a launch. It takes programs with one
  launch of each kernel and no host function that takes a dynamic memref: forum, loopargs, globals,
  samename.

A chip named sm_… is NVIDIA's: 22 and 19 lower for it through NVVM, to a cubin where NVIDIA's ptxas
is on PATH, to PTX, which the driver compiles, where it is not.

Every result is kept under ``build/objects`` by the content of what it was made from, so that a
second request costs a hash (under 1 ms) and not a lowering (0.2 s).
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = ROOT / "bench" / "programs"
OBJECTS = ROOT / "build" / "objects"

DEFAULT_CHIP = "gfx90a"
FORUM_CHIP = "gfx906"
LLVM_RELEASES = (22, 19, 15)

# Raised whenever the command lines below change, so that old results are not served for new ones.
RECIPE = 2

# The device part. Code object v4 (abi=400) is the newest that HIP 5.2.3 loads.
_DEVICE_PASSES = (
    "{first}expand-strided-metadata,rocdl-attach-target{{chip={chip} abi=400 O={opt}}},"
    "gpu.module(convert-scf-to-cf,convert-gpu-to-rocdl{{chipset={chip} runtime=HIP}},"
    "reconcile-unrealized-casts),gpu-module-to-binary{{format=bin}}"
)
_NVIDIA_PASSES = (
    "{first}expand-strided-metadata,nvvm-attach-target{{chip={chip} features=+ptx80 O={opt}}},"
    "gpu.module(convert-scf-to-cf,convert-gpu-to-nvvm,reconcile-unrealized-casts),"
    "gpu-module-to-binary{{format={image}}}"
)
_HOST_PASSES = (
    "convert-scf-to-cf,gpu-to-llvm,finalize-memref-to-llvm,convert-func-to-llvm,"
    "convert-cf-to-llvm,convert-arith-to-llvm,reconcile-unrealized-casts"
)
_FORUM_PASSES = (
    "-gpu-kernel-outlining",
    "-convert-scf-to-cf",
    "-convert-func-to-llvm=use-bare-ptr-memref-call-conv",
    "-pass-pipeline=gpu.module(strip-debuginfo,convert-gpu-to-rocdl,reconcile-unrealized-casts)",
    "-convert-math-to-llvm",
    "-gpu-to-hsaco=chip={chip}",
    "-gpu-to-llvm",
    "-reconcile-unrealized-casts",
)

_ITERATIONS = re.compile(r"(%iterations\s*=\s*arith\.constant\s+)\d+")
_BINARY = re.compile(
    r'gpu\.binary @([\w.$-]+).*?\b(?:bin|assembly) = "((?:[^"\\]|\\.)*)"', re.DOTALL
)
_ASSEMBLY = re.compile(r'(\bassembly = "(?:[^"\\]|\\.)*)"')
_ESCAPE = re.compile(rb"\\([0-9A-Fa-f]{2}|.)", re.DOTALL)


class ToolchainMissing(RuntimeError):
    """A tool is not installed. ``tool`` is its name, ``package`` the apt package that has it."""

    def __init__(self, tool: str, package: str) -> None:
        super().__init__(f"{tool} is missing: apt-get install {package}")
        self.tool = tool
        self.package = package


class LoweringFailed(RuntimeError):
    """A tool refused a program; the message carries the command and the tool's own words."""


def tool(name: str, llvm: int) -> Path:
    """The path of one tool of one LLVM release, e.g. ``tool("mlir-opt", 22)``.

    Raises ToolchainMissing. A release's own directory is preferred over PATH, where a
    differently built tool of the same name may be found first.
    """
    own = Path(f"/usr/lib/llvm-{llvm}/bin/{name}")
    if own.exists():
        return own
    found = shutil.which(f"{name}-{llvm}")
    if found:
        return Path(found)
    if name.startswith("mlir-"):
        package = f"mlir-{llvm}-tools"
    elif name == "ld.lld":
        package = f"lld-{llvm}"
    else:
        package = f"llvm-{llvm}"
    raise ToolchainMissing(f"{name}-{llvm}", package)


def runner(llvm: int) -> Path:
    """The JIT runner of a release: mlir-runner, or mlir-cpu-runner up to 19."""
    return tool("mlir-runner" if llvm >= 20 else "mlir-cpu-runner", llvm)


def print_library() -> Path:
    """A shared library with printF32, printI64, printMemrefF32 and the like, for some programs.

    To link with, or to name in mlir-runner's --shared-libs. Unlike LLVM's own it brings no LLVM.
    """
    source = ROOT / "bench" / "native" / "print.c"
    compiler = _compiler()

    def make(result: Path) -> None:
        name = "-Wl,-soname,libmgpu_print.so"
        _run([compiler, "-std=c11", "-O2", "-fPIC", "-shared", name, source, "-o", result])

    kept = _kept("libmgpu_print", ".so", source.read_text(), ("print",), lambda: [compiler], make)
    # The plain name is what a program linked with it asks the loader for.
    plain = OBJECTS / "libmgpu_print.so"
    if not plain.exists() or not plain.samefile(kept):
        with tempfile.TemporaryDirectory(dir=OBJECTS) as scratch:
            Path(scratch, "link").symlink_to(kept.name)
            Path(scratch, "link").replace(plain)
    return plain


def with_iterations(text: str, iterations: int | None) -> str:
    """The program with its loop count replaced: the number in ``%iterations = arith.constant``."""
    if iterations is None:
        return text
    replaced, count = _ITERATIONS.subn(rf"\g<1>{iterations}", text)
    if count != 1:
        raise ValueError(f"the program defines %iterations {count} times, not once")
    return replaced


def lower(
    program: Path,
    *,
    llvm: int,
    out: Path | None = None,
    chip: str | None = None,
    iterations: int | None = None,
    opt_level: int = 2,
    image: str | None = None,
    first: str = "",
) -> Path:
    """Lowers a program to a position-independent host object file and returns its path.

    ``chip`` is gfx90a where it is not given, gfx906 for 15 as in the forum's report. ``image`` is
    the form of the device code: bin, or isa (PTX), which is for NVIDIA's chips. ``first`` are
    passes that go before the recipe's own (not for 15), for operations that it does not take.
    ``out`` is where a copy is put; without it the path returned is the kept one, which must not be
    changed. Raises ToolchainMissing, LoweringFailed, ValueError.
    """
    text = with_iterations(program.read_text(), iterations)
    chip = _chip(llvm, chip)
    image = _image(chip, image)

    def make(result: Path) -> None:
        compile_dialect(_llvm_dialect(text, llvm, chip, opt_level, image, first), llvm, result)

    def tools() -> list[Path]:
        return [tool("mlir-translate", llvm), tool("llc", llvm), *_opt_tools(llvm, chip, image)]

    kept = _kept(
        program.stem,
        ".o",
        text,
        ("o", llvm, chip, opt_level, image, *([first] if first else [])),
        tools,
        make,
    )
    if out is None:
        return kept
    out.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(kept, out)
    return out


def compile_dialect(dialect: bytes, llvm: int, out: Path) -> None:
    """Compiles a program in the LLVM dialect to a position-independent object file."""
    with tempfile.TemporaryDirectory() as scratch:
        ll = Path(scratch, "program.ll")
        ll.write_bytes(_run([tool("mlir-translate", llvm), "--mlir-to-llvmir"], dialect))
        _run([tool("llc", llvm), "-O2", "-filetype=obj", "-relocation-model=pic", ll,
              "-o", out])  # fmt: skip


def lower_to_llvm_dialect(
    program: Path,
    llvm: int,
    *,
    chip: str | None = None,
    iterations: int | None = None,
    opt_level: int = 2,
    image: str | None = None,
) -> Path:
    """The program in the LLVM dialect, which ``runner(llvm)`` takes. Raises as lower() does."""
    text = with_iterations(program.read_text(), iterations)
    chip = _chip(llvm, chip)
    image = _image(chip, image)

    def make(result: Path) -> None:
        result.write_bytes(_llvm_dialect(text, llvm, chip, opt_level, image))

    options = ("mlir", llvm, chip, opt_level, image)
    tools = functools.partial(_opt_tools, llvm, chip, image)
    return _kept(program.stem, ".llvm.mlir", text, options, tools, make)


def code_objects(
    program: Path,
    chip: str = DEFAULT_CHIP,
    *,
    opt_level: int = 2,
    first: str = "",
    image: str | None = None,
) -> dict[str, bytes]:
    """The device images that 22 makes of a program, by the name of their gpu.module.

    ``first`` are passes that go before the recipe's own, for operations that it does not take.
    """
    text = program.read_text()
    image = _image(chip, image)

    def make(result: Path) -> None:
        result.write_bytes(_device_part(text, chip, opt_level, first, image))

    options = ("device", chip, opt_level, image, *([first] if first else []))
    tools = functools.partial(_opt_tools, 22, chip, image)
    kept = _kept(program.stem, ".device.mlir", text, options, tools, make)
    return {name: _unescape(code) for name, code in _BINARY.findall(kept.read_text())}


def code_object(
    program: Path,
    chip: str = DEFAULT_CHIP,
    *,
    opt_level: int = 2,
    module: str | None = None,
    image: str | None = None,
) -> bytes:
    """One device image of a program: the only one, or the one of the gpu.module named."""
    images = code_objects(program, chip, opt_level=opt_level, image=image)
    if module is not None:
        return images[module]
    if len(images) != 1:
        raise ValueError(f"{program.name} holds the modules {sorted(images)}: name one")
    return next(iter(images.values()))


def link(
    objects: Sequence[Path],
    *,
    libraries: Sequence[Path],
    rpath: Sequence[Path] = (),
    out: Path,
) -> Path:
    """Links objects into an executable against shared libraries given by their files.

    The executable asks for each library by its SONAME and looks for it in LD_LIBRARY_PATH, then
    in ``rpath``. What those libraries need in turn is left to the run, so that a library that is
    linked against one HIP can be run over another. Raises ToolchainMissing, LoweringFailed.
    """
    out.parent.mkdir(parents=True, exist_ok=True)
    command: list[Path | str] = [_compiler(), *objects, *libraries]
    command += ["-lm", "-Wl,--allow-shlib-undefined"]
    command += [f"-Wl,-rpath,{directory}" for directory in rpath]
    _run([*command, "-o", out])
    return out


def _compiler() -> Path:
    found = shutil.which("cc")
    if found is None:
        raise ToolchainMissing("cc", "gcc libc6-dev")
    return Path(found)


def _chip(llvm: int, chip: str | None) -> str:
    if llvm not in LLVM_RELEASES:
        raise ValueError(f"no recipe for LLVM {llvm}: there are 15, 19 and 22")
    if llvm == 15 and _is_nvidia(chip or ""):
        raise ValueError("LLVM 15 lowers by the forum's command, which is for AMD's GPUs")
    return chip or (FORUM_CHIP if llvm == 15 else DEFAULT_CHIP)


def _is_nvidia(chip: str) -> bool:
    return chip.startswith("sm_")


def _image(chip: str, image: str | None) -> str:
    """The form of the device code: as wished, else a binary where its assembler is there."""
    if image not in (None, "bin", "isa") or (image == "isa" and not _is_nvidia(chip)):
        raise ValueError(f"no recipe for an image of the form {image} for {chip}")
    return image or ("isa" if _is_nvidia(chip) and not shutil.which("ptxas") else "bin")


def _opt_tools(llvm: int, chip: str, image: str) -> list[Path]:
    """Every tool that makes a device image or LLVM dialect for a release."""
    device = 15 if llvm == 15 else 22
    if _is_nvidia(chip):
        tools = [tool("mlir-opt", llvm), tool("mlir-opt", device)]
        if image == "bin":
            assembler = shutil.which("ptxas")
            if assembler is None:
                raise ToolchainMissing("ptxas", "nvidia-cuda-toolkit")
            tools.append(Path(assembler))
        return tools
    tools = [tool("mlir-opt", llvm), tool("ld.lld", device)]
    if device != llvm:
        tools.append(tool("mlir-opt", device))
    return tools


def _llvm_dialect(
    text: str, llvm: int, chip: str, opt_level: int, image: str, first: str = ""
) -> bytes:
    if llvm == 15:
        return _forum_command(text, chip)
    with_images = _device_part(text, chip, opt_level, first, image)
    if llvm < 22:
        # 22 ends PTX with a 0 when it translates the module, 19 does not: what follows in the
        # program would be read as PTX.
        with_images = _ASSEMBLY.sub(r'\1\\00"', with_images.decode()).encode()
    return _run(
        [tool("mlir-opt", llvm), f"--pass-pipeline=builtin.module({_HOST_PASSES})"], with_images
    )


def _device_part(
    text: str, chip: str, opt_level: int, first: str = "", image: str = "bin"
) -> bytes:
    recipe = _NVIDIA_PASSES if _is_nvidia(chip) else _DEVICE_PASSES
    passes = recipe.format(chip=chip, opt=opt_level, image=image, first=first and f"{first},")
    environment = None if _is_nvidia(chip) else dict(os.environ, ROCM_PATH=str(_rocm_path()))
    return _run(
        [tool("mlir-opt", 22), f"--pass-pipeline=builtin.module({passes})"],
        text.encode(),
        environment,
    )


def _rocm_path() -> Path:
    """A directory laid out as mlir-opt expects ROCm to be: its linker and device libraries."""
    bitcode = Path("/usr/lib/x86_64-linux-gnu/amdgcn")
    if not bitcode.exists():
        raise ToolchainMissing(str(bitcode), "rocm-device-libs")
    directory = ROOT / "build" / "rocm-22"
    directory.mkdir(parents=True, exist_ok=True)
    for name, target in (("llvm", tool("ld.lld", 22).parent.parent), ("amdgcn", bitcode)):
        try:
            (directory / name).symlink_to(target)
        except FileExistsError:
            continue
    return directory


def _forum_command(text: str, chip: str) -> bytes:
    """Runs the forum's mlir-opt command of LLVM 15.

    That release always runs /opt/rocm/llvm/bin/ld.lld. Where there is none, it gets one in a
    mount namespace of its own, so that the machine stays as it is; the program travels through
    pipes, for the namespace hides all of /opt.
    """
    command: list[Path | str] = [tool("mlir-opt", 15)]
    command += [option.format(chip=chip) for option in _FORUM_PASSES]
    linker = tool("ld.lld", 15)
    if not Path("/opt/rocm/llvm/bin/ld.lld").exists():
        unshare = shutil.which("unshare")
        if unshare is None:
            raise ToolchainMissing("unshare", "util-linux")
        prepare = (
            "mount -t tmpfs none /opt && mkdir -p /opt/rocm && "
            f"ln -s {linker.parent.parent} /opt/rocm/llvm && "
            'ln -s /usr/lib/x86_64-linux-gnu/amdgcn /opt/rocm/amdgcn && exec "$@"'
        )
        # Without root, a user namespace gives the right to mount, where the system allows it.
        as_root = [] if os.geteuid() == 0 else ["--map-root-user"]
        namespace: list[Path | str] = [unshare, "--mount", *as_root, "sh", "-c", prepare, "sh"]
        command = namespace + command
    return _run(command, text.encode())


def _unescape(text: str) -> bytes:
    """The bytes of an MLIR string literal: two hexadecimal digits or one character escaped."""

    def replace(match: re.Match[bytes]) -> bytes:
        code = match.group(1)
        return bytes([int(code, 16)]) if len(code) == 2 else code

    return _ESCAPE.sub(replace, text.encode())


def _kept(
    stem: str,
    suffix: str,
    text: str,
    options: tuple[object, ...],
    tools: Callable[[], Sequence[Path]],
    make: Callable[[Path], None],
) -> Path:
    """The kept result for these inputs, made now if there is none.

    A tool's file stands for its version: asking each for ``--version`` would take 30 ms. Where the
    tools are missing, what a machine that has them made of the same inputs is taken, whichever its
    tools were: ``build/objects`` can be carried to a machine with a GPU and no MLIR. The rename
    makes a result appear whole, also when two processes make the same one at once.
    """
    name = f"{stem}-{_digest((RECIPE, text, options))}"
    try:
        stamps = [(str(t), (s := t.stat()).st_size, s.st_mtime_ns) for t in tools()]
    except ToolchainMissing:
        carried = sorted(OBJECTS.glob(f"{name}-*{suffix}"), key=lambda path: path.stat().st_mtime)
        if not carried:
            raise
        return carried[-1]
    kept = OBJECTS / f"{name}-{_digest(stamps)[:8]}{suffix}"
    if not kept.exists():
        OBJECTS.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=OBJECTS) as scratch:
            result = Path(scratch, "result")
            make(result)
            result.replace(kept)
    return kept


def _digest(inputs: object) -> str:
    return hashlib.sha256(repr(inputs).encode()).hexdigest()[:20]


def _run(
    command: Sequence[Path | str], stdin: bytes = b"", env: dict[str, str] | None = None
) -> bytes:
    done = subprocess.run([str(c) for c in command], input=stdin, capture_output=True, env=env)
    if done.returncode != 0:
        words = " ".join(str(c) for c in command)
        complaint = done.stderr.decode(errors="replace").strip()
        raise LoweringFailed(f"exit {done.returncode} from: {words}\n{complaint}")
    return done.stdout


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="lower", description="lower an MLIR program")
    parser.add_argument("program", type=Path)
    parser.add_argument("-o", "--out", type=Path, required=True)
    parser.add_argument("--llvm", type=int, choices=LLVM_RELEASES, default=22)
    parser.add_argument("--chip")
    parser.add_argument("--iterations", type=int)
    parser.add_argument("--image", choices=("bin", "isa"))
    options = parser.parse_args(arguments)
    try:
        lower(
            options.program,
            llvm=options.llvm,
            out=options.out,
            chip=options.chip,
            iterations=options.iterations,
            image=options.image,
        )
    except (ToolchainMissing, LoweringFailed, ValueError, OSError) as problem:
        print(f"lower: {problem}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
