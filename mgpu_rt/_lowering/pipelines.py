"""Defines each release's passes, and the tools that the passes need."""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from mgpu_rt._lowering import one_thread, own_waits, toolchain
from mgpu_rt._lowering.steps import Step
from mgpu_rt._lowering.text import without_undefined
from mgpu_rt._lowering.toolchain import Tool

DEFAULT_CHIP = "gfx90a"

# Increase this number when the command lines below change, so that the cache returns no old result
# for a new command.
RECIPE = 18

# For kernels and host code. Operations of vector that have no instruction become loops. Kernels are
# outlined first, because passes that simplify the code drop an empty gpu.launch.
# In kernels, vectors of several dimensions are unrolled: LLVM indexes no array of vectors there.
_COMMON_PASSES = (
    "gpu-kernel-outlining,lower-affine,gpu.module(convert-vector-to-scf{{full-unroll=true}}),"
    "convert-vector-to-scf,expand-strided-metadata,lower-affine"
)
# Kernels in a gpu.launch are outlined first; a program without gpu.launch is unchanged. Code object
# v4 (abi=400) is the newest that HIP 5.2.3 loads.
DEVICE_PASSES = (
    f"{{first}}{_COMMON_PASSES},"
    "rocdl-attach-target{{chip={chip}{features} abi=400 O={opt}}},"
    "gpu.module(convert-scf-to-cf,convert-vector-to-llvm,"
    "convert-gpu-to-rocdl{{chipset={chip} runtime=HIP}},"
    "reconcile-unrealized-casts),{lines}gpu-module-to-binary{{format=bin}}"
)
NVIDIA_PASSES = (
    f"{{first}}{_COMMON_PASSES},"
    "nvvm-attach-target{{chip={chip} features=+ptx80 O={opt}}},"
    "gpu.module(convert-scf-to-cf,convert-vector-to-llvm,convert-gpu-to-nvvm,"
    "reconcile-unrealized-casts),"
    "gpu-module-to-binary{{format={image}}}"
)
# Mathematics that LLVM has no intrinsic for becomes calls of libm. Kernels are binaries by then.
HOST_PASSES = (
    "{tasks}convert-scf-to-cf,{coroutines}convert-math-to-llvm,convert-math-to-libm,"
    "convert-vector-to-llvm,gpu-to-llvm,finalize-memref-to-llvm,convert-func-to-llvm,"
    "convert-cf-to-llvm,convert-arith-to-llvm,reconcile-unrealized-casts"
)
TASKS = "async-to-async-runtime,async-runtime-ref-counting,async-runtime-ref-counting-opt,"
#: Before LLVM 22, gpu-to-llvm does not lower divisions that round up. Programs use such divisions
#: to compute a grid's size.
OLDER_HOST_PASSES = f"arith-expand,{HOST_PASSES}"
#: Gives functions in the LLVM dialect a line table, which refers to the lines of the program.
LINES_PASS = "ensure-debug-info-scope-on-llvm-func"

#: The variables in which mlir-opt looks up CUDA's folder, and CUDA's usual folders.
CUDA_VARIABLES = ("CUDA_ROOT", "CUDA_HOME", "CUDA_PATH")
CUDA_HOMES = ("/usr/local/cuda", "/usr/lib/cuda", "/usr/lib/nvidia-cuda-toolkit")

#: The program's name in locations if nothing else names it.
PROGRAM = "<program>"
_LOOPS = Step(
    edit=lambda text: one_thread.with_loops(text.decode()).encode(),
    words="puts a loop around each operation of linalg without a parallel loop",
)
_WAITS = Step(
    edit=lambda text: own_waits.with_waits(text.decode()).encode(),
    words="puts gpu.wait before and after each operation of gpu without async",
)

_ASSEMBLY = re.compile(r'(\bassembly = "(?:[^"\\]|\\.)*)"')


