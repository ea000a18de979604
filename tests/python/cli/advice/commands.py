"""Advice of `mgpu-rt run`, inspect, doctor and compare, and of commands on the program that they
are given."""

from __future__ import annotations

import sys

from tests.python.cli.advice.programs import EXAMPLES, PLAIN, PRINTS, RUN, STEPS
from tests.support.child import STUB

RUNS = {
    "no main": (
        f"{RUN} {EXAMPLES / 'reduction.mlir'}",
        r"the program has no function main: name one of (\w+) with (--entry)",
        f"{RUN} {{1}} {{0}} {EXAMPLES / 'reduction.mlir'}",
        (0, "32640"),
    ),
    "main in an inner module": (
        f"{RUN} inner.mlir",
        r"no function main: one is in an inner (module), .*: move it out of it$",
        f"sed '/{{0}} @/d; $d' inner.mlir > outer.mlir && {RUN} outer.mlir",
        (0, "12\n"),
    ),
    "a static program": (
        f"printf 'int main(void) {{{{ return 7; }}}}' > s.c; cc -static s.c -o s; {RUN} ./s",
        r"it is statically linked: link it dynamically, with (.*)$",
        f"cc s.c {{0}} -o s && {RUN} --stats-json s.json ./s",
        (7, "called none of the library's functions"),
    ),
    "a program in this folder": (
        f"{STEPS}; {RUN} steps",
        r"'steps' was not found in PATH: for the file here, write (\S+)$",
        f"{RUN} {{0}}",
        (0, "3\n"),
    ),
    "a fault": (
        f"{RUN} --stats-json s.json far.mlir",
        r"mgpu-rt (run --trace )FILE records what lies there",
        "mgpu-rt {0} t.json --device softgpu far.mlir",
        (-6, "past the end of a block of 1,024 bytes"),
    ),
    "a fault in registered memory": (
        f"{RUN} --stats-json s.json registered.mlir",
        r"mgpu-rt (run --trace )FILE records what lies there",
        "mgpu-rt {0} t.json --device softgpu registered.mlir",
        (-6, "0 bytes into registered memory of 16 bytes"),
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
        "mgpu-rt compare --device softgpu --llvm 22 far.mlir",
        r"see why with (MGPU_RT_CACHE=off mgpu-rt run .* --llvm 22 -- far\.mlir), or",
        "{0}",
        (-6, "Memory access fault by GPU"),
    ),
    "a run that dies with stock": (
        "mgpu-rt compare --device softgpu carried.mlir",
        r"SIGSEGV.*, or with (mgpu-rt check --device softgpu -- carried\.mlir)$",
        "{0}",
        (1, "[stream-as-event]"),
    ),
    "a token that a loop passes on": (
        "mgpu-rt check carried.mlir",
        r"scf\.for \(line 8\) passes a token on(?s:.*)passed its token on: use the token from "
        "before, inside and after",
        "sed '/scf.yield/d; s/%last = //; s/iter_args.*{{/{{/; s/%t\\]/%given]/; s/%last/%given/' "
        "carried.mlir > outer.mlir && mgpu-rt check --llvm 19 outer.mlir && "
        "mgpu-rt check outer.mlir",
        (0, "found no fault"),
    ),
    "a token that a loop passes on, awaited inside": (
        "mgpu-rt check carried.mlir",
        r"passes a token on.*, or wait before, and begin and end a chain of tokens inside \(docs",
        "sed 's/%last = \\(.*\\) iter_args.*{{/gpu.wait [%given]\\n\\1 {{ %t = gpu.wait async/; "
        "s/scf.yield .*/gpu.wait [%filled]/; /%last/d' carried.mlir > inside.mlir && "
        "mgpu-rt check --llvm 19 inside.mlir && mgpu-rt check inside.mlir",
        (0, "found no fault"),
    ),
    "a token from before a loop, awaited inside": (
        "mgpu-rt run --device softgpu --stats joins-before.mlir",
        r"gpu\.wait async \(line 9\) in a loop takes %given from .*: wait for it by a (gpu.wait) "
        "before the loop, and begin and end a chain of tokens inside",
        "sed '/^  gpu.wait .%given/d; s/  scf.for/  {0} [%given]\\n&/; s/async .%given.$/async/' "
        "joins-before.mlir > before.mlir && mgpu-rt check --llvm 19 before.mlir && "
        "mgpu-rt check before.mlir",
        (0, "found no fault"),
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
    "streams that are not reused, in a table": (
        f"{RUN} --stats open.mlir",
        r"^mgpu-rt: streams are not reused: 20 of 20 .* destroyed 0; `(mgpu-rt check)` names",
        "{0} open.mlir",
        (0, "created by step (open.mlir:18)"),
    ),
    "streams that are not reused, in a comparison": (
        "mgpu-rt compare --device softgpu leaking.mlir",
        r"^note +after: streams are not reused: 20 of 40 (?s:.*?)`(mgpu-rt)\s+(check)`\s+names",
        "{0} {1} leaking.mlir |& grep 'a gpu.wait without async destroys the streams' && "
        "sed '/%freed =/a gpu.wait [%freed]' leaking.mlir > mended.mlir && "
        "{0} {1} mended.mlir && mgpu-rt compare --device softgpu mended.mlir | tr -s ' '",
        (0, "streams – – – – 39 1 0 97.5 %"),
    ),
    "nothing to compare": (
        "mgpu-rt compare",
        r"name two statistics files, a .mlir file, or a program after (--)",
        f"{STEPS}; mgpu-rt compare --device softgpu {{0}} ./steps",
        (0, "hipStreamCreate "),
    ),
    "one program in diff": (
        f"mgpu-rt diff {PRINTS}",
        r"or (--device) A,B -- PROGRAM",
        f"mgpu-rt diff {{0}} softgpu,softgpu {PRINTS}",
        (0, "3 launches compared: equal"),
    ),
    "no recording": (
        "mgpu-rt replay recording",
        r"name a folder that `(mgpu-rt run --record)` has written",
        f"{{0}} recording --device softgpu {PRINTS}; mgpu-rt replay --device softgpu recording",
        (0, "increment: same"),
    ),
    "a runtime in check": (
        f"{PLAIN} mgpu-rt check {EXAMPLES / 'race.mlir'}",
        r"unset (MGPU_RT_RUNTIME)$",
        f"env -u {{0}} mgpu-rt check {EXAMPLES / 'race.mlir'}",
        (1, "[race]"),
    ),
    "another HIP in check": (
        f"MGPU_RT_HIP={STUB} mgpu-rt check {PRINTS}",
        r"set MGPU_RT_HIP to the path of HIP 5, or (unset) it",
        f"{{0}} MGPU_RT_HIP; mgpu-rt check {PRINTS}",
        (0, "found no fault"),
    ),
    "another image in replay": (
        f"{RUN} --record kept {PRINTS}; mgpu-rt replay kept --image i",
        r"name a file that holds an image with the kernel",
        f"mgpu-rt lower {PRINTS} -o i && mgpu-rt replay --device softgpu kept --image i",
        (0, "increment: same"),
    ),
    "no GPU to compile for": (
        f"HIP_VISIBLE_DEVICES=-1 mgpu-rt run --device hip {PRINTS}",
        r"name the GPU with --chip: .*; `(mgpu-rt doctor --device hip)` says more",
        "HIP_VISIBLE_DEVICES=-1 {0}",
        (1, "✗  devices"),
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
    "HIP that was not asked": (
        f"{OBJECT}; env -u MGPU_RT_HIP mgpu-rt inspect steps.o",
        r"(--device softgpu) asks HIP with an emulated device",
        "mgpu-rt inspect {0} steps.o",
        (0, "gfx90a (emulated): fits"),
    ),
}

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
    "no Python": (
        "MGPU_RT_MANAGER=/nowhere mgpu-rt doctor --device softgpu",
        r"set (MGPU_RT_MANAGER) to an interpreter that has cffi, or to (off)",
        "{0}={1} mgpu-rt doctor --device softgpu",
        (0, "off: the library manages its caches by itself"),
    ),
}

#: Registers the host's memory, and gives the kernel the address that the advice names.
SEEN = (
    "sed 's/.*gpu.launch blocks/  %seen = call @{0}(%ranked) : (memref<?xf32>) -> "
    "memref<?xf32>\\n&/; s/, %memory/, %seen/; s/] : memref<4/] : memref<?/' registered.mlir "
    "> seen.mlir && mgpu-rt check seen.mlir"
)
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
    "memory of the host": (
        "mgpu-rt check on-host.mlir",
        r"not registered: copy it to memory of (gpu.alloc)",
        "sed 's/memref.alloc()/{0} ()/' on-host.mlir > on-gpu.mlir && mgpu-rt check on-gpu.mlir",
        (0, "found no fault"),
    ),
    "the host's address of registered memory": (
        "mgpu-rt check registered.mlir",
        r"give the kernel the device's address, which (mgpuMemGetDeviceMemRef1dFloat) returns",
        SEEN,
        (0, "found no fault"),
    ),
    "the host's address of registered memory in a trace": (
        f"{RUN} --trace t.json registered.mlir",
        r"another one, which (mgpuMemGetDeviceMemRef1dFloat) returns \(Int32 for i32\)",
        SEEN,
        (0, "found no fault"),
    ),
    "the device's address of memory that is not yet registered": (
        "mgpu-rt check on-host.mlir",
        r"or register it .* device's address, which (mgpuMemGetDeviceMemRef1dFloat) returns",
        SEEN,
        (0, "found no fault"),
    ),
    "two streams without an order": (
        "mgpu-rt check unjoined.mlir",
        r"the launch may take the token of a (gpu.wait async) on the tokens of both instead",
        "sed 's/%b3 =/%both = {0} [%b2, %a3]\\n&/; s/func async \\[%b2/func async [%both/' "
        "unjoined.mlir > joint.mlir && mgpu-rt check joint.mlir",
        (12, "mgpu-rt: 1 warning"),
    ),
    "two streams without an order, and a wait of the host": (
        "mgpu-rt check unjoined.mlir",
        r"end stream 1's chain of tokens by a (gpu.wait) between them",
        "sed 's/%b3 =/{0} [%a3]\\n&/; s/async .%a3. %a/async [%b5] %a/; s/%b5, %a4/%a4/' "
        "unjoined.mlir > ended.mlir && mgpu-rt check ended.mlir",
        (12, "found no fault"),
    ),
    "a kernel of linalg behind a copy": (
        "mgpu-rt check copied-for-linalg.mlir",
        r"\[stream-race\](?s:.*)end stream 1's chain of tokens by a (gpu.wait) between them",
        "sed 's/  linalg.fill/  {0} [%a2]\\n&/; s/async .%a2. %gpu/async [%b1] %gpu/; "
        "s/%b1, %a3/%a3/' copied-for-linalg.mlir > ended.mlir && mgpu-rt check ended.mlir",
        (7, "found no fault"),
    ),
    "memory from before a loop": (
        "mgpu-rt check allocated-before.mlir",
        r"\[early-use\](?s:.*)\n  end stream 1's chain of tokens by a (gpu.wait) between them.*, "
        "in a loop only if the chain begins in it",
        "sed '/^  gpu.wait .%given/d; s/  scf.for/  {0} [%given]\\n&/' allocated-before.mlir "
        "> before.mlir && mgpu-rt check before.mlir",
        (0, "found no fault"),
    ),
    "a chain of tokens that goes on after a wait": (
        "mgpu-rt check waited.mlir",
        r"begin the next chain of tokens by a (gpu.wait async) without tokens",
        "sed 's/gpu.wait .%a3.$/&\\n    %next = {0}/; s/%a4 = gpu.dealloc async .%a3/"
        "%a4 = gpu.dealloc async [%next/' waited.mlir > next.mlir && mgpu-rt check next.mlir",
        (12, "found no fault"),
    ),
    "one store of two waves": (
        "mgpu-rt check same.mlir",
        r"at this instruction: make its access (atomic), or let one thread make it",
        "sed 's/memref.store \\(.*\\) : \\(.*\\)/%old = memref.{0}_rmw maxs \\1 : "
        "(i32, \\2) -> i32/' same.mlir > max.mlir && mgpu-rt check max.mlir",
        (7, "found no fault"),
    ),
    "a race in a branch": (
        "mgpu-rt check race-in-branch.mlir",
        r"a (gpu.barrier) between the accesses would, outside of any branch, so that all threads",
        "sed 's/%earlier =/{0}\\n&/' race-in-branch.mlir > ordered.mlir && "
        "mgpu-rt check ordered.mlir",
        (0, "found no fault"),
    ),
    "memory that is freed twice": (
        "mgpu-rt check freed-twice.mlir",
        r"\[double-free\](?s:.*)\n  free memory once, after its last use",
        "sed '/%b3 =/d' freed-twice.mlir > once.mlir && mgpu-rt check once.mlir",
        (7, "found no fault"),
    ),
    "memory that a loop frees in each round": (
        "mgpu-rt check freed-in-loop.mlir",
        r"free memory once, .*: memory from before a loop behind the loop,",
        "sed '/scf.for/d; /^  }}$/d' freed-in-loop.mlir > behind.mlir && mgpu-rt check behind.mlir",
        (7, "found no fault"),
    ),
    "an object that Python holds to its end": (
        f"mgpu-rt check {sys.executable} holds.py",
        r"lives until Python ends: this is harmless, and a (del) before the end releases it",
        f"echo {{0}} stream >> holds.py; mgpu-rt check {sys.executable} holds.py",
        (0, "found no fault"),
    ),
    "a stream that another has joined": (
        "mgpu-rt check joined.mlir",
        r"list one token of this stream, even if a gpu.wait async joined it",
        "sed 's/gpu.wait .%b5, %a4/&, %b2/' joined.mlir > listed.mlir && mgpu-rt check listed.mlir",
        (12, "found no fault"),
    ),
    "two tokens of one stream": (
        "mgpu-rt check pair.mlir",
        r"this gpu.wait lists more than one token of (stream 2), .*: keep one of them(?s:.*)\n"
        "mgpu-rt: 2 faults",
        "sed 's/%b1, %b2/%b1/' pair.mlir > one.mlir && mgpu-rt check one.mlir",
        (7, "found no fault"),
    ),
    "two tokens of one stream, in a loop": (
        "mgpu-rt check pairs.mlir",
        r"this gpu.wait lists more than one token of (stream 2), .*: keep one of them(?s:.*)\n"
        "mgpu-rt: 2 faults",
        "sed 's/%b1, %b2/%b2/' pairs.mlir > one.mlir && mgpu-rt check one.mlir",
        (7, "found no fault"),
    ),
    "two tokens of one stream, whose handle another had before": (
        "mgpu-rt check pair-later.mlir",
        r"this gpu.wait lists two tokens with this handle, .*: if both are of stream 2, keep one "
        "of them; if one is of stream 1, begin",
        "sed 's/%a1, %a2/%a2/' pair-later.mlir > one.mlir && mgpu-rt check one.mlir",
        (7, "found no fault"),
    ),
    "a chain that begins before its loop": (
        "mgpu-rt check begun-before.mlir",
        r"\A(?!(?s:.*)more than one)(?s:.*)begin the next chain of tokens by a (gpu.wait async) "
        "without tokens, and list only one token",
        "sed '/%a0 = {0}$/d; s/%gpu, %a1/%a0 = {0}\\n&/' begun-before.mlir > inside.mlir && "
        "mgpu-rt check inside.mlir",
        (7, "found no fault"),
    ),
    "an event from before a loop, whose handle others had later": (
        "mgpu-rt check joins-before-and-inside.mlir",
        r"or event 1, the first one, (?s:.*)wait for the token by a (gpu.wait) before the loop",
        "sed '/^  gpu.wait .%given/d; s/  scf.for/  {0} [%given]\\n&/; s/async .%given.$/async/' "
        "joins-before-and-inside.mlir > before.mlir && mgpu-rt check before.mlir",
        (0, "found no fault"),
    ),
    "an event from before a loop": (
        "mgpu-rt check joins-before.mlir",
        r": wait for the token by a (gpu.wait) before the loop, and begin and end a chain",
        "sed '/^  gpu.wait .%given/d; s/  scf.for/  {0} [%given]\\n&/; s/async .%given.$/async/' "
        "joins-before.mlir > before.mlir && mgpu-rt check before.mlir",
        (0, "found no fault"),
    ),
    "a copy and two streams without a wait": (
        "mgpu-rt check forked.mlir",
        r"a (gpu.wait) on its token(?s:.*): list one token of this stream.*; a second one would "
        "destroy it twice$",
        "sed 's/  %x =/{0} [%b1, %a1]\\n&/' forked.mlir > awaited.mlir && "
        "mgpu-rt check awaited.mlir",
        (7, "found no fault"),
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
        (0, "functions 2 1 0 66.7 %"),
    ),
    "a module that is loaded each time": (
        f"{RUN} --llvm 19 --stats-json s.json globals.mlir; {PAGE} s.json",
        r"<code>(mgpu-rt inspect )PROGRAM</code> \(after .* names the globals",
        "mgpu-rt lower --llvm 19 globals.mlir -o globals.o && {0}globals.o",
        (0, "launches (4 bytes)"),
    ),
    "a module with a constant that the host can set": (
        f"{RUN} --llvm 19 --stats-json s.json constant.mlir; {PAGE} s.json; "
        "mgpu-rt lower --llvm 19 constant.mlir -o constant.o && mgpu-rt inspect constant.o",
        r"make them private constants .*\n(?s:.*)constant +(launches): the host can set it",
        "sed 's/constant @{0}/\"private\" &/' constant.mlir > own.mlir && "
        f"{RUN} --llvm 19 --stats-json s.json own.mlir; {SHOW}",
        (0, "modules 19 1 0 95.0 %"),
    ),
    "streams of chains that join": (
        f"{RUN} --stats-json s.json forkjoin.mlir; {PAGE} s.json",
        r"List a token of each chain there, even if a <code>gpu.wait async</code> joined the chain",
        "sed 's/gpu.wait .%freed/&, %x2, %y2/' forkjoin.mlir > all.mlir && "
        f"{RUN} --stats-json s.json all.mlir; {SHOW}",
        (0, "streams 57 3 0 95.0 %"),
    ),
    "streams that are never destroyed": (
        f"{RUN} --stats-json s.json open.mlir; {PAGE} s.json",
        r"End each chain of tokens by a <code>gpu.wait</code> without <code>async</code> .*: MLIR",
        f"{RUN} --stats-json s.json closed.mlir; {SHOW}",
        (0, "streams 19 1 0 95.0 %"),
    ),
    "memory that waits": (
        f"{BUSY} --stats-json s.json ./busy; {PAGE} s.json",
        r"end a round by a <code>gpu.wait</code> without <code>async</code> if its results",
        f"{BUSY} --stats-json s.json ./busy waits; {SHOW}",
        (0, "memory 19 1 0 95.0 %"),
    ),
    "registrations": (
        f"{PAGE} registers.json",
        r"run it with (mgpu-rt run --exclusive): memory then stays registered",
        "{0} --device softgpu --stats-json s.json vecadd.mlir; mgpu-rt stats s.json",
        (0, "registrations"),
    ),
    "questions": (
        f"{PAGE} asks.json",
        r"If nothing else in the process calls HIP, run it with mgpu-rt run (--exclusive)\.",
        f"{RUN} {{0}} --stats-json s.json {PRINTS}; mgpu-rt stats s.json | grep -c hipStreamQuery",
        (1, "0\n"),
    ),
}
