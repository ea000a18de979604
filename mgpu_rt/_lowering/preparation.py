"""Chooses the passes that an ordinary program needs before `pipelines` can lower it.

MLIR's conversion to the runtime's calls accepts kernels that are outlined, GPU operations with
async tokens, and no linalg or async operation. A program need not be written so: this module reads
which of these operations the text contains, and names MLIR's passes for them. The passes run only
if the text contains such an operation, since some of them change other operations too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import accumulate

from mgpu_rt._functions.types import split
from mgpu_rt._lowering import host_memory, tokens
from mgpu_rt._lowering.pipelines import PROGRAM, Pipeline
from mgpu_rt._lowering.text import code, line_of
from mgpu_rt._lowering.toolchain import LoweringFailed

_GPU_MODULE = re.compile(r"^\s*gpu\.module\b")
_TARGETS = re.compile(r'\bgpu\.module\s+@(?:"[^"]*"|[\w.$-]+)\s*(?:<[^\n]*>\s*)?\[')
_LINALG = re.compile(r'(?<![\w#!.@%"])linalg\.(?!yield|index|init_tensor)\w+')
_ASYNC = re.compile(r'(?<![\w#!.@%"])async\.\w')
#: gpu-to-llvm accepts gpu.alloc, gpu.dealloc, gpu.memcpy and gpu.memset only with async tokens.
_WAITING = re.compile(r"gpu\.(?:dealloc|memcpy|memset)\s+(?!async\b)|gpu\.alloc(?=\s*[(\[])")
_LAUNCH = re.compile(r"\bgpu\.launch(?:_func)?\b(?!\s+async\b)")
_LAUNCH_ON_TOKENS = re.compile(r"\bgpu\.launch_func\s+\[")
#: Operations whose order or lack of tokens gpu-async-region would change.
_AS_WRITTEN = re.compile(r"\bgpu\.(?:\w+\s+async|alloc\s+host_shared)\b")
#: Copies with their types, which may stand on lines of their own; and how a type says strides.
_COPY = re.compile(r"\bgpu\.(?:memcpy|memset)\b[^:]*:\s*((?:[^\n]*,[ \t]*\n)*[^\n]*)")
_STRIDES = re.compile(r"\bstrided<|\baffine_map<")
_ALIAS = re.compile(r"^[ \t]*([!#][\w$.-]+)[ \t]*=(.*)", re.MULTILINE)
_FILL = re.compile(r"\bgpu\.memset\b[^:]*:[^\n]*,\s*(i1|i8|i64|f64|f8\w+|index)\s*$", re.MULTILINE)
#: A list of tokens, of which only gpu.wait takes several.
_TOKENS = re.compile(r"\b(gpu\.(?!wait\b)\w+)\s+async\s*\[([^\]]*,[^\]]*)\]")
_OPERANDS = re.compile(r"\b(?:ins|outs)\s*\(([^:)]*):\s*")
_TENSORS = re.compile(r"\b(?:ins|outs)\s*\([^)]*\btensor<")
_VALUE = re.compile(r"%[\w$.-]+(?:#\d+)?")
_INDIRECT = re.compile(r"\bcall_indirect\b[^\n]*\bmemref<")
_SOFTMAX = re.compile(r'(?<![\w#!.@%"])linalg\.softmax\b')
_GENERIC_FORM = re.compile(r'"((?:func|gpu|linalg|async)\.\w+)"\s*\(')
#: Operations on bf16 of which LLVM computes some only in f32, and sines on f16.
_ON_BF16 = re.compile(r"\b(?:math\.\w+\b[^\n]*|linalg\.(?:exp|log|elementwise)\b[^:]*:[^)]*)bf16\b")
_SINE_OF_F16 = re.compile(r"\bmath\.sin\b[^\n]*(?<!b)f16\b")
#: Operations that the pipelines do not lower, the passes that replace them, and by what.
_EXPANDED = (
    (
        re.compile(r"\bcomplex\.(?!create|constant|re\b|im\b|abs|add|sub|mul|div|bitcast)\w+"),
        "convert-complex-to-standard",
    ),
    (re.compile(r"\bmath\.(?:clampf|fpowi)\b"), "math-expand-ops{ops=clampf,fpowi}"),
)
#: Operations that MLIR lowers wrongly for AMD's GPUs in some cases, which the text need not show.
_REDUCES = re.compile(r"\bgpu\.(?:all_reduce|shuffle\s+(?:up|idx))\b")
_WRONG = {
    "gpu.all_reduce": "is right only if the number of threads of a workgroup is a power of two",
    "gpu.shuffle up": "says of each lane that its value is valid: compare the lane yourself",
    "gpu.shuffle idx": "counts the lanes of the whole wavefront, whatever the width",
}
#: The threads of a gpu.launch, up to its body.
_THREADS = re.compile(r"\bgpu\.launch\b[^{}]*?\bthreads\s*\([^)]*\)\s*in\s*\(([^)]*)\)[^{}]*\{")
_PARALLEL = re.compile(r"\bscf\.parallel\b")
#: Loops of the host, what none of them may hold to become kernels, and passes for these.
_LOOPS = re.compile(r"\bscf\.(?:parallel|forall)\b")
_NOT_IN_KERNELS = re.compile(
    r"(?<![\w#!.@%])(?:gpu|async)\.|\bcall\b|\binit\b|\bscf\.(?:parallel|forall)\b"
)
_LOOPS_TO_KERNELS = {
    "scf.parallel": "run mlir-opt-22",
    "scf.forall": "take away its mapping, and run mlir-opt-22 --scf-forall-to-parallel",
}

OUTLINE = "gpu-kernel-outlining"
REGIONS = f"{OUTLINE},func.func(gpu-async-region)"
KERNEL_LOOPS = f"{OUTLINE},gpu.module(convert-linalg-to-loops)"
HOST_LOOPS = f"{OUTLINE},func.func(convert-linalg-to-loops)"
KERNELS = (
    f"{OUTLINE},func.func(convert-linalg-to-parallel-loops,gpu-map-parallel-loops,"
    "convert-parallel-loops-to-gpu)"
)
NARROW_MATH = f"{OUTLINE},gpu.module(math-extend-to-supported-types{{extra-types=f16}})"
#: In rocm-device-libs 5.2.3 the sine of f16 is NaN for each finite number.
SINES = f"{OUTLINE},gpu.module(math-extend-to-supported-types)"


@dataclass(frozen=True)
class Preparation:
    """Tells what a program needs beside its pipeline. ``first`` are passes that run first, on the
    whole program. With ``coroutines`` the host code has coroutines of MLIR's async dialect, which
    LLVM's opt must split. With ``waits``, each operation without tokens gets some, and a wait.
    ``told`` are sentences for the user, one for each reason."""

    first: str = ""
    coroutines: bool = False
    waits: bool = False
    told: tuple[str, ...] = ()

    def of(self, pipeline: Pipeline) -> Pipeline:
        """Returns the pipeline with this preparation."""
        linalg = KERNELS in self.first
        return replace(
            pipeline,
            first=self.first,
            coroutines=self.coroutines,
            linalg=linalg,
            waits=self.waits,
        )


def prepared(text: str, pipeline: Pipeline) -> Pipeline:
    """Returns the pipeline with the preparation that the program needs. Passes that the caller
    chose take its place. Raises ValueError."""
    return pipeline if pipeline.first else preparation(text).of(pipeline)


def preparation(text: str) -> Preparation:
    """Returns what a program needs. Raises ValueError for a program that MLIR would lower wrongly,
    or that says too little."""
    text = code(text)
    check_targets(text)
    if wrong := _GENERIC_FORM.search(text):
        raise ValueError(
            f"{wrong[1]} ({line_of(text, wrong)}) is in MLIR's generic form, which mgpu-rt does "
            "not read: run mlir-opt-22 without -mlir-print-op-generic before"
        )
    if wrong := _strided(text):
        raise ValueError(
            f"{line_of(text, wrong)}: {wrong[0].split()[0]} of a memref with strides or an offset: "
            "MLIR copies as if its elements were contiguous; copy the whole memref, or these "
            "elements by a kernel"
        )
    if wrong := _FILL.search(text):
        raise ValueError(
            f"{line_of(text, wrong)}: gpu.memset of {wrong[1]}: MLIR fills only elements of 16 or "
            "32 bits; fill these by a kernel, or copy them by gpu.memcpy"
        )
    if wrong := _TOKENS.search(text):
        raise ValueError(
            f"{line_of(text, wrong)}: {wrong[1]} with several tokens: MLIR lowers it with one, so "
            f"join them by gpu.wait async [{wrong[2]}] before"
        )
    in_kernels, in_host = _kernels_and_host(text)
    passes, told = _linalg(text, in_kernels, in_host)
    math, math_told = _math(text if KERNELS in passes else in_kernels)
    passes += math
    told += math_told
    coroutines = bool(_ASYNC.search(text))
    waiting = _WAITING.search(text)
    others = _AS_WRITTEN.search(text) if waiting else None
    if waiting:
        told.append(_get_tokens(text, waiting, others))
    if waiting and not others:
        passes.append(REGIONS)
    for operation, expand in _EXPANDED:
        if found := operation.search(text):
            passes.append(f"{OUTLINE},{expand}")
            told.append(f"{found[0]} ({line_of(text, found)}) becomes real arithmetic")
    if coroutines:
        told.append("async.* becomes coroutines")
    reduces = {" ".join(each[0].split()): each for each in _wrong(text)}
    for name, where in reduces.items():
        told.append(f"{name} ({line_of(text, where)}): for AMD's GPUs MLIR's code {_WRONG[name]}")
    told += tokens.told(text)
    told += _on_the_host(_split(text)[1])
    return Preparation(",".join(passes), coroutines, bool(others), tuple(told))


def _wrong(text: str) -> Iterator[re.Match[str]]:
    """Yields the reductions, without each gpu.all_reduce whose gpu.launch surely suits it."""
    for each in _REDUCES.finditer(text):
        if each[0] != "gpu.all_reduce" or not _has_power_of_two(text, each.start()):
            yield each


def _has_power_of_two(text: str, at: int) -> bool:
    """Returns whether constants give the gpu.launch around a place a power of two threads."""
    *_, launch = None, *_THREADS.finditer(text, 0, at)
    if not launch:
        return False
    depths = accumulate((c == "{") - (c == "}") for c in text[launch.end() : at])
    before = text[: launch.start()].rpartition("func.func")[2]
    sizes = [
        re.findall(rf"{re.escape(name)}\s*=\s*(?:arith\.constant\s+(\d+)\b)?", before) or [""]
        for name in re.findall(r"=\s*(%[\w$.-]+)", launch[1])
    ]
    constants = [int(size or 0) for found in sizes for size in found]
    is_known = bool(constants) and min(depths, default=0) >= 0
    return is_known and all(n.bit_count() == 1 for n in constants)


def _get_tokens(text: str, first: re.Match[str], as_written: re.Match[str] | None) -> str:
    """Returns a sentence about the operations without async, of which the first is `first`. If
    others stay as written, a launch gets tokens only if it waits for some."""
    launches = _LAUNCH_ON_TOKENS if as_written else _LAUNCH
    more = len(_WAITING.findall(text)) - 1 + len(launches.findall(text))
    who = f"{first[0].split()[0]} without async ({line_of(text, first)})"
    said = f"{who} and {more:,} more get tokens" if more else f"{who} gets tokens"
    if not as_written:
        return said
    return (
        f"{said} and {'waits of their' if more else 'a wait of its'} own, since "
        f"{' '.join(as_written[0].split())} ({line_of(text, as_written)}) stays as it is written"
    )


def check_targets(text: str) -> None:
    """Raises ValueError if a gpu.module has targets: the pipelines add one more, and MLIR embeds
    the image of the first."""
    text = code(text)
    if wrong := _TARGETS.search(text):
        raise ValueError(
            f"{line_of(text, wrong)}: the gpu.module has targets, and mgpu-rt compiles for the GPU "
            "of --chip, by default the device's: take the targets out"
        )


def _on_the_host(text: str) -> list[str]:
    """Returns sentences about what the host does, and a kernel might."""
    told = []
    host = host_memory.without_launches(text)[0]
    if loops := list(_LOOPS.finditer(host)):
        first = loops[0]
        told.append(f"{_become(f'{first[0]} ({line_of(host, first)})', len(loops))} plain loops")
        if not any(_NOT_IN_KERNELS.search(host_memory.block(host, each.end())) for each in loops):
            told[-1] += (
                f": for a kernel, {_LOOPS_TO_KERNELS[first[0]]} --gpu-map-parallel-loops "
                "--convert-parallel-loops-to-gpu before, which turns every such loop into one; "
                "allocate their memrefs by gpu.alloc"
            )
    if found := host_memory.access_to_device(text):
        access, memref = found
        operation = re.split(r"[\s(]", access[0])[0]
        use = "copy by gpu.memcpy, or use a kernel"
        if operation == "memref.dealloc":
            use = "free it by gpu.dealloc"
        told.append(
            f"{operation} ({line_of(text, access)}) is code of the host, and {memref} is in the "
            f"GPU's memory, which the host may not reach: {use}"
        )
    return told


def _become(first: str, count: int) -> str:
    """Returns the subject and the verb of a sentence on operations, of which `first` is named."""
    return f"{first} and {count - 1:,} more become" if count > 1 else f"{first} becomes"


def _strided(text: str) -> re.Match[str] | None:
    """Returns the first copy or fill of a memref with strides, which an alias may name."""
    strides = _STRIDES
    for name, meaning in _ALIAS.findall(text):
        if strides.search(meaning):
            strides = re.compile(rf"{strides.pattern}|{re.escape(name)}(?![\w$.-])")
    return next((copy for copy in _COPY.finditer(text) if strides.search(copy[1])), None)


def _linalg(text: str, in_kernels: str, in_host: str) -> tuple[list[str], list[str]]:
    """Returns the passes for linalg's operations, and sentences. In a kernel, linalg becomes loops.
    In host code it becomes kernels if its memrefs may be device memory, and loops if they are the
    host's own."""
    if wrong := _SOFTMAX.search(text):
        raise ValueError(
            f"{wrong[0]} ({line_of(text, wrong)}): MLIR has no loops for it on memrefs: write it "
            "with linalg.reduce for the maximum and the sum, and linalg.generic"
        )
    passes, told = [], []
    if _LINALG.search(in_kernels):
        passes.append(KERNEL_LOOPS)
        told.append("linalg.* in kernels becomes loops")
    if not (first := _LINALG.search(in_host)):
        return passes, told
    where = f"{first[0]} ({line_of(in_host, first)})"
    if _TENSORS.search(in_host):
        raise ValueError(
            f"{where}: the program has tensors, which have no place in memory: run mlir-opt-22 "
            "--one-shot-bufferize=bufferize-function-boundaries before, and use memrefs of "
            "gpu.alloc for what kernels read and write"
        )
    if _INDIRECT.search(in_host):
        raise ValueError(
            f"{where}: the program also calls functions by pointers (call_indirect), so the memory "
            "of their memrefs is not known: call them by their names"
        )
    on_host = _on_host(in_host)
    if all(is_host for _, is_host, _ in on_host):
        own = f"{where} on the host's own memory"
        return [*passes, HOST_LOOPS], [
            *told,
            f"{_become(own, len(on_host))} host loops: for kernels, allocate by gpu.alloc and copy "
            "by gpu.memcpy",
        ]
    parallel = _PARALLEL.search(in_host)
    if other := next((each for each, is_host, _ in on_host if is_host), parallel):
        place = "" if other is parallel else " on the host's own memory"
        mine = next(each for each, is_host, _ in on_host if not is_host)
        raise ValueError(
            f"{other[0]} ({line_of(in_host, other)}){place}: MLIR's passes would make a kernel of "
            f"it, as of {mine[0]} ({line_of(in_host, mine)}): write it as loops of scf.for"
        )
    kernels = "kernels" if len(on_host) > 1 else "a kernel"
    told.append(f"{_become(where, len(on_host))} {kernels}, with one thread a workgroup")
    if registered := next(((each, memref) for each, _, memref in on_host if memref), None):
        each, memref = registered
        told.append(
            f"{each[0]} ({line_of(in_host, each)}): {memref} is memory of the host that the "
            "program registers, which a GPU may know at another address: use what "
            "mgpuMemGetDeviceMemRef1dFloat returns (Int32 for i32), or memory of gpu.alloc"
        )
    return [*passes, KERNELS], told