@dataclass(frozen=True)
class Pipeline:
    """A way to lower a program; the function `pipeline` creates each object of this class.

    ``image`` is the form of the device code: bin, or for NVIDIA's chips also isa (PTX). ``first``
    are passes that run before the pipeline's passes, for operations that the pipeline does not
    accept. If ``lines`` is not empty, the pipeline adds line tables for a program of this name, but
    only for AMD's chips. With ``linalg``, the host code's operations of linalg become kernels. With
    ``waits``, each operation without tokens gets tokens and a wait of its own.
    """

    llvm: int
    chip: str
    image: str
    opt_level: int = 2
    first: str = ""
    lines: str = ""
    coroutines: bool = False
    linalg: bool = False
    waits: bool = False
    features: str = ""

    @property
    def nvidia(self) -> bool:
        """Returns whether the chip is NVIDIA's."""
        return is_nvidia(self.chip)

    @property
    def device_llvm(self) -> int:
        """Returns the release that compiles the device code. For LLVM 19 to 21, LLVM 22 compiles
        the device code, because HIP 5.2 accepts images from LLVM 22."""
        return 22 if 19 <= self.llvm < 22 else self.llvm

    def needs(self) -> list[Tool]:
        """Returns LLVM's tools that produce the device code and the LLVM dialect."""
        releases = dict.fromkeys((self.llvm, self.device_llvm))
        linker = [] if self.nvidia else [("ld.lld", self.device_llvm)]
        return [*(("mlir-opt", llvm) for llvm in releases), *linker]

    def tools(self) -> list[Path]:
        """Returns the files of LLVM's tools and of NVIDIA's assembler. Raises ToolchainMissing."""
        tools = [toolchain.tool(*need) for need in self.needs()]
        if self.nvidia and self.image == "bin":
            tools.append(toolchain.other("ptxas", "nvidia-cuda-toolkit"))
        return tools

    def steps(self) -> list[Step]:
        """Returns the steps that lower a program to the LLVM dialect. Raises ToolchainMissing."""
        before = self._source_steps()
        passes = HOST_PASSES if self.llvm >= 22 else OLDER_HOST_PASSES
        # gpu-to-llvm makes events of the tokens that an async.execute yields. LLVM 19's would leave
        # loops that later passes do not lower.
        tasks = f"gpu-to-llvm,{TASKS}" if self.llvm >= 22 else TASKS
        passes = passes.format(
            tasks=tasks if self.coroutines else "",
            coroutines="convert-async-to-llvm," if self.coroutines else "",
        )
        passes += f",{LINES_PASS}" if self.lines else ""
        if self.llvm == self.device_llvm:
            return [*before, *self._device_steps(passes)]
        opt = toolchain.tool("mlir-opt", self.llvm)
        host = Step([opt, f"--pass-pipeline=builtin.module({passes})", *self._shown_lines()])
        return [*before, *self._device_steps(), *([_ENDED_PTX] if self.nvidia else []), host]

    def _source_steps(self) -> list[Step]:
        """Returns the steps that edit the program in mlir-opt's own layout, and before them those
        that write each operation's file name and line into it. A tool that reads stdin does not
        know the file name, and messages of later steps would name lines of the edited text."""
        edits = [_LOOPS] if self.linalg else []
        edits += [_WAITS] if self.waits else []
        if not self.lines and not edits:
            return []
        name = re.sub(r'[\\"]', r"\\\g<0>", self.lines or PROGRAM)
        name = re.sub(r"[\\&|]", r"\\\g<0>", name)
        outline = one_thread.PASSES if self.linalg else own_waits.PASSES
        passes = [f"--pass-pipeline=builtin.module({outline})"] if edits else []
        opt = toolchain.tool("mlir-opt", self.device_llvm)
        shown = Step([opt, *passes, "--mlir-print-debuginfo"])
        return [shown, Step(["sed", f's|loc("<stdin>":|loc("{name}":|g']), *edits]

    def _shown_lines(self) -> list[str]:
        return ["--mlir-print-debuginfo"] if self.lines else []

    def _device_steps(self, further: str = "") -> list[Step]:
        """Compiles the program's gpu.modules and runs further passes."""
        opt = toolchain.tool("mlir-opt", self.device_llvm)
        recipe = NVIDIA_PASSES if self.nvidia else DEVICE_PASSES
        passes = recipe.format(
            chip=self.chip,
            features=self.features and f' features="{self.features}"',
            opt=self.opt_level,
            image=self.image,
            first=self.first and f"{self.first},",
            lines=self.lines and f"{LINES_PASS},",
        )
        passes = ",".join(filter(None, (passes, further)))
        command = [opt, f"--pass-pipeline=builtin.module({passes})", *self._shown_lines()]
        if self.nvidia:
            return [Step(command, _cuda())]
        return [Step(command, rocm=self.device_llvm), NO_QUEUES, _DEFINED]

    def device_steps(self) -> list[Step]:
        """Returns the steps that compile a program's gpu.modules. Raises ToolchainMissing."""
        return [*self._source_steps(), *self._device_steps()]


