"""Advice of `mgpu-rt lower` and of the commands that lower."""

from __future__ import annotations

from tests.python.cli.advice.programs import PRINTS, RUN

EARLY = "mlir-opt-22 --convert-math-to-llvm"
LOWERINGS = {
    "a family of GPUs": (
        f"mgpu-rt lower --chip gfx9-generic {PRINTS} -o steps.o",
        r"give the name of a GPU, such as gfx906 or (gfx90a)",
        f"{RUN} --chip {{0}} {PRINTS}",
        (0, "3\n"),
    ),
    "tensors": (
        f"{RUN} tensors.mlir",
        r"run mlir-opt-22 (--one-shot-bufferize=\S+) before",
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
        r"line 7\) on the host's own memory: .* as of linalg.fill \(line 9\): write it as loops",
        f"{RUN} --stats one.mlir",
        (7, "mgpuLaunchKernel"),
    ),
    "linalg on registered memory": (
        f"{RUN} fills-host.mlir",
        r"line 10\): %host is memory .* use what mgpuMemGetDeviceMemRef1dFloat returns",
        f"{RUN} --stats fills-device.mlir",
        (7, "mgpuLaunchKernel"),
    ),
    "linalg in the generic form": (
        f"mlir-opt-22 -mlir-print-op-generic kernels.mlir > generic.mlir && {RUN} generic.mlir",
        r"generic form, .* run (mlir-opt-22) without -mlir-print-op-generic before",
        f"{{0}} generic.mlir -o short.mlir && {RUN} short.mlir",
        (7, ""),
    ),
    "a softmax": (
        f"{RUN} softmax.mlir",
        r"line 11\): MLIR has no loops for it .* linalg.reduce for the maximum and the sum,",
        f"{RUN} reductions.mlir",
        (0, "0.25"),
    ),
    "a reduction of a subgroup": (
        f"{RUN} reduces.mlir",
        r"write it with gpu.shuffle",
        f"{RUN} shuffles.mlir",
        (1, ""),
    ),
    "a rotation of a subgroup": (
        f"{RUN} rotates.mlir",
        r"no pass of MLIR lowers gpu.rotate for AMD's GPUs: write it with gpu.shuffle",
        f"{RUN} rotated.mlir",
        (3, ""),
    ),
    "the number of subgroups": (
        f"{RUN} subgroups.mlir",
        r"gpu.num_subgroups .*: divide .* or the block's size, by (gpu.subgroup_size)$",
        "sed 's/= gpu.num_subgroups : index/= arith.ceildivui %sx, %size : index/; "
        "s/%number =/%size = {0} : index\n&/' "
        f"subgroups.mlir > sizes.mlir && {RUN} sizes.mlir",
        (1, ""),
    ),
    "an atomic update of floats": (
        f"{RUN} generic-atomic.mlir",
        r"memref.generic_atomic_rmw of integers only: write (memref.atomic_rmw)",
        f"{RUN} atomic.mlir",
        (1, ""),
    ),
    "a table of the host in linalg": (
        f"{RUN} gathers-host.mlir",
        r"linalg.generic \(line 11\): %gpu is .*, and %host in the host's own: copy by gpu.memcpy$",
        f"{RUN} gathers.mlir",
        (7, ""),
    ),
    "a copy in a kernel": (
        f"{RUN} copied.mlir",
        r"a kernel has memref.copy of a memref with strides: write (linalg.copy)",
        "sed 's/memref.copy %here, %to : \\(.*\\) to \\(.*\\)/{0} ins(%here : \\1) "
        "outs(%to : \\2)/' "
        f"copied.mlir > linalg.mlir && {RUN} linalg.mlir",
        (1, ""),
    ),
    "a reduction that not all threads reach": (
        f"{RUN} all-reduces.mlir",
        r"all threads of the workgroup reach: write `(uniform)` behind its operand",
        f"sed 's/add %number/& {{0}}/' all-reduces.mlir > u.mlir && {RUN} u.mlir",
        (224, ""),
    ),
    "loops that are parallel": (
        f"{RUN} parallel.mlir",
        r"becomes plain loops: for a kernel, run mlir-opt-22 (--\S+ --\S+) before",
        f"mlir-opt-22 {{0}} parallel.mlir -o p.mlir && {RUN} --stats p.mlir",
        (7, "mgpuLaunchKernel"),
    ),
    "loops for all": (
        f"{RUN} forall.mlir",
        r"for a kernel, take away its (mapping), and run mlir-opt-22 (--\S+ --\S+ --\S+) before",
        "sed '/gpu.block/s/ {{{0}.*//' forall.mlir > f.mlir && "
        f"mlir-opt-22 {{1}} f.mlir -o p.mlir && {RUN} --stats p.mlir",
        (7, "mgpuLaunchKernel"),
    ),
    "a copy by the host": (
        f"{RUN} copies.mlir",
        r"memref.copy \(line 9\) is code of the host, .*: copy by (gpu.memcpy), or use a kernel$",
        "sed 's/memref.copy %host, %gpu : memref<4xi32> to/{0} %gpu, %host : memref<4xi32>,/' "
        f"copies.mlir > m.mlir && {RUN} --stats m.mlir",
        (7, "mgpuMemcpy"),
    ),
    "a launch with two tokens": (
        f"{RUN} tokens.mlir",
        r"join them by (gpu.wait async \[.*\]) before",
        "sed 's/%b3 =/%both = {0}\\n&/; s/func async \\[%b2, %a3/func async [%both/' tokens.mlir "
        f"> joint.mlir && {RUN} joint.mlir",
        (12, ""),
    ),
    "a result that is not printed": (
        "mgpu-rt lower --emit executable long.mlir -o long",
        r"does not print main's result \(i64\): `mgpu-rt (run )(long.mlir)` does",
        "mgpu-rt {0} --device softgpu {1}",
        (0, "12\n"),
    ),
    "a result that is not printed, of a program on stdin": (
        "mgpu-rt lower --emit executable - -o long < long.mlir",
        r"`mgpu-rt (run )FILE(.mlir)` does",
        "mgpu-rt {0} --device softgpu long{1}",
        (0, "12\n"),
    ),
    "an executable without main": (
        "mgpu-rt lower --emit executable named.mlir -o named",
        r"`mgpu-rt run (--entry) FUNCTION` runs a function without a main",
        f"{RUN} {{0}} named named.mlir",
        (0, "12\n"),
    ),
    "a kernel that allocates": (
        f"{RUN} allocates.mlir",
        r"use (memref.alloca),",
        f"sed 's/memref.alloc /{{0}} /' allocates.mlir > a.mlir && {RUN} a.mlir",
        (0, ""),
    ),
    "an array of a kernel": (
        f"{RUN} array.mlir",
        r"\A(?:.*\n){1,4}.* in no register: give its memref (#gpu.address_space<private>)$",
        f"sed 's/memref<512xi32/&, {{0}}/' array.mlir > private.mlir && {RUN} private.mlir",
        (1, ""),
    ),
    "floats of eight bits": (
        f"{RUN} small.mlir",
        r"\A(?:.*\n){1,6}.* runs no pass that converts f8E4M3FN: use (f16) or bf16",
        f"sed s/f8E4M3FN/{{0}}/ small.mlir > half.mlir && {RUN} half.mlir",
        (0, ""),
    ),
    "a task without tokens": (
        f"{RUN} --llvm 19 task.mlir",
        r"lower with (--llvm 22), or write async with tokens of gpu.wait at each gpu operation$",
        f"{RUN} --llvm 19 tokens-task.mlir && {RUN} {{0}} task.mlir",
        (0, "63\n"),
    ),
    "no folder for temporary files": (
        f"TMPDIR=/nowhere mgpu-rt lower {PRINTS} -o steps.o",
        r"set (TMPDIR) to a folder that can be written$",
        f"{{0}}=. mgpu-rt lower {PRINTS} -o steps.o && mgpu-rt inspect steps.o",
        (0, "kernel increment"),
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
        f"{RUN} calls.mlir",
        r"`(mgpu-rt lower --emit executable --link) FILE` links what defines five$",
        "printf 'int five(void) {{ return 5; }}' > five.c && cc -c five.c && "
        f"{{0}} five.o calls.mlir -o calls && {RUN} ./calls",
        (5, ""),
    ),
    "a function of which LLVM has only a C wrapper": (
        f"{RUN} bf16.mlir",
        r"LLVM defines only a C wrapper: declare the function with (attributes \{\S+\});",
        f"sed 's/private.*/& {{0}}/' bf16.mlir > wrapper.mlir && {RUN} wrapper.mlir",
        (0, "[2]"),
    ),
    "a C wrapper of the runtime's function": (
        f"{RUN} wrapped.mlir",
        r"_mlir_ciface_\.\.\. is a C wrapper, .*: declare the function without (\S+)$",
        f"sed 's/attributes .{{0}}.//' wrapped.mlir > plain.mlir && {RUN} plain.mlir",
        (7, ""),
    ),
    "a tool that fails": (
        "mgpu-rt check wrong.mlir",
        r"mlir-opt failed \(`(mgpu-rt lower --dry-run .* --chip gfx90a -g .*)` prints",
        "{0} | bash -e > wrong.o",
        (0, "error: invalid type identifier"),
    ),
    "the commands of a lowering with options": (
        "mgpu-rt lower --passes none -g host.mlir -o h.o",
        r"mlir-translate failed \((--dry-run) prints the commands\)",
        "mgpu-rt lower --passes none -g host.mlir -o h.o {0} | bash -e",
        (0, "Dialect `linalg' not found"),
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
    "targets of a module": (
        f"sed 's/gpu.module @[a-z]*/& [#rocdl.target]/' {PRINTS} > t.mlir; {RUN} t.mlir",
        r"the gpu.module has (targets), .* take the targets out",
        f"sed 's/ .#rocdl.target.//' t.mlir > u.mlir && {RUN} u.mlir",
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
        "mgpu-rt lower --graph {0} interface.mlir -o graph.o && nm graph.o",
        (0, "step"),
    ),
    "hoist without compiled kernels": (
        f"mgpu-rt lower --emit mlir {PRINTS} -o a.mlir; mgpu-rt hoist {PRINTS} -o hoisted.mlir",
        r"lower all dialects by (mgpu-rt lower --emit mlir)$",
        f"{{0}} {PRINTS} -o all.mlir && mgpu-rt hoist all.mlir -o hoisted.mlir",
        (0, "step: moved a stream"),
    ),
}