def _math(in_kernels: str) -> tuple[list[str], list[str]]:
    """Returns the passes for mathematics in kernels that is computed in f32, and sentences."""
    if found := _SINE_OF_F16.search(in_kernels):
        passes, kind = [SINES], "f16"
    elif found := _ON_BF16.search(in_kernels):
        passes, kind = [NARROW_MATH], "bf16"
    else:
        return [], []
    name = found[0].split()[0]
    return passes, [f"{name} on {kind} in kernels is computed in f32, as is other math on {kind}"]


def _on_host(text: str) -> list[tuple[re.Match[str], bool, str]]:
    """Returns each operation of linalg, whether it uses the host's own memory, and a memref of
    registered memory, or "". Raises ValueError if it also uses the GPU's."""
    found = []
    for function in host_memory.functions(text):
        for operation in _LINALG.finditer(text, function.start, function.end):
            rest = text[operation.end() : _end(text, operation.end())]
            values = _memrefs(rest) | host_memory.accessed_in_body(rest)
            is_host = function.on_host(values, operation.start())
            registered = (
                "" if is_host else min(values & (function.host - function.device), default="")
            )
            found.append((operation, is_host, registered))
            if is_host and (ours := sorted(values & function.device)):
                where = f"{operation[0]} ({line_of(text, operation)})"
                if ours[0] in function.host:
                    raise ValueError(
                        f"{where}: {ours[0]} may be in the GPU's memory or in the host's own: give "
                        "each memref its own name, and allocate what a branch or a loop passes on "
                        "by gpu.alloc"
                    )
                raise ValueError(
                    f"{where}: {ours[0]} is in the GPU's memory, and {min(values & function.host)} "
                    "in the host's own: copy by gpu.memcpy"
                )
    return found