#: The metadata of a hidden argument in MLIR's text, as LLVM writes it and as HIP 5.2 can read it.
#: The first argument is the device's queue, and the second is an action on completion. Both are in
#: MessagePack. The new texts have equal lengths, because they write the argument's size and the
#: texts' lengths in more bytes.
HIDDEN_QUEUES = (
    (
        rb"\A5.size\08\AB.value_kind\B4hidden_default_queue",
        rb"\A5.size\CF\00\00\00\00\00\00\00\08\AB.value_kind\D9\0Bhidden_none",
    ),
    (
        rb"\A5.size\08\AB.value_kind\B8hidden_completion_action",
        rb"\A5.size\CF\00\00\00\00\00\00\00\08\D9\0B.value_kind\DB\00\00\00\0Bhidden_none",
    ),
)


def _without_queues(text: bytes) -> bytes:
    for queue, none in HIDDEN_QUEUES:
        text = text.replace(queue, none)
    return text


#: LLVM gives a kernel the two hidden arguments unless it can prove that the kernel does not need
#: them. LLVM attempts no such proof at -O0, or for a kernel that prints. HIP 5.2 then crashes at
#: the launch, because it reads a queue that only OpenCL creates. Without OpenCL both arguments are
#: 0 in any case, so the kernel's code is unchanged.
NO_QUEUES = Step(edit=_without_queues, words="hides OpenCL's queues from HIP 5.2")

_DEFINED = Step(edit=without_undefined, words="refuses an image that calls an undefined function")

#: LLVM 22 ends PTX with a 0 when it translates the module. LLVM 19 adds no 0, so the driver would
#: also read the bytes after the PTX.
_ENDED_PTX = Step(
    edit=lambda text: _ASSEMBLY.sub(r'\1\\00"', text.decode()).encode(), words="ends PTX with a 0"
)


def pipeline(
    llvm: int,
    chip: str | None = None,
    *,
    image: str | None = None,
    opt_level: int = 2,
    first: str = "",
    lines: str = "",
) -> Pipeline:
    """Returns the pipeline of a release for a chip, by default gfx90a. Raises ValueError if the
    release has no pipeline for these arguments."""
    if llvm not in toolchain.RELEASES:
        raise ValueError(f"no recipe for LLVM {llvm}: name one of 19 to 23")
    chip, *features = (chip or DEFAULT_CHIP).split(":")
    if wrong := next((each for each in features if each[-1:] not in ("+", "-")), None):
        raise ValueError(f"--chip {chip}:{wrong}: a feature ends with + or -, such as xnack+")
    if features and is_nvidia(chip):
        raise ValueError(f"features ({':'.join(features)}) are for AMD's GPUs")
    if lines and is_nvidia(chip):
        raise ValueError("line tables (-g) are for AMD's GPUs")
    signed = ",".join(each[-1] + each[:-1] for each in features)
    return Pipeline(llvm, chip, _form(chip, image), opt_level, first, lines, features=signed)


def unknown_chip(pipeline: Pipeline) -> str:
    """Returns the message for a chip that MLIR does not know."""
    if pipeline.chip.endswith("-generic"):
        return (
            f"chip {pipeline.chip}: MLIR compiles for one GPU, and not for a family: give the name "
            "of a GPU, such as gfx906 or gfx90a"
        )
    return (
        f"chip {pipeline.chip}: LLVM {pipeline.device_llvm} knows no such GPU: give the name that "
        "`rocminfo` shows, such as gfx90a (MI200) or gfx942 (MI300)"
    )


def is_nvidia(chip: str) -> bool:
    """Returns whether a chip of this name is NVIDIA's."""
    return chip.startswith("sm_")


def _form(chip: str, image: str | None) -> str:
    """Returns the form of the device code: the requested form, or isa for an NVIDIA chip if ptxas
    is missing, otherwise bin."""
    if image not in (None, "bin", "isa") or (image == "isa" and not is_nvidia(chip)):
        raise ValueError(f"no recipe for an image of the form {image} for {chip}")
    return image or ("isa" if is_nvidia(chip) and not shutil.which("ptxas") else "bin")


def _cuda() -> dict[str, str]:
    """Returns an environment variable that contains CUDA's folder. mlir-opt reads the device
    library from CUDA's folder; a kernel with an exponential needs this library. Returns no variable
    if the environment already contains one of CUDA_VARIABLES. A returned variable names one of the
    folders in CUDA_HOMES."""
    if any(name in os.environ for name in CUDA_VARIABLES):
        return {}
    found = (home for home in CUDA_HOMES if Path(home, "nvvm", "libdevice").exists())
    return {CUDA_VARIABLES[0]: next(found, CUDA_HOMES[0])}
