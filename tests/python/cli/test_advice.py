"""The advice of commands and of the library works when it is followed: input, advice, command,
result.

Advice on what a person must install, plug in or own is not here. A missing wait that `mgpu-rt
check` names is added in tests/python/cli/check/mutants: the programs there are right with it. The
pytest plugin's advice is followed in tests/python/testing/session.py.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from mgpu_rt._cli import softgpu
from tests.python.cli.check.test_check import ON_THE_HOST
from tests.python.cli.test_fault import FAR
from tests.python.cli.test_report import counted
from tests.support.child import CUSTUB, ROOT, STUB, environment
from tests.support.command import COMMAND
from tests.support.patience import HANG
from tests.support.suites import sampled

EXAMPLES = ROOT / "examples"
PRINTS = "steps.mlir"
STEPS = f"mgpu-rt lower --emit executable --link mlir_c_runner_utils {PRINTS} -o steps"
RUN = "mgpu-rt run --device softgpu"
PLAIN = "MGPU_RT_RUNTIME=mgpu_rt.runtime:PlainRuntime"
LLVM = "/usr/lib/llvm-22/lib"
C_RUNNER = f"{LLVM}/libmlir_c_runner_utils.so.22.1 -Wl,-rpath,{LLVM}"

#: For each case: the first command, a pattern of its advice, the second command, its exit status,
#: and a part of its output. The pattern's groups are words {0}, {1} ... of the second command.
RUNS = {
    "no main": (
        f"{RUN} {EXAMPLES / 'reduction.mlir'}",
        r"the program has no function main: name one of (\w+) with (--entry)",
        f"{RUN} {{1}} {{0}} {EXAMPLES / 'reduction.mlir'}",
        (0, "32640"),
    ),
    "another chip": (
        f"mgpu-rt run --device gfx906 --chip gfx90a {PRINTS}",
        r"mgpu-rt lower (--chip gfx906)",
        f"mgpu-rt run --device gfx906 {{0}} {PRINTS}",
        (0, "3\n"),
    ),
    "an object file": (
        "mgpu-rt lower far.mlir -o far.o && mgpu-rt check far.o",
        r"is not a program yet: link it by (cc 'far.o' \$\(mgpu-rt config --libs\) -o )PROGRAM",
        "{0} program && mgpu-rt check ./program",
        (1, "1 fault"),
    ),
    "an object file that prints": (
        f"mgpu-rt lower {PRINTS} -o steps.o && {RUN} steps.o",
        r"is not a program yet: link it by (cc .* -o )PROGRAM",
        f"{{0}} program && {RUN} ./program",
        (0, "3\n"),
    ),
    "a library": (
        f"mgpu-rt lower --emit library {EXAMPLES / 'reduction.mlir'} -o lib.so; {RUN} lib.so",
        r"call it from Python by (mgpu_rt.Library\('lib.so'\))",
        f'{RUN} {sys.executable} -c "import mgpu_rt; print(*{{0}})"',
        (0, "sum"),
    ),
    "a static program": (
        f"printf 'int main(void) {{{{ return 7; }}}}' > s.c; cc -static s.c -o s; {RUN} ./s",
        r"it is statically linked: link it dynamically, with (.*)$",
        f"cc s.c {{0}} -o s && {RUN} --stats-json s.json ./s",
        (7, "called none of the library's functions"),
    ),
    "a fault": (
        f"{RUN} --stats-json s.json far.mlir",
        r"mgpu-rt (run --trace )FILE records what lies there",
        "mgpu-rt {0} t.json --device softgpu far.mlir",
        (-6, "past the end of a block of 1,024 bytes"),
    ),
    "statistics in place of a trace": (
        f"{RUN} --stats-json s.json {PRINTS}; mgpu-rt stats s.json --address 7f0000000000",
        r"record them by (mgpu-rt run --trace) FILE",
        f"{{0}} t.json --device softgpu {PRINTS}; mgpu-rt stats t.json --address 7f0000000000",
        (0, "a block of 2,048 bytes"),
    ),
    "no statistics": (
        "mgpu-rt stats far.mlir",
        r"`(mgpu-rt run --stats-json )PATH -- PROGRAM` writes a statistics file",
        f"{{0}} s.json --device softgpu {PRINTS}; mgpu-rt stats s.json",
        (0, "mgpuLaunchKernel"),
    ),
    "a program without a call": (
        "mgpu-rt run --stats -- ls",
        r"`(mgpu-rt inspect \S+)` shows whether MLIR lowered it",
        "{0}",
        (2, "holds no image of device code"),
    ),
    "a run that dies in compare": (
        "mgpu-rt compare --device softgpu far.mlir",
        r"see why with (MGPU_RT_CACHE=off mgpu-rt run .*)$",
        "{0}",
        (-6, "Memory access fault by GPU"),
    ),
    "a run that dies in diff": (
        "mgpu-rt diff --device softgpu -- far.mlir -- far.mlir",
        r"see why with (mgpu-rt run .*)$",
        "{0}",
        (-6, "Memory access fault by GPU"),
    ),
    "a kernel that prints, on HIP 5.2": (
        "printf '#!/bin/sh\n# hidden_default_queue\nkill -SEGV $$\n' > p; chmod +x p; "
        f"{RUN} --stats ./p",
        r"this program does: lower it with (mgpu-rt lower)",
        f"{{0}} --emit executable prints.mlir -o p && {RUN} ./p",
        (7, "number 7"),
    ),
    "waits that are put off": (
        f"{RUN} --lazy {PRINTS}",
        r"--lazy needs (--exclusive)",
        f"{RUN} --lazy {{0}} {PRINTS}",
        (0, "3\n"),
    ),
    "a function with arguments": (
        f"{RUN} twice.mlir",
        r"call a function from Python by (mgpu_rt.Library), or add a function",
        f"{RUN} {sys.executable} -c "
        "\"import mgpu_rt; print({0}(mgpu_rt.lower('twice.mlir')).twice(21))\"",
        (0, "42"),
    ),
    "a runtime in diff": (
        f"{PLAIN} mgpu-rt diff --device softgpu -- {PRINTS} -- {PRINTS}",
        r"unset (MGPU_RT_RUNTIME)$",
        f"env -u {{0}} mgpu-rt diff --device softgpu -- {PRINTS} -- {PRINTS}",
        (0, "3 launches compared: equal"),
    ),
    "a barrier in a branch": (
        "mgpu-rt check branch.mlir",
        r"must reach a gpu.barrier: move it out of the branch",
        "mgpu-rt check moved.mlir",
        (0, "found no fault"),
    ),
    "an option after the program": (
        "mgpu-rt run echo --stats",
        r"(--stats) after 'echo' is an argument of the program: mgpu-rt's options stand before",
        f"{RUN} {{0}} {PRINTS}",
        (0, "hipModuleLaunchKernel"),
    ),
    "no such hook": (
        f"{RUN} --hook times {PRINTS}",
        r"there is no hook 'times': name one of \w+, \w+, (time)",
        f"{RUN} --hook {{0}} {PRINTS}",
        (0, "increment: 3 launches"),
    ),
    "an option of hooks": (
        f"{RUN} --kernel increment {PRINTS}",
        r"--kernel is for hooks: add (--hook) NAME",
        f"{RUN} {{0}} time --kernel increment {PRINTS}",
        (0, "increment: 3 launches"),
    ),
    "nothing to compare": (
        "mgpu-rt compare",
        r"name two statistics files, or a program after (--)",
        f"{STEPS}; mgpu-rt compare --device softgpu {{0}} ./steps",
        (0, "hipStreamCreate "),
    ),
    "one program in diff": (
        f"mgpu-rt diff {PRINTS}",
        r"or two devices \((--device) A,B\)",
        f"mgpu-rt diff {{0}} softgpu,softgpu {PRINTS}",
        (0, "3 launches compared: equal"),
    ),
    "one program after -- in diff": (
        f"mgpu-rt diff --device softgpu -- {PRINTS}",
        r"name a second program \((-- )BEFORE -- AFTER\)",
        f"mgpu-rt diff --device softgpu {{0}} {PRINTS} -- {PRINTS}",
        (0, "3 launches compared: equal"),
    ),
    "no recording": (
        "mgpu-rt replay recording",
        r"name a folder that `(mgpu-rt run --record)` has written",
        f"{{0}} recording --device softgpu {PRINTS}; mgpu-rt replay --device softgpu recording",
        (0, "increment: same"),
    ),
    "an environment without --env": (
        "mgpu-rt config --device softgpu",
        r"--device softgpu needs --env: add (--env)",
        f'{STEPS}; eval "$(mgpu-rt config {{0}} --device softgpu)"; ./steps',
        (0, "3\n"),
    ),
    "a runtime in check": (
        f"{PLAIN} mgpu-rt check {EXAMPLES / 'race.mlir'}",
        r"unset (MGPU_RT_RUNTIME)$",
        f"env -u {{0}} mgpu-rt check {EXAMPLES / 'race.mlir'}",
        (1, "[race]"),
    ),
    "a folder that is missing": (
        f"{RUN} --stats-json folder/s.json {PRINTS}",
        r"there is no folder '(folder)'; make it",
        f"mkdir {{0}} && {RUN} --stats-json folder/s.json {PRINTS} && mgpu-rt stats folder/s.json",
        (0, "mgpuLaunchKernel"),
    ),
    "no GPU to compile for": (
        f"HIP_VISIBLE_DEVICES=-1 mgpu-rt run --device hip {PRINTS}",
        r"name the GPU with --chip, or see `(mgpu-rt doctor --device hip)`",
        "HIP_VISIBLE_DEVICES=-1 {0}",
        (1, "✗  devices"),
    ),
}

TENSORS = """func.func @main() -> i32 {
  %c = arith.constant dense<2.0> : tensor<4x4xf32>
  %e = tensor.empty() : tensor<4x4xf32>
  %z = arith.constant 0.0 : f32
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
  %r = linalg.matmul ins(%c, %c : tensor<4x4xf32>, tensor<4x4xf32>)
                     outs(%f : tensor<4x4xf32>) -> tensor<4x4xf32>
  %i = arith.constant 1 : index
  %x = tensor.extract %r[%i, %i] : tensor<4x4xf32>
  %n = arith.fptosi %x : f32 to i32
  return %n : i32
}"""
#: Adds 7 to the four elements of a buffer BUFFER; BEFORE and AFTER stand around linalg.
FILLS = """func.func @main() -> i32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %seven = arith.constant 7 : i32
  %host = memref.alloc() : memref<4xi32>
  BEFORE
  linalg.fill ins(%seven : i32) outs(%BUFFER : memref<4xi32>)
  AFTER
  %x = memref.load %host[%c1] : memref<4xi32>
  return %x : i32
}"""
ON_GPU = "%gpu = gpu.alloc () : memref<4xi32>"
BACK = """gpu.memcpy %host, %gpu : memref<4xi32>, memref<4xi32>
  gpu.dealloc %gpu : memref<4xi32>"""
BY_LINALG = "linalg.fill ins(%seven : i32) outs(%host : memref<4xi32>)"
BY_LOOP = """scf.for %i = %c0 to %c4 step %c1 {
    memref.store %seven, %host[%i] : memref<4xi32>
  }"""
#: A kernel that reduces its thread's number by REDUCTION, and returns what thread 0 stores.
REDUCES = """func.func @main() -> i32 {
  %c1 = arith.constant 1 : index
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %host = memref.alloc() : memref<1xi32>
  %gpu = gpu.alloc () : memref<1xi32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1) {
    %number = arith.index_cast %tx : index to i32
    REDUCTION
    %first = arith.cmpi eq, %tx, %c0 : index
    scf.if %first {
      memref.store %sum, %gpu[%c0] : memref<1xi32>
    }
    gpu.terminator
  }
  gpu.memcpy %host, %gpu : memref<1xi32>, memref<1xi32>
  %x = memref.load %host[%c0] : memref<1xi32>
  return %x : i32
}"""
BY_SHUFFLE = """%width = arith.constant 64 : i32
    %step = arith.constant 1 : i32
    %other, %valid = gpu.shuffle xor %number, %step, %width : i32
    %sum = arith.addi %number, %other : i32"""
ASSERTS = """%true = arith.cmpi ult, %tx, %sx : index
    cf.assert %true, "a thread"
    %sum = arith.addi %number, %number : i32"""


BRANCHES = """%zeroth = arith.cmpi eq, %tx, %c0 : index
    scf.if %zeroth {
      INSIDE
    }
    BEHIND
    %sum = arith.addi %number, %number : i32"""
OF_LIBM = """%float = arith.sitofp %number : i32 to f32
    %error = ERF
    %sum = arith.fptosi %error : f32 to i32"""
SMALL = """%float = arith.sitofp %number : i32 to f32
    %small = arith.truncf %float : f32 to f8E4M3FN
    %again = arith.extf %small : f8E4M3FN to f32
    %sum = arith.fptosi %again : f32 to i32"""
ERFF = "func.func private @erff(f32) -> f32"
BY_CALL = "func.call @erff(%float) : (f32) -> f32"
PRINTED = """%sum = arith.constant 7 : i32
    %zeroth = arith.cmpi eq, %tx, %c0 : index
    scf.if %zeroth {
      gpu.printf "number %d\\n", %sum : i32
    }"""

ANOTHER = "gpu.module @others { gpu.func @nothing() kernel { gpu.return } }"

#: Copies numbers to the GPU, some or all, and back.
COPIES = """func.func @main() -> i32 {
  %c1 = arith.constant 1 : index
  %seven = arith.constant 7 : i32
  %host = memref.alloc() : memref<4x4xi32>
  memref.store %seven, %host[%c1, %c1] : memref<4x4xi32>
  %gpu = gpu.alloc () : memref<4x4xi32>
  COPY
  gpu.memcpy %host, %gpu : memref<4x4xi32>, memref<4x4xi32>
  %x = memref.load %host[%c1, %c1] : memref<4x4xi32>
  return %x : i32
}"""
A_PART = """%rows = memref.subview %host[1, 0] [2, 4] [1, 1]
      : memref<4x4xi32> to memref<2x4xi32, strided<[4, 1], offset: 4>>
  %half = gpu.alloc () : memref<2x4xi32>
  gpu.memcpy %half, %rows : memref<2x4xi32>, memref<2x4xi32, strided<[4, 1], offset: 4>>"""
ALL = "gpu.memcpy %gpu, %host : memref<4x4xi32>, memref<4x4xi32>"
CALLS = """func.func private @five() -> i32
func.func @main() -> i32 {
  %five = call @five() : () -> i32
  return %five : i32
}"""
TWICE = """func.func @twice(%x: i32) -> i32 {
  %twice = arith.addi %x, %x : i32
  return %twice : i32
}"""
LARGE = """module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @seven(%out: memref<512xi32>) kernel {
      %t = gpu.thread_id x
      %seven = arith.constant 7 : i32
      memref.store %seven, %out[%t] : memref<512xi32>
      gpu.return
    }
  }
  func.func @main() -> i32 {
    %c1 = arith.constant 1 : index
    %c511 = arith.constant 511 : index
    %c512 = arith.constant 512 : index
    %host = memref.alloc() : memref<512xi32>
    %gpu = gpu.alloc () : memref<512xi32>
    gpu.launch_func @kernels::@seven blocks in (%c1, %c1, %c1) threads in (%c512, %c1, %c1)
        args(%gpu : memref<512xi32>)
    gpu.memcpy %host, %gpu : memref<512xi32>, memref<512xi32>
    %x = memref.load %host[%c511] : memref<512xi32>
    return %x : i32
  }
}"""
FORKS = """import ctypes, multiprocessing, sys
import mgpu_rt
library = ctypes.CDLL(mgpu_rt.library_path())
library.mgpuStreamCreate.restype = ctypes.c_void_p
def work():
    print("the child has", "a stream" if library.mgpuStreamCreate() else "none", flush=True)