def _memrefs(operands: str) -> set[str]:
    """Returns the operands of an operation that are memrefs, or of a type that has a name."""
    found = set()
    for each in _OPERANDS.finditer(operands):
        kinds = split(operands[each.end() :].partition("%")[0])
        named = zip(_VALUE.findall(each[1]), kinds, strict=False)
        found |= {value for value, kind in named if kind.startswith(("memref<", "!"))}
    return found


def _end(text: str, start: int) -> int:
    """Returns the position of the next operation of linalg, or the end of the text."""
    following = _LINALG.search(text, start)
    return following.start() if following else len(text)


def _kernels_and_host(text: str) -> tuple[str, str]:
    """Returns the code of kernels, with the functions that gpu.launch calls, and the other text."""
    modules, outside = _split(text)
    in_host, launched = host_memory.without_launches(outside)
    called = host_memory.called_by(launched, in_host, host_memory.functions(in_host))
    functions = [in_host[each.start : each.end] for each in called.values()]
    return "\n".join((modules, launched, *functions)), in_host


def _split(text: str) -> tuple[str, str]:
    """Returns the text inside of gpu.modules, and the text outside."""
    parts: dict[bool, list[str]] = {True: [], False: []}  # line N of each is line N of the text
    depth, inside = 0, False
    for line in text.splitlines(keepends=True):
        if not inside and _GPU_MODULE.match(line):
            inside, depth = True, 0
        parts[inside].append(line)
        parts[not inside].append("\n")
        if inside:
            depth += line.count("{") - line.count("}")
            inside = depth > 0
    return "".join(parts[True]), "".join(parts[False])


