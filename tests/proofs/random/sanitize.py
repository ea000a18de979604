"""Plays random programs over runtimes that gcc and clang built with sanitizers.

    python -m tests.proofs.random.sanitize [--programs N] [--only gcc-address] [--without ACTION]

Builds the runtime's sources into build/sanitize, with the options of csrc/runtime/build.mk, but
without optimisations and features that sanitizers do not support. Each build has a separate player.
After the build, the command plays cases with the stub of HIP and with AMD's HIP. A sanitizer's
report ends the process, which counts as a difference. The exit status is 1 if there is a
difference.

The options of the sanitizers, and their reasons:

* `detect_leaks=0`: the library intentionally keeps memory until exit (test_leaks.py counts objects
  that must not accumulate), and AMD's HIP and Python leak more.
* `ignore_noninstrumented_modules=1`: the thread sanitizer does not see the synchronisation inside
  AMD's HIP and Python, which are not instrumented.
* `handle_segv=0`, `use_sigaltstack=0`: AMD's runtime installs signal handlers and signal stacks.
* `MGPU_RT_TEST_SYMBOLS=shared`: sanitizers refuse RTLD_DEEPBIND.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from mgpu_rt import __version__
from tests.proofs.programs import images
from tests.proofs.random import cases, runner

ROOT = runner.ROOT
OUT = ROOT / "build" / "sanitize"
COMPILERS = {"gcc": "gcc", "clang": "clang-22"}
KINDS = {
    "address": ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"],
    "thread": ["-fsanitize=thread"],
}
BUILDS = {f"{cc}-{kind}": (cc, kind) for cc in COMPILERS for kind in KINDS}
FLAGS = ["-std=c11", "-D_GNU_SOURCE", "-DMGPU_RT_CHECK", "-O1", "-g", "-fno-omit-frame-pointer"]
FLAGS += ["-fPIC"]
#: gcc also warns about code that gcc's sanitizers generate, so only the clang build enables
#: warnings.
WARNINGS = {
    "gcc": ["-w"],
    "clang": ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-Wno-static-in-inline"],  # common.mk
}
#: The players and lowered programs declare other types for handles than the library.
UNTYPED = {"gcc": [], "clang": ["-fno-sanitize=function"]}
OPTIONS = (
    ("ASAN_OPTIONS", "detect_leaks=0:handle_segv=0:use_sigaltstack=0:abort_on_error=1"),
    ("UBSAN_OPTIONS", "print_stacktrace=1:halt_on_error=1"),
    ("TSAN_OPTIONS", "ignore_noninstrumented_modules=1:halt_on_error=1:second_deadlock_stack=1"),
    ("MGPU_RT_TEST_SYMBOLS", "shared"),
)
#: The thread sanitizer does not work with AMD's whole HIP, because AMD's HIP needs the address
#: space.
DEVICES = {
    "address": (runner.STUB, runner.REUSE, runner.SMALL, runner.TWO, runner.SOFTGPU),
    "thread": (runner.STUB, runner.REUSE, runner.TWO),
}


def _run(*command: str | Path) -> None:
    subprocess.run([str(word) for word in command], cwd=ROOT, check=True)


def build(name: str) -> None:
    """Builds one variant of the library and of the players in build/sanitize/<name>."""
    cc, kind = BUILDS[name]
    compiler, sanitize, out = COMPILERS[cc], KINDS[kind], OUT / name
    out.mkdir(parents=True, exist_ok=True)
    exports = ROOT / "build" / "runtime" / "exports.map"
    library = out / "libmlir_rocm_runtime.so"
    sources = sorted((ROOT / "csrc" / "runtime").rglob("*.c"))
    includes = ["-Icsrc/include", "-Icsrc/runtime", f'-DMGPU_RT_VERSION="{__version__}"']

    def compile_one(source: Path) -> Path:
        name = "-".join(source.relative_to(ROOT / "csrc" / "runtime").with_suffix(".o").parts)
        result = out / name
        hidden = ["-fvisibility=hidden", *includes]
        _run(compiler, *FLAGS, *WARNINGS[cc], *sanitize, *hidden, "-c", source, "-o", result)
        return result

    with ThreadPoolExecutor(2) as pool:
        objects = list(pool.map(compile_one, sources))
    link = ["-shared", f"-Wl,-soname,{library.name}", f"-Wl,--version-script={exports}"]
    _run(compiler, *sanitize, *objects, *link, "-Wl,-z,nodelete", "-ldl", "-pthread", "-o", library)
    folders = (ROOT / "csrc" / "selftest" / "player", Path(__file__).with_name("player"))
    players = sorted(path for folder in folders for path in folder.glob("*.c"))
    for player, more in (("player", []), ("player-linked", ["build/hipstub/libamdhip64.so.5"])):
        needed = ["-Wl,--allow-shlib-undefined", "-Wl,--no-as-needed", library, *more]
        flags = [*FLAGS, *sanitize, *UNTYPED[cc], f"-I{folders[0]}"]
        _run(compiler, *flags, *players, *needed, "-pthread", "-ldl", "-o", out / player)


def _sides(name: str) -> list[runner.Side]:
    where = f"build/sanitize/{name}"
    common = OPTIONS
    return [
        runner.Side(f"{name}, {side.name}", where, (*common, *side.options), players=where)
        for side in runner.SIDES[:2]
    ]


def play(name: str, wanted: int, without: tuple[str, ...]) -> int:
    """Plays cases over one build; returns the number of processes that differ."""
    wrong = played = 0
    for number, device in enumerate(DEVICES[BUILDS[name][1]]):
        directory = OUT / name / "cases" / str(number)
        for path in cases.write(wanted, directory, device, number + 1, without, ends=wanted // 3):
            case = runner.Case.load(path)
            played += len(case.lines)
            for side, found in runner.problems(case, device, _sides(name)).items():
                wrong += 1
                command = f"{device.name}: {path}: {side}:"
                print(command, *found[:40], sep="\n  ", flush=True)
    print(f"{name}: {played} programs, {wrong} differ", flush=True)
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests.proofs.random.sanitize", description=__doc__)
    parser.add_argument("--programs", type=int, default=100, help="on each device")
    parser.add_argument("--only", choices=list(BUILDS), action="append")
    parser.add_argument("--without", action="append", default=[], help="an action left out")
    options = parser.parse_args()
    images.write("gfx90a")
    wrong = 0
    for name in options.only or BUILDS:
        try:
            build(name)
        except subprocess.CalledProcessError as failed:
            wrong += 1
            print(f"{name}: not built: {failed}", flush=True)
            continue
        wrong += play(name, options.programs, tuple(options.without))
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