if __name__ == "__main__":
    library.mgpuStreamCreate()
    child = multiprocessing.get_context(sys.argv[1]).Process(target=work)
    child.start()
    child.join()
"""
BUSY_C = """
void *mgpuStreamCreate(void);
void mgpuStreamSynchronize(void *), mgpuStreamDestroy(void *), mgpuMemFree(void *, void *);
void *mgpuMemAlloc(unsigned long, void *, _Bool);
void mgpuMemset32(void *, unsigned, unsigned long, void *);
int main(int count, char **words) {
    for (int n = 0; n < 20; n++) {
        void *stream = mgpuStreamCreate(), *block = mgpuMemAlloc(4096, stream, 0);
        mgpuMemset32(block, 1, 1024, stream);
        if (count > 1)
            mgpuStreamSynchronize(stream);
        mgpuMemFree(block, stream);
        mgpuStreamDestroy(stream);
    }
    return 0;
}"""

#: Creates a stream while the process ends. With OPENED the program opens the library itself.
LATE_C = """
#include <dlfcn.h>
#include <stdlib.h>
#ifdef OPENED
#define mgpuStreamCreate ((void *(*)(void))dlsym(dlopen(library, RTLD_NOW), "mgpuStreamCreate"))
#else
void *mgpuStreamCreate(void);
#endif
static const char *library;
static void late(void) { _Exit(mgpuStreamCreate() ? 7 : 1); }
int main(int count, char **words) {
    library = words[1];
    atexit(late);
    return mgpuStreamCreate() ? 0 : 2;
}"""
DEVICE_ADDRESS = """\
func.func private @mgpuMemGetDeviceMemRef1dFloat(memref<?xf32>) -> memref<?xf32>"""
REGISTER = """  %ranked = memref.cast %memory : memref<4xf32> to memref<?xf32>
  %unranked = memref.cast %memory : memref<4xf32> to memref<*xf32>
  gpu.host_register %unranked : memref<*xf32>
  gpu.launch"""
LLVM_C = "void mlirContextCreate(void) {} int main(void) { return mgpuStreamCreate() ? 7 : 1; }"
ALLOCATOR_C = """
void *__libc_malloc(unsigned long);
void *malloc(unsigned long size) { return __libc_malloc(size); }
"""


def program(name: str, iterations: int) -> str:
    text = (ROOT / name).read_text()
    return text.replace(
        "iterations = arith.constant 1000 ", f"iterations = arith.constant {iterations} "
    )


def fills(buffer: str, before: str = "", after: str = "") -> str:
    return FILLS.replace("BUFFER", buffer).replace("BEFORE", before).replace("AFTER", after)


def reduces(reduction: str) -> str:
    return REDUCES.replace("REDUCTION", reduction)


#: A workgroup of two waves; LLVM leaves out a barrier for one.
WAVES = reduces(BRANCHES).replace("constant 64", "constant 128")
THREE, TWENTY = (program(f"examples/{PRINTS}", steps) for steps in (3, 20))
#: Programs that the commands find in their folder.
PROGRAMS = {
    "far.mlir": FAR.read_text(),
    PRINTS: THREE,
    "tensors.mlir": TENSORS,
    "host.mlir": fills("host"),
    "kernels.mlir": fills("gpu", ON_GPU, BACK),
    "both.mlir": fills("gpu", f"{BY_LINALG}\n  {ON_GPU}", BACK),
    "one.mlir": fills("gpu", f"{BY_LOOP}\n  {ON_GPU}", BACK),
    "reduces.mlir": reduces("%sum = gpu.subgroup_reduce add %number : (i32) -> i32"),
    "shuffles.mlir": reduces(BY_SHUFFLE),
    "asserts.mlir": reduces(ASSERTS),
    "branch.mlir": WAVES.replace("INSIDE", "gpu.barrier").replace("BEHIND", ""),
    "moved.mlir": WAVES.replace("INSIDE", "").replace("BEHIND", "gpu.barrier"),
    "libm.mlir": f"{ERFF}\n{reduces(OF_LIBM.replace('ERF', BY_CALL))}",
    "math.mlir": reduces(OF_LIBM.replace("ERF", "math.erf %float : f32")),
    "sin.mlir": reduces(OF_LIBM.replace("ERF", "math.sin %float : f32")),
    "tanh.mlir": reduces(OF_LIBM.replace("ERF", "math.tanh %float : f32")),
    "prints.mlir": reduces(PRINTED),
    "small.mlir": reduces(SMALL),
    "part.mlir": COPIES.replace("COPY", A_PART),
    "whole.mlir": COPIES.replace("COPY", ALL),
    "calls.mlir": CALLS,
    "wrong.mlir": CALLS.replace("call @five", "cal! @five"),
    "twice.mlir": TWICE,
    "large.mlir": LARGE,
    "forks.py": FORKS,
    "on-host.mlir": ON_THE_HOST,
    "registered.mlir": DEVICE_ADDRESS + ON_THE_HOST.replace("  gpu.launch", REGISTER, 1),
    "advice.c": Path(__file__).with_name("advice.c").read_text(),
    "late.c": LATE_C,
    "llvm.c": LLVM_C,
    "allocator.c": ALLOCATOR_C,
    "cluster.mlir": program("bench/programs/cluster.mlir", 1),
    "globals.mlir": program("bench/programs/globals.mlir", 3),
    "vecadd.mlir": program("bench/programs/vecadd.mlir", 3),
    "open.mlir": TWENTY.replace("gpu.wait [%freed]", ""),
    "closed.mlir": TWENTY,
    "busy.c": BUSY_C,
    "registers.json": json.dumps(counted("abi", "mgpuMemHostRegisterMemRef", calls=10, ns=10_000)),
    "asks.json": json.dumps(counted("hip", "hipStreamQuery", calls=100, ns=5_000)),
    "two.mlir": THREE.replace("  gpu.module", f"  {ANOTHER}\n  gpu.module", 1),
    "interface.mlir": THREE.replace("llvm.noinline", "llvm.noinline, llvm.emit_c_interface"),
    "trusts.mlir": reduces(ASSERTS.replace("cf.assert", "// cf.assert")),
}

EARLY = "mlir-opt-22 --convert-math-to-llvm"
LOWERINGS = {
    "a library is missing": (
        f"mgpu-rt lower --emit executable {PRINTS} -o steps",
        r"add (--link mlir_c_runner_utils)",
        f"mgpu-rt lower --emit executable {{0}} {PRINTS} -o steps && {RUN} ./steps",
        (0, "3\n"),
    ),
    "a family of GPUs": (
        f"mgpu-rt lower --chip gfx9-generic {PRINTS} -o steps.o",
        r"give the name of a GPU, such as gfx906 or (gfx90a)",
        f"{RUN} --chip {{0}} {PRINTS}",
        (0, "3\n"),
    ),
    "an unknown GPU": (
        f"mgpu-rt lower --chip gfx1 {PRINTS} -o steps.o",
        r"give the name that `rocminfo` shows, such as (gfx90a) ",
        f"{RUN} --chip {{0}} {PRINTS}",
        (0, "3\n"),
    ),
    "an unknown release": (
        f"{RUN} --llvm 18 {PRINTS}",
        r"no recipe for LLVM 18: name 15, or (19) to 23",
        f"{RUN} --llvm {{0}} {PRINTS}",
        (0, "3\n"),
    ),
    "tokens with LLVM 15": (
        "mgpu-rt lower --llvm 15 kernels.mlir -o k.o",
        r"which LLVM 15's command does not do: use (--llvm 22)",
        f"{RUN} {{0}} kernels.mlir",
        (7, ""),
    ),
    "tensors": (
        f"{RUN} tensors.mlir",
        r"run mlir-opt (--one-shot-bufferize=\S+) before",
        f"mlir-opt-22 {{0}} tensors.mlir -o buffers.mlir && {RUN} buffers.mlir",
        (16, "becomes host loops"),
    ),
    "linalg on the host's memory": (
        f"{RUN} host.mlir",
        r"becomes host loops: for kernels, allocate by gpu.alloc and copy by gpu.memcpy",
        f"{RUN} --stats kernels.mlir",
        (7, "mgpuLaunchKernel"),
    ),
    "linalg on both": (
        f"{RUN} both.mlir",
        r"would make kernels of both: write that as loops of scf.for",
        f"{RUN} --stats one.mlir",
        (7, "mgpuLaunchKernel"),
    ),
    "a reduction of a subgroup": (
        f"{RUN} reduces.mlir",
        r"write it with gpu.shuffle",
        f"{RUN} shuffles.mlir",
        (1, ""),
    ),
    "floats of eight bits": (
        f"{RUN} small.mlir",
        r"\A(?:.*\n){1,6}.* runs no pass that converts f8E4M3FN: use (f16) or bf16",
        f"sed s/f8E4M3FN/{{0}}/ small.mlir > half.mlir && {RUN} half.mlir",
        (0, ""),
    ),
    "an assertion in a kernel": (
        f"{RUN} asserts.mlir",
        r"take cf.assert out of the kernel",
        f"{RUN} trusts.mlir",
        (0, ""),
    ),
    "the program itself": (
        "mgpu-rt lower kernels.mlir -o kernels.mlir",
        r"-o kernels.mlir is the program itself: name another file",
        "mgpu-rt lower kernels.mlir -o kernels.o && mgpu-rt inspect kernels.o",
        (0, "1 image"),
    ),
    "a function that is missing": (
        "mgpu-rt lower --emit executable calls.mlir -o calls",
        r"name a file or library that defines five with (--link)",
        "printf 'int five(void) {{ return 5; }}' > five.c && cc -c five.c && "
        f"mgpu-rt lower --emit executable {{0}} five.o calls.mlir -o calls && {RUN} ./calls",
        (5, ""),
    ),
    "a tool that fails": (
        "mgpu-rt lower wrong.mlir -o wrong.o",
        r"mlir-opt failed \((--dry-run) prints the commands\)",
        "mgpu-rt lower {0} wrong.mlir -o wrong.o | bash -e",
        (0, "error: invalid type identifier"),
    ),
    "a part of a memref": (
        f"{RUN} part.mlir",
        r"copy the whole memref, or these elements by a kernel",
        f"{RUN} whole.mlir",
        (7, ""),
    ),
    "a function of libm in a kernel": (
        f"{RUN} libm.mlir",
        r"leave math operations of kernels to mgpu-rt lower",
        f"{RUN} math.mlir",
        (0, ""),
    ),
    "an intrinsic in a kernel": (
        f"{EARLY} sin.mlir -o early.mlir; {RUN} early.mlir",
        r"kernel has llvm.intr.(sin), .* leave math operations of kernels to mgpu-rt lower",
        f"{RUN} {{0}}.mlir",
        (0, ""),
    ),
    "an intrinsic without code for a GPU": (
        f"{EARLY} tanh.mlir -o early.mlir; {RUN} early.mlir",
        r"kernel has llvm.intr.(tanh), .* leave math operations of kernels to mgpu-rt lower",
        f"{RUN} {{0}}.mlir",
        (0, ""),
    ),
    "two modules in one image": (
        "mgpu-rt lower --emit image two.mlir -o image",
        r"--emit image writes one, so keep one gpu.module",
        f"mgpu-rt lower --emit image {PRINTS} -o image && mgpu-rt inspect image",
        (0, "kernel increment"),
    ),
    "a graph of a C wrapper": (
        "mgpu-rt lower --graph _mlir_ciface_step interface.mlir -o graph.o",
        r"this C wrapper calls (step): name that function instead",
        "mgpu-rt lower --graph {0} interface.mlir -o graph.o && mgpu-rt inspect graph.o",
        (0, "step"),
    ),
    "hoist without compiled kernels": (
        f"mgpu-rt lower --emit mlir {PRINTS} -o a.mlir; mgpu-rt hoist {PRINTS} -o hoisted.mlir",
        r"run mlir-opt's .* before, or lower all dialects by (mgpu-rt lower --emit mlir)$",
        f"{{0}} {PRINTS} -o all.mlir && mgpu-rt hoist all.mlir -o hoisted.mlir",
        (0, "step: moved a stream"),
    ),
    "hoist of other dialects": (
        "mgpu-rt hoist kernels.mlir -o hoisted.mlir",
        r"or lower all dialects by (mgpu-rt lower --emit mlir)",
        "{0} kernels.mlir -o all.mlir && mgpu-rt hoist all.mlir -o hoisted.mlir",
        (0, "main: moved a stream"),
    ),
}

OBJECT = f"mgpu-rt lower {PRINTS} -o steps.o"
INSPECTIONS = {
    "a program without an image": (
        "mgpu-rt inspect $(command -v ls)",
        r"name a file that was lowered with gpu-module-to-binary",
        f"{OBJECT} && mgpu-rt inspect steps.o",
        (0, "kernel increment"),
    ),
    "a truncated file": (
        f"{OBJECT}; cp steps.o part.o; truncate -s 2000 part.o; mgpu-rt inspect part.o",
        r"build or copy it again",
        "cp steps.o part.o && mgpu-rt inspect part.o",
        (0, "kernel increment"),
    ),
    "HIP that was not asked": (
        f"{OBJECT}; env -u MGPU_RT_HIP mgpu-rt inspect steps.o",
        r"(--device softgpu) asks HIP with an emulated device",
        "mgpu-rt inspect {0} steps.o",
        (0, "gfx90a (emulated): fits"),
    ),
    "HIP without a GPU": (
        f"{OBJECT}; HIP_VISIBLE_DEVICES=-1 mgpu-rt inspect --device hip steps.o",
        r"`(mgpu-rt doctor --device hip)` says why",
        "HIP_VISIBLE_DEVICES=-1 {0}",
        (1, "✗  devices"),
    ),
    "a feature": (
        f"mgpu-rt lower --chip gfx90a:xnack+ {PRINTS} -o x.o; mgpu-rt inspect --device softgpu x.o",
        r"device runs with xnack-:\s+compile without\s+features=\+xnack",
        f"{OBJECT} && mgpu-rt inspect --device softgpu steps.o",
        (0, "gfx90a (emulated): fits"),
    ),
}

PROGRAM = f"{STEPS}; env -u MGPU_RT_HIP"
DOCTOR = {
    "what is possible": (
        "mgpu-rt doctor --device softgpu",
        r"A run is possible: (mgpu-rt run --device softgpu --) PROGRAM",
        f"{STEPS}; {{0}} ./steps",
        (0, "3\n"),
    ),
    "no driver": (
        "env -u MGPU_RT_HIP mgpu-rt doctor --device hip",
        r"or use (--device softgpu)",
        "mgpu-rt doctor {0}",
        (0, "A run is possible"),
    ),
    "hidden devices": (
        "HIP_VISIBLE_DEVICES=7 mgpu-rt doctor --device softgpu",
        r"(HIP_VISIBLE_DEVICES)=7 may hide them: unset it",
        "env -u {0} mgpu-rt doctor --device softgpu",
        (0, "A run is possible"),
    ),
    "a folder for HIP": (
        "MGPU_RT_HIP=/lib mgpu-rt doctor --device softgpu",
        r"(MGPU_RT_HIP)=/lib is no library: name the file",
        "env -u {0} mgpu-rt doctor --device softgpu",
        (0, "A run is possible"),
    ),
    "no Python": (
        "MGPU_RT_MANAGER=/nowhere mgpu-rt doctor --device softgpu",
        r"set (MGPU_RT_MANAGER) to an interpreter that has cffi, or to (off)",
        "{0}={1} mgpu-rt doctor --device softgpu",
        (0, "off: the library manages its caches by itself"),
    ),
    "no NVIDIA driver": (
        "mgpu-rt doctor --device cuda",
        r"or set (MGPU_RT_CUDA) to its\s+path",
        f"{{0}}={CUSTUB} mgpu-rt doctor --device cuda",
        (0, "A run is possible: mgpu-rt run --device cuda"),
    ),
}

#: Advice of the library on stderr, while a program runs.
LIBRARY = {
    "no GPU": (
        f"{PROGRAM} HIP_VISIBLE_DEVICES=-1 ./steps",
        r"Emulate one: `(mgpu-rt run --device softgpu -- )PROGRAM`",
        "{0} ./steps",
        (0, "3\n"),
    ),
    "not the path of HIP": (
        f"{STEPS}; MGPU_RT_HIP=/lib/libhip.so ./steps",
        r"Set MGPU_RT_HIP to the path of a libamdhip64, or (unset) it",
        'eval "$(mgpu-rt config --env --device softgpu)"; {0} MGPU_RT_HIP; ./steps',
        (0, "3\n"),
    ),
    "another GPU's image": (
        f"{STEPS} --chip gfx906; {RUN} ./steps",
        r"Compile the image for this GPU: mgpu-rt lower (--chip gfx90a)",
        f"{STEPS} {{0}}; {RUN} ./steps",
        (0, "3\n"),
    ),
    "an image with xnack": (
        f"{STEPS} --chip gfx90a:xnack+; {RUN} ./steps",
        r"Compile the image for this GPU: mgpu-rt lower (--chip gfx90a)",
        f"{STEPS} {{0}}; {RUN} ./steps",
        (0, "3\n"),
    ),
    "a folder in place of a trace": (
        f"{STEPS}; MGPU_RT_TRACE=/tmp {RUN} ./steps",
        r"it exists and is not a file: name a new file",
        f"MGPU_RT_TRACE=t.record {RUN} ./steps && mgpu-rt stats -o - t.record",
        (0, "traceEvents"),
    ),
    "no such option": (
        f"MGPU_RT_STAT=1 {RUN} {PRINTS}",
        r"do you mean (MGPU_RT_STATS)\?",
        f"{{0}}=1 {RUN} {PRINTS}",
        (0, "mgpuLaunchKernel"),
    ),
    "a fork of a process that used the GPU": (
        f"{RUN} {sys.executable} forks.py fork",
        r'start the child as a new program \(Python: multiprocessing with "(spawn)" or',
        f"{RUN} {sys.executable} forks.py {{0}}",
        (0, "the child has a stream"),
    ),
    "a block that is too large": (
        f"{RUN} large.mlir",
        r"give its size in (known_block_size), an attribute of gpu.func",
        f"sed 's/kernel {{{{/kernel attributes {{{{{{0}} = array<i32: 512, 1, 1>}}}} {{{{/' "
        f"large.mlir > sized.mlir && {RUN} sized.mlir",
        (7, ""),
    ),
    "a kernel that the image lacks": (
        f"mgpu-rt lower --emit image {PRINTS} -o steps.hsaco && cc {EXAMPLES / 'c/launch.c'} "
        f"$(mgpu-rt config --libs) -o launch && {RUN} ./launch steps.hsaco",
        r"has no kernel 'scale': `(mgpu-rt inspect )PROGRAM` lists the kernels of each image",
        f"mgpu-rt lower --emit image {EXAMPLES / 'c/scale.mlir'} -o scale.hsaco && "
        f"{{0}}scale.hsaco && {RUN} ./launch scale.hsaco",
        (0, "scaled: 1.5 3 4.5 6"),
    ),
    "assembly for a GPU of AMD": (
        f"mgpu-rt lower --dry-run {PRINTS} -o a.o | sed 's/format=bin/format=isa/' | bash -e && "
        f"cc a.o $(mgpu-rt config --libs) {C_RUNNER} -o a && {RUN} ./a",
        r"Lower with gpu-module-to-binary\{(format=bin)\}",
        f"mgpu-rt lower --dry-run {PRINTS} -o a.o | grep {{0}} && {STEPS} && {RUN} ./steps",
        (0, "3\n"),
    ),
    "no Python for a hook": (
        f"MGPU_RT_MANAGER=/nowhere {RUN} --hook time {PRINTS}",
        r"set (MGPU_RT_MANAGER) to one with a libpython",
        f"{{0}}={sys.executable} {RUN} --hook time {PRINTS}",
        (0, "increment: 3 launches"),
    ),
    "a folder as stdin of Python": (
        f'{STEPS}; eval "$(mgpu-rt config --env --device softgpu)"; {PLAIN} ./steps < /',
        r"standard input is a directory, .*: redirect it",
        f'eval "$(mgpu-rt config --env --device softgpu)"; {PLAIN} ./steps < /dev/null',
        (0, "3\n"),
    ),
    "no rank": (
        f"MGPU_RT_DEVICE=local-rank {RUN} {PRINTS}",
        r"no launcher has set a rank, .* looked for: (LOCAL_RANK)",
        f"{{0}}=0 MGPU_RT_DEVICE=local-rank MGPU_RT_VERBOSE=1 {RUN} {PRINTS}",
        (0, "3\n"),
    ),
}

EMULATED = 'eval "$(mgpu-rt config --env --device softgpu)"'
ADVISED = f"cc advice.c -I{ROOT / 'csrc' / 'include'} $(mgpu-rt config --libs) -o advised"
LIBRARY |= {
    "two HIP libraries": (
        f"{STEPS}; {EMULATED}; LD_PRELOAD=$MGPU_RT_HIP MGPU_RT_HIP={STUB} ./steps",
        r"the program uses (\S+), and .* unset MGPU_RT_HIP, or set it to the first path",
        f"{EMULATED}; LD_PRELOAD=$MGPU_RT_HIP MGPU_RT_HIP={{0}} ./steps",
        (0, "3\n"),
    ),
    "an allocator beside LLVM's": (
        "cc -w -rdynamic llvm.c $(mgpu-rt config --libs) -o llvm && "
        "cc -w -shared -fPIC allocator.c -o allocator.so && "
        f"{EMULATED} && LD_PRELOAD=./allocator.so ./llvm",
        r"with the allocator (\S+), so HIP may crash. Run the program without that allocator",
        f"{EMULATED}; LD_PRELOAD= ./llvm 2> said; test $? = 7 && wc -c < said",
        (0, "0\n"),
    ),
    "a call after HIP's exit": (
        f"cc -w -DOPENED late.c -o late && {EMULATED} && "
        "LD_PRELOAD= ./late $(mgpu-rt config --path)/libmlir_rocm_runtime.so",
        r"Link with this library, so that HIP ends after the program's own destructors",
        f"cc late.c $(mgpu-rt config --libs) -o late && {EMULATED} && LD_PRELOAD= ./late",
        (7, ""),
    ),
    "clusters": (
        f"{RUN} cluster.mlir",
        r"Lower without `(clusters in)`",
        f"sed '/{{0}}/d' cluster.mlir > plain.mlir && {RUN} --fail-on-error --stats plain.mlir",
        (0, "mgpuLaunchKernel"),
    ),
    "a tensor map": (
        f"{ADVISED}; {RUN} ./advised tensor-map",
        r"run with `(mgpu-rt run --device cuda)`",
        f"env -u MGPU_RT_HIP MGPU_RT_CUDA={CUSTUB} {{0}} --fail-on-error --stats "
        "./advised tensor-map",
        (0, "mgpuTensorMapEncodeTiled"),
    ),
    "a graph that copies memory registered later": (
        f"{ADVISED}; {RUN} ./advised graph",
        r"destroy the graph, and build it again",
        f"{RUN} ./advised graph again",
        (0, "copied 7"),
    ),
    "a copy that is too long": (
        f"{ADVISED}; {RUN} ./advised copy",
        r"copy of 1048576 bytes from .*: check that both allocations hold that many",
        f"{RUN} --fail-on-error --stats ./advised copy of-its-size",
        (0, "mgpuMemcpy"),
    ),
    "a stream as an event": (
        f"{ADVISED}; {RUN} ./advised event",
        r"was passed as an event; give the token of a gpu.wait that returns one",
        f"{RUN} --fail-on-error --stats ./advised event created",
        (0, "mgpuEventRecord"),
    ),
}

#: Advice of commands on the program that they are given.
GIVEN = {
    "diff without --": (
        f"{STEPS}; mgpu-rt diff --device softgpu,softgpu ./steps",
        r"'./steps' needs (--) before it",
        "mgpu-rt diff --device softgpu,softgpu {0} ./steps",
        (0, "3 launches compared: equal"),
    ),
    "two processes in diff": (
        f"{STEPS}; mgpu-rt diff --device softgpu,softgpu -- sh -c './steps; ./steps'",
        r"diff compares one; run one rank, or the process alone",
        "mgpu-rt diff --device softgpu,softgpu -- ./steps",
        (0, "3 launches compared: equal"),
    ),
    "a type of numbers in diff": (
        f"{STEPS}; mgpu-rt diff --device softgpu,softgpu --dtype f33 -- ./steps",
        r"'f33' is not a type of numbers: name one of f16, bf16, (f32)",
        "mgpu-rt diff --device softgpu,softgpu --dtype {0} -- ./steps",
        (0, "3 launches compared: equal"),
    ),
    "a program that is not executable": (
        f"{STEPS}; chmod -x steps; {RUN} ./steps",
        r"is not executable: (chmod \+x '\S+')$",
        f"{{0}} && {RUN} ./steps",
        (0, "3\n"),
    ),
    "a directory for statistics": (
        f"{RUN} --stats-json . {PRINTS}",
        r"'\.' is a directory: name a file",
        f"{RUN} --stats-json s.json {PRINTS}; mgpu-rt stats s.json",
        (0, "mgpuLaunchKernel"),
    ),
    "an empty image": (
        "touch empty; mgpu-rt inspect empty",
        r"'empty' is empty: name a file that holds images",
        f"{OBJECT} && mgpu-rt inspect steps.o",
        (0, "kernel increment"),
    ),
    "memory of the host": (
        "mgpu-rt check on-host.mlir",
        r"not registered: register it .*, or copy it to memory of (gpu.alloc)",
        "sed 's/memref.alloc()/{0} ()/' on-host.mlir > on-gpu.mlir && mgpu-rt check on-gpu.mlir",
        (0, "found no fault"),
    ),
    "the host's address of registered memory": (
        "mgpu-rt check registered.mlir",
        r"give the kernel the device's address, which (mgpuMemGetDeviceMemRef1dFloat) returns",
        "sed 's/.*gpu.launch blocks/  %seen = call @{0}(%ranked) : (memref<?xf32>) -> "
        "memref<?xf32>\\n&/; s/, %memory/, %seen/; s/] : memref<4/] : memref<?/' registered.mlir "
        "> seen.mlir && mgpu-rt check seen.mlir",
        (0, "found no fault"),
    ),
}

SHOW = "mgpu-rt stats s.json | tr -s ' '"
PAGE = "mgpu-rt compare --report -"
ON_STUB = f"MGPU_RT_HIP={STUB} HIPSTUB_MODE=record HIPSTUB_ASYNC=held mgpu-rt run --device hip"
BUSY = f"cc -w busy.c $(mgpu-rt config --libs) -o busy && {ON_STUB}"

#: Advice of the page of `mgpu-rt compare --report`.
REPORT = {
    "calls that failed": (
        f"{RUN} --stats-json s.json large.mlir; {PAGE} s.json",
        r"stderr has advice for each cause",
        f"{RUN} large.mlir || true",
        (0, "give its size in known_block_size"),
    ),
    "a process that was killed": (
        f"{RUN} --stats-json s.json far.mlir; {PAGE} s.json",
        r"run <code>(mgpu-rt doctor)</code> to check the machine; (MGPU_RT_VERBOSE=1) prints",
        f"{{1}} {RUN} far.mlir; {{0}} --device softgpu",
        (0, "A run is possible"),
    ),
    "no cache": (
        f"MGPU_RT_CACHE=off {RUN} --stats-json s.json {PRINTS}; {PAGE} s.json",
        r"Leave (MGPU_RT_CACHE) unset",
        f"env -u {{0}} {RUN} --stats-json s.json {PRINTS}; {SHOW}",
        (0, "functions 2 1 66.7 %"),
    ),
    "a module that is loaded each time": (
        f"{RUN} --llvm 19 --stats-json s.json globals.mlir; {PAGE} s.json",
        r"<code>(mgpu-rt inspect )PROGRAM</code> names the globals",
        "mgpu-rt lower --llvm 19 globals.mlir -o globals.o && {0}globals.o",
        (0, "launches (4 bytes)"),
    ),
    "streams that are never destroyed": (
        f"{RUN} --stats-json s.json open.mlir; {PAGE} s.json",
        r"End each chain of tokens by a <code>gpu.wait</code> without <code>async</code>: MLIR",
        f"{RUN} --stats-json s.json closed.mlir; {SHOW}",
        (0, "streams 19 1 95.0 %"),
    ),
    "memory that waits": (
        f"{BUSY} --stats-json s.json ./busy; {PAGE} s.json",
        r"end a round by a <code>gpu.wait</code> without <code>async</code> if its results",
        f"{BUSY} --stats-json s.json ./busy waits; {SHOW}",
        (0, "memory 19 1 95.0 %"),
    ),
    "registrations": (
        f"{PAGE} registers.json",
        r"run it with (mgpu-rt run --exclusive): memory then stays registered",
        "{0} --device softgpu --stats vecadd.mlir",
        (0, "registered memory: hits"),
    ),
    "questions": (
        f"{PAGE} asks.json",
        r"If nothing else in the process calls HIP, run it with mgpu-rt run (--exclusive)\.",
        f"{RUN} {{0}} --stats-json s.json {PRINTS}; mgpu-rt stats s.json | grep -c hipStreamQuery",
        (1, "0\n"),
    ),
}

TABLES = (RUNS, LOWERINGS, INSPECTIONS, DOCTOR, LIBRARY, GIVEN, REPORT)
ADVICE = {case: row for table in TABLES for case, row in table.items()}


def shell(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    env = environment("stub", MGPU_RT_HIP=str(softgpu.hip({})))
    env["PATH"] = f"{COMMAND.parent}:{env['PATH']}"
    return subprocess.run(
        ["bash", "-c", line], cwd=folder, env=env, capture_output=True, text=True, timeout=HANG
    )


@pytest.mark.check
def test_no_case_hides_another() -> None:
    assert len(ADVICE) == sum(map(len, TABLES))


@pytest.mark.parametrize("case", sampled(ADVICE, list(ADVICE)[::3]))
def test_advice_works_when_it_is_followed(case: str, tmp_path: Path) -> None:
    first, advice, second, (status, printed) = ADVICE[case]
    for name, text in PROGRAMS.items():
        (tmp_path / name).write_text(text)
    before = shell(first, tmp_path)
    said = re.search(advice, before.stdout + before.stderr, re.MULTILINE)
    assert said, before.stdout + before.stderr
    after = shell(second.format(*said.groups()), tmp_path)
    assert after.returncode in (status, 128 - status), after.stderr
    assert printed in after.stdout + after.stderr