#: Patterns of tools' complaints, each with the advice; {} is the pattern's group.
_ADVICE = (
    (
        r"failed to legalize operation 'gpu\.all_reduce'",
        "MLIR lowers only a gpu.all_reduce that all threads of the workgroup reach: write "
        "`uniform` behind its operand",
    ),
    (
        r"'(gpu\.(?:subgroup_reduce|rotate))'",
        "no pass of MLIR lowers {} for AMD's GPUs: write it with gpu.shuffle",
    ),
    (
        r"'(gpu\.(?:subgroup_id|num_subgroups))'",
        "no pass of MLIR lowers {} for AMD's GPUs: divide the thread's number, or the block's "
        "size, by gpu.subgroup_size",
    ),
    (
        r"'llvm\.cmpxchg'",
        "MLIR lowers memref.generic_atomic_rmw of integers only: write memref.atomic_rmw",
    ),
    (
        r"arith\.(?:truncf|extf)\b[^\n]*\b(f[468]E\w+)",
        "mgpu-rt lower runs no pass that converts {}: use f16 or bf16",
    ),
    (
        r"(?:'llvm\.intr\.|no libcall available for f)(\w+)",
        "a kernel has llvm.intr.{}, which comes from convert-math-to-llvm: leave math operations "
        "of kernels to mgpu-rt lower",
    ),
    (r"(?:'|\bop: )(math\.ipowi)\b", "mgpu-rt lower runs no pass for {}: multiply in a loop"),
    (
        r"Cannot select: .*FrameIndex",
        "LLVM keeps a kernel's memref.alloca in no register: give its memref "
        "#gpu.address_space<private>",
    ),
    (r"'memrefCopy'", "a kernel has memref.copy of a memref with strides: write linalg.copy"),
    (
        r"'async\.runtime\.load'",
        "before LLVM 22, MLIR gives tokens to gpu operations only outside of async.execute: lower "
        "with --llvm 22, or write async with tokens of gpu.wait at each gpu operation",
    ),
    (
        r"failed to create a temporary file",
        "set TMPDIR to a folder that can be written",
    ),
    (
        r"@assert_msg|operation 'cf\.assert'",
        "a kernel cannot end the program: take cf.assert out of the kernel, or store a flag that "
        "the host code tests",
    ),
)


