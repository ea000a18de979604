"""Advice of the library on stderr, while a program runs."""

from __future__ import annotations

import sys

from tests.python.cli.advice.programs import EXAMPLES, PLAIN, PRINTS, PROGRAM, RUN, STEPS
from tests.support.child import CUSTUB, ROOT, STUB
from tests.support.compiled import HOSTS

VARIABLES = "^(LD_|MGPU_RT_|HSA_|DEBUG_)"
EMULATED = f"export $(mgpu-rt run --device softgpu -- env | grep -E '{VARIABLES}')"
HEADERS = f"-I{ROOT / 'csrc' / 'include'} -I{HOSTS}"
ADVISED = f"cc -w advice.c {HEADERS} $(mgpu-rt config --libs) -o advised"
HOST_SYMBOL = (
    f"cc {EXAMPLES / 'c/host_symbol.c'} {{}} $(mgpu-rt config --libs) $MGPU_RT_HIP -o symbol"
)
KERNEL_O = (
    "clang++-22 -x hip --offload-arch=gfx90a -nogpuinc -nogpulib -mcode-object-version=4 -O2 "
    f"-fPIC -c {EXAMPLES / 'c/kernel.hip'} -o kernel.o"
)
#: Lowers with a form of the device code for which `mgpu-rt lower` has no option.
LOWERS = (
    "import sys; from mgpu_rt._lowering import pipelines as p; from mgpu_rt._cli.main import main; "
    "p.DEVICE_PASSES = p.DEVICE_PASSES.replace('format=bin', sys.argv[1]); "
    "p._DEFINED = p.NO_QUEUES; "
    "main(['lower', '--emit', 'executable', sys.argv[2], '-o', 'program'])"
)
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
        f"{EMULATED}; {{0}} MGPU_RT_HIP; ./steps",
        (0, "3\n"),
    ),
    "another GPU's image": (
        f"{STEPS} --chip gfx906; {RUN} ./steps",
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
    "a block of gpu.launch that is too large": (
        f"{RUN} blocks.mlir",
        r"\(a gpu.launch: by (constant)s\)",
        "sed 's/func.call @size() : () -> index/arith.{0} 512 : index/' blocks.mlir > const.mlir "
        f"&& {RUN} const.mlir",
        (7, ""),
    ),
    "a block that no GPU takes": (
        "sed 's/func.call @size() : () ->/arith.constant 2048 :/' blocks.mlir > huge.mlir && "
        f"{RUN} huge.mlir",
        r"'main_kernel' was compiled for: no GPU takes more than (1024), so launch smaller blocks",
        f"sed 's/constant 2048/constant {{0}}/' huge.mlir > most.mlir && {RUN} most.mlir",
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
    "an object file in place of an image": (
        f"mgpu-rt lower {EXAMPLES / 'c/scale.mlir'} -o scale.o && cc {EXAMPLES / 'c/launch.c'} "
        f"$(mgpu-rt config --libs) -o launch && {RUN} ./launch scale.o",
        r"It is an ELF file for a processor, .*: `(mgpu-rt lower --emit image)` writes an image",
        f"{{0}} {EXAMPLES / 'c/scale.mlir'} -o image && {RUN} ./launch image",
        (0, "scaled: 1.5 3 4.5 6"),
    ),
    "assembly for a GPU of AMD": (
        f'{sys.executable} -c "{LOWERS}" format=isa {PRINTS} && {RUN} ./program',
        r"Lower with gpu-module-to-binary\{(format=bin)\}",
        f'{sys.executable} -c "{LOWERS}" {{0}} {PRINTS} && {RUN} ./program',
        (0, "3\n"),
    ),
    "no Python for a hook": (
        f"MGPU_RT_MANAGER=/nowhere {RUN} --hook time {PRINTS}",
        r"set (MGPU_RT_MANAGER) to one with a libpython",
        f"{{0}}={sys.executable} {RUN} --hook time {PRINTS}",
        (0, "increment: 3 launches"),
    ),
    "a folder as stdin of Python": (
        f"{STEPS}; {EMULATED}; {PLAIN} ./steps < /",
        r"standard input is a directory, .*: redirect it",
        f"{EMULATED}; {PLAIN} ./steps < /dev/null",
        (0, "3\n"),
    ),
    "no rank": (
        f"MGPU_RT_DEVICE=local-rank {RUN} {PRINTS}",
        r"no launcher has set a rank, .* looked for: (LOCAL_RANK)",
        f"{{0}}=0 MGPU_RT_DEVICE=local-rank MGPU_RT_VERBOSE=1 {RUN} {PRINTS}",
        (0, "3\n"),
    ),
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
        r"link with this library, so that HIP ends after the program's own destructors",
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
        r"was passed as an event; give an event, or in MLIR a token",
        f"{RUN} --fail-on-error --stats ./advised event created",
        (0, "mgpuEventRecord"),
    ),
    "times of events": (
        f"{ADVISED} -ldl; {RUN} ./advised elapsed",
        r"or call it with (null) pointers first",
        f"{RUN} --fail-on-error ./advised elapsed {{0}}",
        (0, "the time is known"),
    ),
    "a kernel by its host symbol": (
        f"echo 'char scale[1];' > scale.c && {HOST_SYMBOL.format('scale.c')}; {RUN} ./symbol",
        r"link the object that registers the kernel \(__hipRegisterFunction\)",
        f"{KERNEL_O} && {HOST_SYMBOL.format('kernel.o')} && {RUN} ./symbol",
        (0, "scaled: 1.5 3 4.5 6"),
    ),
    "a capture": (
        f"{RUN} {sys.executable} captures.py",
        r"Build the graph by (mgpu_rt_graph_begin) instead",
        f"{RUN} {sys.executable} captures.py {{0}}",
        (0, "[3. 3. 3. 3.]"),
    ),
}
