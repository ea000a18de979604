"""Messages of commands that refuse their input: for each command a table of inputs, with the exit
status and words of the cause. A refused command writes no file.

The advice in messages is followed in test_advice.py."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path

import pytest

from tests.python.runtime.hooked import hip
from tests.support import recorded
from tests.support.command import command, invoke
from tests.support.compiled import compile_c
from tests.support.images import bundle, code_object
from tests.support.suites import in_check

MAIN = "int main(void) { return 0; }"
KERNEL = "gpu.module @{} {{ gpu.func @empty() kernel {{ gpu.return }} }}\n"
CAST = """llvm.func @f(%a: i64) {
  %b = builtin.unrealized_conversion_cast %a : i64 to index
  llvm.return
}"""

#: Values that are no statistics, in JSON that has the right keys.
WRONG = (
    {"memory": {"0": {}}},
    {"kernels": {"k": {"calls": 1}}},
    {"cache": {"modules": {"hits": "1", "misses": 1, "evictions": 0}}},
    {"copies": []},
    {"modules": [{}]},
    {"process": {}},
)
NO_STATISTICS = {
    f"wrong{number}": json.dumps({"abi": {}, "hip": {}, "cache": {}, **wrong}).encode()
    for number, wrong in enumerate(WRONG)
} | {"list": b"[1, 2]", "part": b'{"abi": {}, "hip": {}}'}
NOT_BY_THE_LIBRARY = {
    "cut.json": b'{"abi": {"mgpuModuleLo',
    "text.json": b"module {}",
    "latin.json": b"\xff\xfe",
    "deep.json": b"[" * 100_000,
}
#: Functions, because LLVM lowers the images.
IMAGES = {
    "cut.hsaco": lambda: code_object("forum")[: len(code_object("forum")) // 2],
    "cut.bundle": lambda: bundle(code_object("forum"))[:5000],
    "head.elf": lambda: b"\x7fELF\x02\x01",
    "elf32": lambda: b"\x7fELF\x01\x01" + bytes(10),
    "name.bundle": lambda: b"__CLANG_OFFLOAD_BUNDLE__",
    "compressed": lambda: b"CCOB\2\0\1\0",
    "bytes": lambda: bytes(range(256)),
    "image": lambda: code_object("forum"),
}
FILES = {
    "empty": b"",
    "text": b"no program",
    "headless": b"exit 0\n",
    "orphan": b"#!/nowhere/interpreter\n",
    "stats.json": json.dumps(recorded.stock()).encode(),
    "damaged": b"mgpu_rt record\n\0",
    "empty.mlir": b"",
    "bytecode.mlir": b"ML\xefR",
    "latin.mlir": b"\n// gr\xf6\xdfer\n",
    "strides.mlir": b"gpu.memset %s, %v : memref<4xf32, strided<[4]>>, f32",
    "other.MLIR": b"func.func @main() { return }",
    "main.mlir": b"func.func @main() { return }",
    "arguments.mlir": b"func.func @f(%a: i32) { return }",
    "word.mlir": b"hello",
    "constant.mlir": b"llvm.func @f() {\n  %0 = arith.constant 1 : i64\n  llvm.return\n}",
    "cast.mlir": CAST.encode(),
    "typed.mlir": b"llvm.func @f(%a: !llvm.ptr<i8>)",
    "two.mlir": (KERNEL.format("b") + KERNEL.format("a")).encode(),
    "targets.mlir": KERNEL.format('k [#rocdl.target<chip = "gfx942">]').encode(),
    "kernel.mlir": KERNEL.format("k").encode(),
    **NO_STATISTICS,
    "trace": b'{"traceEvents": []}',
    **NOT_BY_THE_LIBRARY,
}
#: Compiled files: the source, and the compiler's flags.
COMPILED = {
    "plain": (MAIN, ()),
    "static": (MAIN, ("-static",)),
    "dead": ("#include <stdlib.h>\nint main(void) { abort(); }", ()),
}
#: ELF files for another machine: the file that is changed, and the machine's number in ELF.
FOREIGN = {"foreign": ("plain", 183), "static-foreign": ("static", 183), "riscv": ("plain", 243)}
EXECUTABLE = ("headless", "orphan", "fifo")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("messages")
    for name, content in FILES.items():
        (place / name).write_bytes(content)
    for name, make in IMAGES.items():
        (place / name).write_bytes(make())
    for name, (source, flags) in COMPILED.items():
        compile_c(place / name, source, *flags)
    for name, (of, machine) in FOREIGN.items():
        content = bytearray((place / of).read_bytes())
        content[18:20] = machine.to_bytes(2, "little")
        (place / name).write_bytes(content)
        (place / name).chmod(0o755)
    (place / "folder").mkdir()
    os.mkfifo(place / "fifo")
    for name in EXECUTABLE:
        (place / name).chmod(0o755)
    return place


#: For each command: words of the command line, the exit status, and words of the cause.
RUN = [
    ("--stats-json s --trace s -- true", 2, "--stats-json and --trace write one file, 's': name"),
    ("no-such-program-there", 127, "was not found"),
    ("no-such-program.mlir", 127, "was not found"),
    ("./no-such-program-there", 127, "was not found"),
    ("--stats-json s.json -- ./no-such-program-there", 127, "was not found"),
    ("-", 127, "was not found"),
    ("/dev/null", 126, "is not an executable file"),
    ("./folder", 126, "is not an executable file"),
    ("./text", 126, "is not an executable file"),
    ("./headless", 126, "Exec format error"),
    ("./orphan", 126, "cannot be executed: No such file"),
    ("--stats-json s.json -- ./orphan", 126, "cannot be executed: No such file"),
    ("./foreign", 126, "Exec format error"),
    ("./static-foreign", 126, "Exec format error"),
    ("./fifo", 126, "Permission denied"),
    ("--record out -- ./static", 2, "it is statically"),
    ("--fail-on-error -- ./static", 2, "mgpu_rt detects failures, but cannot be preloaded"),
    ("--stats-json none/s.json -- true", 2, "No such file or directory"),
    ("--trace none/t.json -- true", 2, "No such file or directory"),
    ("--hook mine:Hook=3 -- true", 2, "takes no value"),
    ("--hook time=3 -- true", 2, "takes no value"),
    ("--llvm 22 /bin/true", 2, "is not a .mlir file"),
    ("--chip gfx90a /bin/true", 2, "is not a .mlir file"),
    ("--entry main /bin/true", 2, "is not a .mlir file"),
    ("./other.MLIR", 126, "rename it, because mgpu-rt lowers only files whose names end in .mlir"),
    ("main.mlir empty.mlir", 2, "`mgpu-rt diff main.mlir empty.mlir` compares the results"),
    ("empty.mlir", 2, "is empty"),
    ("bytecode.mlir", 2, "is not text in UTF-8: mlir-opt turns"),
    ("latin.mlir", 2, "is not text in UTF-8: see line 2"),
    ("strides.mlir", 2, "line 1: gpu.memset of a memref with strides"),
    ("--trcae x -- true", 2, "--trace"),
    ("main.mlir --trcae", 2, "--trace"),
    ("main.mlir --device fx", 2, "'fx' is none of"),
    ("main.mlir --entry f", 2, "the program has no function f"),
    ("arguments.mlir", 2, "add a function without arguments, and name it with --entry"),
    ("--device softgpu --chip gfx942 main.mlir", 2, "--chip gfx942 is not the device's: gfx90a"),
    ("--device gfx906 --chip gfx90a main.mlir", 2, "--chip gfx90a is not the device's: gfx906"),
    ("--device softgpu --chip sm_90 main.mlir", 2, "--chip sm_90 is not the device's: gfx90a"),
    ("--device softgpu --chip gfx90a:xnack+ main.mlir", 2, "xnack+ is not the device's: gfx90a"),
    ("--device hip --chip sm_90 main.mlir", 2, "--chip sm_90 is not the device's: AMD's"),
    ("--device cuda --chip gfx90a main.mlir", 2, "--chip gfx90a is not the device's: NVIDIA's"),
    ("main.mlir --stats x", 2, "'main.mlir' takes no arguments, but 'x' follows it"),
    ("-- main.mlir --stats", 2, "'main.mlir' takes no arguments, but '--stats' follows it"),
]
COMPARE = [
    ("", 2, "name two statistics files, a .mlir file, or a program after --"),
    ("stats.json", 2, "name two statistics files"),
    ("a b c", 2, "name two statistics files"),
    ("--", 2, "name two statistics files"),
    ("stats.json -- true", 2, "name two statistics files"),
    ("--report - a -- true", 2, "name two statistics files"),
    ("--exclusive a b", 2, "--exclusive and --repeat need a program after --"),
    ("--repeat 3 a b", 2, "--exclusive and --repeat need a program after --"),
    ("--lazy -- true", 2, "--lazy needs --exclusive"),
    ("--report folder stats.json", 2, "Is a directory"),
    ("--report none/p.html stats.json", 2, "No such file or directory"),
    ("--report /dev/full stats.json", 2, "No space left on device"),
    ("--report /proc/p.html -- no-such-program", 2, "cannot be written"),
    ("-- none", 2, "was not found"),
    ("none.mlir", 2, "'none.mlir' was not found"),
    ("--entry f none.mlir", 2, "'none.mlir' was not found"),
    ("main.mlir x", 2, "'main.mlir' takes no arguments, but 'x' follows it"),
    ("main.mlir empty.mlir", 2, "`mgpu-rt diff main.mlir empty.mlir` compares the results"),
    ("plain static", 2, "`mgpu-rt diff -- plain -- static` compares their results, and compare"),
    ("other.MLIR", 2, "'other.MLIR' is a program in MLIR: rename it"),
    ("-- ./folder", 2, "is not an executable file"),
    ("-- ./static", 2, "it is statically linked"),
    ("-- ./plain", 2, "called none of the library's functions"),
    ("-- ./dead", 2, "was ended by signal 6 (SIGABRT), so there is nothing to compare"),
]
STATS = [
    ("none.json", 2, "No such file or directory"),
    ("folder", 2, "Is a directory"),
    ("empty", 2, "is empty"),
    ("damaged", 2, "the recording is damaged or truncated"),
    ("stats.json none.json", 2, "No such file or directory"),
    *(
        (f"{one} stats.json stats.json", 2, "-o, --address and --json take one file")
        for one in ("--json", "-o x", "--address 7f00")
    ),
    ("trace -o x.json", 2, "'trace' is a trace already: see it in ui.perfetto.dev"),
    ("stats.json -o x.json", 2, "'stats.json' is not a recording"),
    ("--address here trace", 2, "'here' is not an address"),
    ("--address 0x7f0000000000 stats.json", 2, "trace"),
    ("--address 0x7f0000000000 list", 2, "trace"),
    ("trace", 2, "'trace' is a trace: see it in ui.perfetto.dev, or give --address"),
    *((name, 2, "is JSON, but no statistics") for name in NO_STATISTICS),
    *((name, 2, "was not written by the library, or is truncated") for name in NOT_BY_THE_LIBRARY),
]
INSPECT = [
    ("none", 2, "No such file or directory"),
    ("folder", 2, "Is a directory"),
    ("empty", 2, "is empty"),
    ("main.mlir", 2, "holds no device code"),
    ("bytes", 2, "holds no device code"),
    ("compressed", 2, "holds no device code"),
    ("cut.hsaco", 2, "is an AMDGPU code object, and it is truncated"),
    ("cut.bundle", 2, "is an offload bundle, and its table"),
    ("name.bundle", 2, "is an offload bundle, and its table"),
    ("head.elf", 2, "its ELF headers cannot be read"),
    ("elf32", 2, "its ELF headers cannot be read"),
    ("plain", 2, "for x86-64 and holds no image of device code"),
    ("foreign", 2, "for AArch64 and holds no image of device code"),
    ("riscv", 2, "for RISC-V and holds no image of device code"),
]
LOWER = [
    ("main.mlir", 2, "Missing option '-o'"),
    ("none.mlir -o x.o", 2, "No such file or directory"),
    ("folder -o x.o", 2, "Is a directory"),
    ("empty.mlir -o x.o", 2, "is empty"),
    ("bytecode.mlir -o x.o", 2, "is not text in UTF-8"),
    ("main.mlir -o none/x.o", 2, "No such file or directory"),
    ("main.mlir -o x.o --llvm 18", 2, "no recipe for LLVM 18"),
    ("main.mlir -o x.o --link m", 2, "--link is for --emit executable"),
    ("main.mlir -o x --emit executable --link none.o", 2, "there is no such file"),
    ("targets.mlir -o x --emit image", 2, "line 1: the gpu.module has targets, and mgpu-rt"),
    ("targets.mlir -o x --passes none", 2, "line 1: the gpu.module has targets, and mgpu-rt"),
    ("kernel.mlir -o x --emit image --graph main", 2, "--graph is for objects, executables and"),
]
#: The first words of refusals for which LLVM's tools run.
LOWERED = [
    ("two.mlir -o x --emit image", 2, "the program has 2 images (gpu.module a, b)"),
    ("main.mlir -o x --emit image", 2, "the program has no kernel"),
    ("kernel.mlir -o x.o --chip MI300X", 2, "knows no such GPU"),
    ("kernel.mlir -o x.o --chip gfx9999", 2, "knows no such GPU"),
]
UNLOWERED = "is not of the LLVM dialect: lower all dialects by mgpu-rt lower"
#: LLVM 22 and 19 word their messages differently.
HOIST = [
    (f"--llvm {llvm} {name}.mlir -o x", 2, words)
    for llvm in (22, 19)
    for name, words in (
        ("none", "No such file or directory"),
        ("empty", "is empty"),
        ("word", "line 1: mlir-translate does not take it: custom op 'hello' is unknown"),
        ("constant", f"line 2: arith.constant {UNLOWERED}"),
        ("cast", f"line 2: builtin.unrealized_conversion_cast {UNLOWERED}"),
        ("typed", "line 1: mlir-translate does not take it"),
    )
]
DIFF = [
    ("a.mlir b.mlir c.mlir", 2, "'c.mlir' is a third program: name two programs"),
    ("", 2, "name two programs"),
    ("--device gfx90a,fx -- a", 2, "'fx' is none of auto, hip, softgpu, cuda"),
    ("--tolerance -1 -- a -- b", 2, "the tolerance is -1.0, but must be"),
    ("--tolerance 1e-5 -- a -- b", 2, "for numbers of one type: name it by --dtype"),
    ("--ulps 1 -- a -- b", 2, "ulps are for numbers of one type: name it by --dtype"),
    ("--ulps 2 --dtype i32 -- a -- b", 2, "ulps are for floats, but the type is i32"),
    ("-- ./none -- ./none", 2, "'./none' was not found"),
    ("-- true -- true", 2, "no launch was made through"),
    ("other.MLIR main.mlir", 2, "'other.MLIR' is a program in MLIR: rename it"),
    ("no.mlir main.mlir", 2, "'no.mlir' was not found"),
    ("--entry f no.mlir main.mlir", 2, "'no.mlir' was not found"),
    ("-- main.mlir x -- true", 2, "'main.mlir' takes no arguments, but 'x' follows it"),
    ("-- sh -c 'kill -SEGV $$' -- true", 2, "before, 'sh' was ended by signal 11"),
]
CHECK = [
    ("-- ./none", 2, "'./none' was not found"),
    ("--json none/x -- true", 2, "No such file or directory"),
    ("-- ./plain", 2, "called none of the library's functions"),
    ("-- ./dead", 2, "nothing was checked: signal 6 (SIGABRT) ended it"),
    ("folder", 2, "is not an executable file"),
    ("main.mlir --device fx", 2, "'fx' is none of"),
    ("main.mlir x", 2, "'main.mlir' takes no arguments, but 'x' follows it"),
]
REPLAY = [
    ("folder", 2, "holds no complete launch: name a folder into which"),
    ("folder --image empty", 2, "is empty"),
    ("folder --grid 1x1x1x1", 2, "is not one to three sizes"),
    ("folder --block x", 2, "is not one to three sizes"),
]

Row = tuple[str, int, str]
#: Commands that read files only, and run in the process of the tests.
READING: dict[str, list[Row]] = {
    "stats": STATS,
    "inspect": INSPECT,
    "lower": LOWER,
}
#: Commands that start processes.
STARTING: dict[str, list[Row]] = {
    "run": RUN,
    "compare": COMPARE,
    "lower": LOWERED,
    "hoist": HOIST,
    "diff": DIFF,
    "check": CHECK,
    "replay": REPLAY,
}


def rows(tables: dict[str, list[Row]]) -> list[tuple[str, str, int, str]]:
    return [(name, *row) for name, table in tables.items() for row in table]


@pytest.mark.parametrize(("name", "words", "status", "cause"), rows(READING))
def test_a_command_that_reads_files_names_the_cause(
    name: str, words: str, status: int, cause: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    before = sorted(os.listdir())
    done = invoke(name, *shlex.split(words))
    assert (done.exit_code, done.stdout) == (status, ""), done.output
    assert cause in done.stderr
    assert sorted(os.listdir()) == before


@pytest.mark.parametrize(
    ("name", "words", "status", "cause"),
    in_check(rows(STARTING), lambda name, *_: name in ("lower", "hoist", "diff", "check")),
)
def test_a_command_that_starts_processes_names_the_cause(
    name: str, words: str, status: int, cause: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    before = sorted(os.listdir())
    env = {} if name in ("run", "compare") else hip()
    done = command(name, *shlex.split(words), **env)
    assert (done.returncode, done.stdout) == (status, ""), done.stderr
    assert cause in done.stderr and "Traceback" not in done.stderr
    assert sorted(os.listdir()) == before