def advice(complaint: str) -> str:
    """Returns advice that explains a tool's complaint; "" if nothing is known about it."""
    for pattern, words in _ADVICE:
        if found := re.search(pattern, complaint):
            return words.format(*found.groups())
    return ""


_ERROR = re.compile(r"^\S+: error: ", re.MULTILINE)
#: A crash of LLVM's begins so, behind its reason.
_CRASH = "\nPLEASE submit a bug report"
#: A tool's message is shown up to this many characters: LLVM may print a whole kernel.
_SHOWN = 3000


def complaint(failed: LoweringFailed, program: str) -> str:
    """Returns a tool's message, in which the program's name replaces `<stdin>`. The name "-" stands
    for a program without a file. If there is advice, the first error is enough, without a
    crash's stack."""
    said = failed.complaint
    errors = [found.start() for found in _ERROR.finditer(said)]
    if advice(said):
        said = said[: errors[1]].rstrip() if len(errors) > 1 else said.partition(_CRASH)[0]
    if len(said) > _SHOWN:
        said = f"{said[:_SHOWN].rpartition(chr(10))[0]}\n..."
    if program == "-":
        return said.replace(PROGRAM, "<stdin>")
    said = said.replace(PROGRAM, program)
    return said.replace("<stdin>", program if failed.reads_source else f"{program}, lowered")
