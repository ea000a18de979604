"""The passes that an ordinary program needs before the pipeline, and the programs that are refused
because MLIR would lower them wrongly."""

from __future__ import annotations

import pytest

from mgpu_rt._lowering import pipelines
from mgpu_rt._lowering.preparation import (
    HOST_LOOPS,
    KERNEL_LOOPS,
    KERNELS,
    NARROW_MATH,
    REGIONS,
    SINES,
    advice,
    preparation,
)

FILL = "linalg.fill ins(%z : f32) outs({} : memref<4xf32>)\n"
LAUNCH = "gpu.launch blocks(%x, %y, %z) in (%g = %n) threads(%u, %v, %w) in (%b = %n) {\n%s}\n"
KERNEL = "gpu.module @k {\n  gpu.func @f(%x: memref<4xf32>) kernel {\n    %s  }\n}\n"


@pytest.mark.parametrize(
    ("text", "passes"),
    [
        ("%d, %t = gpu.alloc async [%s] () : memref<4xf32>", ""),
        ("%d = gpu.alloc host_shared () : memref<4xf32>", ""),
        ("%d = gpu.alloc () : memref<4xf32>", REGIONS),
        ("%d = gpu.alloc(%n) : memref<?xf32>", REGIONS),
        ("gpu.dealloc %d : memref<4xf32>", REGIONS),
        ("gpu.memcpy %a, %b : memref<4xf32>, memref<4xf32>", REGIONS),
        ("gpu.memset %a, %b : memref<4xf32>, f32", REGIONS),
        ("// gpu.alloc () would need tokens, and linalg.fill kernels", ""),
        ("gpu.launch_func @k::@f blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)", ""),
        (FILL.format("%argument"), KERNELS),
        (KERNEL.replace("%s", FILL.format("%x")), KERNEL_LOOPS),
        (KERNEL.replace("%s", FILL.format("%x")) + FILL.format("%y"), f"{KERNEL_LOOPS},{KERNELS}"),
        (LAUNCH.replace("%s", FILL.format("%x")), KERNEL_LOOPS),
        (
            LAUNCH.replace("%s", FILL.format("%x")) + FILL.format("%y"),
            f"{KERNEL_LOOPS},{KERNELS}",
        ),
        (  # a kernel's function
            LAUNCH.replace("%s", "func.call @f(%x) : (memref<4xf32>) -> ()\n")
            + "func.func @f(%a: memref<4xf32>) {\n"
            + FILL.format("%a")
            + "}\n",
            f"{KERNEL_LOOPS},{KERNELS}",
        ),
        (LAUNCH.replace("%s", "%r = math.exp %v : bf16\n"), NARROW_MATH),
        (KERNEL.replace("%s", "%r = math.log %v : vector<4xbf16>\n"), NARROW_MATH),
        (LAUNCH.replace("%s", "%r = math.sin %v : f16\n"), SINES),
        (LAUNCH.replace("%s", "%r = math.cos %v : f16\n%s = math.exp %r : f32\n"), ""),
        ("%r = math.exp %v : bf16\n%s = math.sin %v : f16", ""),
        (
            "linalg.elementwise kind=#linalg.elementwise_kind<log>\n"
            "  ins(%x : memref<4xbf16>) outs(%x : memref<4xbf16>)",
            f"{KERNELS},{NARROW_MATH}",
        ),
        (
            FILL.format("%x").replace("fill", "exp").replace("f32", "bf16"),
            f"{KERNELS},{NARROW_MATH}",
        ),
        ("%a = memref.alloc() : memref<4xf32>\n" + FILL.format("%a"), HOST_LOOPS),
        (
            "%a = memref.alloc() : memref<8xf32>\n"
            "%v = memref.subview %a[0] [4] [1] : memref<8xf32> to memref<4xf32>\n"
            + FILL.format("%v"),
            HOST_LOOPS,
        ),
        (
            "%a = memref.alloc() : memref<4xf32>\n"
            "gpu.host_register %u : memref<*xf32>\n" + FILL.format("%a"),
            KERNELS,
        ),
        (  # before the registration
            "%a = memref.alloc() : memref<4xf32>\n"
            + FILL.format("%a")
            + "gpu.host_register %u : memref<*xf32>\n",
            HOST_LOOPS,
        ),
        ("%d = gpu.alloc () : memref<4xf32>\n" + FILL.format("%d"), f"{KERNELS},{REGIONS}"),
        (  # names are a function's own
            "func.func @f() {\n%0 = memref.alloc() : memref<4xf32>\n}\n"
            "func.func @g(%0: memref<4xf32>) {\n" + FILL.format("%0") + "}",
            KERNELS,
        ),
        (  # a call passes the host's memory on
            "func.func @f() {\n%0 = memref.alloc() : memref<4xf32>\n"
            "%v = memref.cast %0 : memref<4xf32> to memref<?xf32>\n"
            "call @g(%1, %v) : (f32, memref<?xf32>) -> ()\n}\n"
            "func.func private @g(%z: f32, %a: memref<?xf32>) {\n" + FILL.format("%a") + "}",
            HOST_LOOPS,
        ),
        (  # a loop passes a number on, and another loop memory of the GPU
            "%h = memref.alloc() : memref<4xf32>\n%d = gpu.alloc () : memref<4xf32>\n"
            "%s = scf.for %i = %a to %b step %c iter_args(%t = %z) -> f32 {\n}\n"
            "%e = scf.for %i = %a to %b step %c iter_args(%f = %d) -> memref<4xf32> {\n}\n"
            "linalg.fill ins(%s : f32) outs(%h : memref<4xf32>)\n",
            f"{HOST_LOOPS},{REGIONS}",
        ),
        ("%token = async.execute {\n}", ""),
        ("func.func @linalg.fill() attributes {gpu.container_module}", ""),
        ('func.func @f() attributes {n = "a linalg.fill \\" async.await"} {\n}', ""),
        ('func.func @f() attributes {n = "//"} { gpu.dealloc %d : memref<4xf32> }', REGIONS),
        ("func.func @\"say '//'\"() { gpu.dealloc %d : memref<4xf32> }", REGIONS),
    ],
)
def test_passes_run_only_for_operations_that_need_them(text: str, passes: str) -> None:
    needed = preparation(text)
    assert needed.first == passes
    assert needed.coroutines == ("async.execute" in text)
    assert bool(needed.told) == bool(passes or needed.coroutines)
    assert needed.of(pipelines.pipeline(22)).first == passes


DEVICE = "%d, %t = gpu.alloc async [%s] () : memref<4xf32>\n"
STORE = "memref.store %f, %d[%i] : memref<4xf32>\n"
#: Prints a memref by LLVM's function.
PRINT = (
    "%u = memref.cast {} : memref<4xf32> to memref<*xf32>\n"
    "call @printMemrefF32(%u) : (memref<*xf32>) -> ()\n"
)
#: Gathers from the memref %m; the table of a kernel is the GPU's.
GATHER = (
    "linalg.generic {iterator_types = []} outs(%o : memref<4xf32>) {\n^bb0(%x: f32):\n"
    "%i = linalg.index 0 : index\n%y = memref.load %m[%i] : memref<4xf32>\n"
    "linalg.yield %y : f32\n}\n"
)
OF_GPU = GATHER.replace("%o", "%d").replace("%m", "%d")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (DEVICE + STORE, "memref.store (line 2) is code of the host, and %d is in the GPU's"),
        (DEVICE + "%x = vector.transfer_read %d[%i], %f", "vector.transfer_read (line 2)"),
        (DEVICE + "%x = memref.generic_atomic_rmw %d[%i] : memref<4xf32>", "generic_atomic_rmw (l"),
        (DEVICE + "affine.vector_store %v, %d[%i] : memref<4xf32>", "affine.vector_store (line 2)"),
        (DEVICE + "vector.maskedstore %d[%i], %m, %v : memref", "vector.maskedstore (line 2)"),
        (DEVICE + "vector.compressstore %d[%i], %m, %v", "vector.compressstore (line 2)"),
        (DEVICE + "%x = vector.gather %d[%i] [%v], %m, %p", "vector.gather (line 2)"),
        (DEVICE + "memref.copy %h, %d : memref<4xf32> to memref<4xf32>", "memref.copy (line 2)"),
        (
            DEVICE + "memref.dealloc %d : memref<4xf32>",
            "memref.dealloc (line 2) is code of the host, and %d is in the GPU's memory, which "
            "the host may not reach: free it by gpu.dealloc",
        ),
        (DEVICE + "gpu.dealloc %d : memref<4xf32>", ""),
        (DEVICE + LAUNCH.replace("%s", STORE), ""),
        (DEVICE + LAUNCH.replace("%s", "scf.if %c {\n}\n" + STORE) + STORE, "(line 7)"),
        (DEVICE.replace(" async", " host_shared async") + STORE, ""),
        (DEVICE + OF_GPU, ""),
        (DEVICE + FILL.format("%d") + OF_GPU + STORE, "memref.store (line 9)"),
        (DEVICE + "memref.store %f, %h[%i] : memref<4xf32>", ""),
        (DEVICE + PRINT.format("%d"), "@printMemrefF32 (line 3) is code of the host, and %u is in"),
        (DEVICE.replace(" async", " host_shared async") + PRINT.format("%d"), ""),
        (DEVICE + "%h = memref.alloc() : memref<4xf32>\n" + PRINT.format("%h"), ""),
        (DEVICE + PRINT.format("%d").replace("MemrefF32", "MemrefShapeF32"), ""),
        (
            "func.func @f() {\n" + DEVICE + "call @g(%d) : (memref<4xf32>) -> ()\n}\n"
            "func.func @g(%d: memref<4xf32>) {\n" + STORE + "}\n",
            "memref.store (line 6)",
        ),
        (  # a kernel's function
            "func.func @f() {\n"
            + DEVICE
            + LAUNCH.replace("%s", "func.call @g(%d) : (memref<4xf32>) -> ()\n")
            + "}\nfunc.func @g(%d: memref<4xf32>) {\n"
            + STORE
            + "}\n",
            "",
        ),
    ],
)
def test_accesses_of_the_host_to_the_gpus_memory_are_told(text: str, said: str) -> None:
    told = [each for each in preparation(text).told if "is code of the host" in each]
    assert said in told[0] if said else not told


def test_parallel_loops_of_the_host_are_told() -> None:
    loops = "scf.parallel (%i) = (%a) to (%b) step (%c) {\n}\n"
    in_kernel = LAUNCH.replace("%s", loops)
    assert preparation(in_kernel).told == ()
    assert preparation(in_kernel + loops).told[0].startswith("scf.parallel (line 5) becomes plain")


@pytest.mark.parametrize(
    "loop",
    [
        "scf.parallel (%i) = (%a) to (%b) step (%c) {\n" + LAUNCH.replace("%s", "") + "}",
        "scf.parallel (%i) = (%a) to (%b) step (%c) {\nfunc.call @f(%i) : (index) -> ()\n}",
        "scf.parallel (%i) = (%a) to (%b) step (%c) {\nscf.forall (%j) in (4) {\n}\n" + STORE + "}",
        "%s = scf.parallel (%i) = (%a) to (%b) step (%c) init (%z) -> f32 {\n"
        "scf.reduce(%f : f32) {\n^bb0(%x: f32, %y: f32):\nscf.reduce.return %x : f32\n}\n}",
        "scf.forall (%i) in (4) {\n}\nscf.forall (%i) in (4) {\n%t = gpu.wait async\n}",
    ],
)
def test_loops_that_become_no_kernels_get_no_advice_to_make_some(loop: str) -> None:
    """MLIR's passes fail for a launch in such a loop, and leave a loop that reduces as it is."""
    (told,) = preparation(loop).told
    assert "(line 1) " in told and told.endswith(" plain loops")


def test_a_sentence_counts_the_operations() -> None:
    alloc = "%a = gpu.alloc () : memref<4xf32>\n"
    workgroups = "with one thread a workgroup"
    (told, _) = preparation(alloc + FILL.format("%a")).told
    assert told == f"linalg.fill (line 2) becomes a kernel, {workgroups}"
    (told, _) = preparation(alloc + 10 * FILL.format("%a")).told
    assert told == f"linalg.fill (line 2) and 9 more become kernels, {workgroups}"
    (told,) = preparation(alloc.replace("gpu.alloc ", "memref.alloc") + 2 * FILL.format("%a")).told
    assert told.startswith("linalg.fill (line 2) on the host's own memory and 1 more become host")
    loop = "scf.forall (%i) in (4) {\n}\n"
    (told,) = preparation(2 * loop).told
    assert told.startswith("scf.forall (line 1) and 1 more become plain loops: for a kernel, ")


@pytest.mark.parametrize(
    ("others", "operands"),
    [
        ("gpu.launch async", "[%s]"),
        ("gpu.wait async", ""),  # the pass would wait for this stream, and destroy it, twice
        ("gpu.create_dn_tensor async", "[%s] %m, %n : index into memref<?xf32>"),
        ("gpu.alloc host_shared", "() : memref<4xf32>"),
    ],
)
def test_operations_stay_as_written_beside_others_that_get_tokens(
    others: str, operands: str
) -> None:
    """MLIR's pass would order those with tokens, and give a token to memory that is shared."""
    needed = preparation(f"{others} {operands}\ngpu.memcpy %a, %b : memref<4xf32>, memref<4xf32>")
    assert (needed.waits, needed.first) == (True, "")
    (told,) = needed.told
    assert told == (
        "gpu.memcpy without async (line 2) gets tokens and a wait of its own, "
        f"since {others} (line 1) stays as it is written"
    )


PLAIN_ALLOC, PLAIN_FILL = "gpu.alloc () : memref<4xi32>", "gpu.memset %a, %z : memref<4xi32>, i32"
PLAIN_LAUNCH = "gpu.launch_func @k::@f blocks in (%n, %n, %n) threads in (%n, %n, %n)"
TOKEN_FREE = "gpu.dealloc async [%t] %a : memref<4xi32>"


@pytest.mark.parametrize(
    ("operations", "said"),
    [
        ([PLAIN_ALLOC], "gpu.alloc without async (line 1) gets tokens"),
        ([PLAIN_LAUNCH], ""),
        (
            [PLAIN_ALLOC, PLAIN_FILL, PLAIN_LAUNCH],
            "gpu.alloc without async (line 1) and 2 more get tokens",
        ),
        (
            [
                TOKEN_FREE,
                PLAIN_ALLOC,
                PLAIN_FILL,
                PLAIN_LAUNCH,
                PLAIN_LAUNCH.replace("func", "func [%t]"),
            ],
            "gpu.alloc without async (line 2) and 2 more get tokens and waits of their own, since "
            "gpu.dealloc async (line 1) stays as it is written",
        ),
    ],
)
def test_all_operations_that_get_tokens_are_counted(operations: list[str], said: str) -> None:
    assert preparation("\n".join(operations)).told == ((said,) if said else ())


@pytest.mark.parametrize(
    ("operation", "said"),
    [
        ("%s = gpu.all_reduce add %n uniform {}", "is right only if the number of threads"),
        ("%v, %ok = gpu.shuffle  up %n, %one, %w", "says of each lane that its value is valid"),
        ("%v, %ok = gpu.shuffle idx %n, %one, %w", "counts the lanes of the whole wavefront"),
    ],
)
def test_wrong_code_for_reductions_is_told(operation: str, said: str) -> None:
    """With 96 threads MLIR's code for all_reduce adds some values twice, and others never."""
    (told,) = preparation(LAUNCH.replace("%s", f"{operation} : i32\n")).told
    assert "(line 2): for AMD's GPUs MLIR's code " in told and said in told


SUMS = """func.func @main(%n: index) {
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  gpu.launch blocks(%a, %b, %c) in (%g = %c1, %h = %c1, %i = %c1)
             threads(%d, %e, %f) in (%x = %c64, %y = %c1, %z = %c1) {
    %s = gpu.all_reduce add %d uniform {} : (index) -> index
    gpu.terminator
  }
  return
}
"""
OUTSIDE = """gpu.module @k {
  gpu.func @f(%d: index) kernel {
    %s = gpu.all_reduce add %d uniform {} : (index) -> index
    gpu.return
  }
}"""


@pytest.mark.parametrize(
    ("text", "is_told"),
    [
        (SUMS, False),
        (SUMS.replace("constant 64", "constant 96"), True),
        (SUMS.replace("%x = %c64", "%x = %n"), True),
        (SUMS.replace("%c64 = arith.constant 64 :", "%c64 = arith.addi %n, %n :"), True),
        (SUMS + SUMS.replace("@main", "@other").replace("constant 64", "constant 96"), True),
        (SUMS + OUTSIDE, True),
        (OUTSIDE, True),
    ],
)
def test_a_reduction_of_a_known_power_of_two_is_right(text: str, is_told: bool) -> None:
    assert any("power of two" in said for said in preparation(text).told) is is_told


@pytest.mark.parametrize(
    ("complaint", "is_advised"),
    [
        ("failed to legalize operation 'gpu.all_reduce' that was explicitly marked illegal", True),
        ("custom op 'gpu.all_reduce' invalid op kind", False),
        ("note: see current operation: %1 = ... <{global_name = @assert_msg}>", True),
        ("expected ','\n    cf.assert %q \"no\"\n", False),
    ],
)
def test_an_error_of_syntax_gets_no_advice(complaint: str, is_advised: bool) -> None:
    assert bool(advice(f"<stdin>:8:30: error: {complaint}")) == is_advised


TOKEN = "!gpu.async.token"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (f"%e = scf.for %i = %a to %b step %c iter_args(%t = %s) -> ({TOKEN}) {{", "scf.for"),
        (f"%e = scf.if %c -> {TOKEN} {{", "scf.if"),
        (f"func.func @f(%a: i32,\n  %t: {TOKEN}) {{", "func.func"),
        (f"func.func private @f() -> (i32, {TOKEN})", "func.func"),
        (f"%t = func.call @f() : () -> {TOKEN}", "func.call"),
        (f"cf.br ^end(%t : {TOKEN})", "cf.br"),
        ("%t = gpu.wait async\n%f = gpu.dealloc async [%t] %d : memref<4xf32>\ngpu.wait [%f]", ""),
        (f"call @f() : () -> ()\nasync.yield %t : {TOKEN}", ""),
        (f"func.func @f(%t: !async.value<{TOKEN}>) {{", ""),
    ],
)
def test_a_token_that_is_passed_on_is_told(text: str, name: str) -> None:
    told = [each for each in preparation(f"\n{text}").told if "passes a token on" in each]
    assert [each.partition(" passes")[0] for each in told] == [f"{name} (line 2)"] * bool(name)


LOOP = "%s, %t = gpu.alloc async [%a] () : memref<4xf32>\nscf.for %i = %l to %u step %n {"


@pytest.mark.parametrize(
    ("text", "who"),
    [
        (f"{LOOP}\n%v = gpu.wait async [%t]\n}}", "gpu.wait async (line 3) in a loop takes %t"),
        (f"{LOOP}\ngpu.wait [%t]\n}}", "gpu.wait (line 3) in a loop takes %t"),
        (
            f"{LOOP}\n%a, %v = gpu.alloc async [%t] () : i\ngpu.wait [%v, %t]\n}}",
            "gpu.wait (line 4)",
        ),
        (f"{LOOP}\ngpu.memset [%t] %d, %z : memref<4xf32>, f32\n}}", "gpu.memset (line 3)"),
        (f"{LOOP}\nscf.if %c {{\n}}\n%v = gpu.wait async [%t]\n}}", "gpu.wait async (line 5)"),
        (
            f"{LOOP}\n%w = gpu.wait async\n{LOOP}\n%v = gpu.wait async [%w]\n}}\n}}",
            "gpu.wait async",
        ),
        ("scf.while : () -> () {\n} do {\ngpu.wait [%t]\n}", "gpu.wait (line 3)"),
        ("affine.for %i = 0 to 4 {\ngpu.wait [%t#1]\n}", "gpu.wait (line 2) in a loop takes %t#1"),
        ("scf.for %i = %l to %u step %n {\n%t:2 = async.await %x\ngpu.wait [%t#1]\n}", ""),
        (f"{LOOP}\n%b = gpu.memset async [%t] %s, %z : i\ngpu.wait [%b]\n}}", ""),
        (f"{LOOP}\n%d, %v = gpu.alloc async () : i\n%w = gpu.wait async [%v]\n}}", ""),
        (f"{LOOP}\n%v = gpu.wait async\n}}\n%w = gpu.wait async [%t]\ngpu.wait [%w]", ""),
        ("%t = gpu.wait async\nscf.if %c {\ngpu.wait [%t]\n}", ""),
    ],
)
def test_a_wait_in_a_loop_for_a_token_from_before_is_told(text: str, who: str) -> None:
    told = [each for each in preparation(text).told if "from before the loop, and" in each]
    assert [each[: len(who)] for each in told] == [who] * bool(who)


def test_a_kernel_on_registered_memory_is_told() -> None:
    text = "%a = memref.alloc() : memref<4xf32>\ngpu.host_register %u : memref<*xf32>\n"
    told = preparation(text + FILL.format("%b") + FILL.format("%a")).told
    assert told[1].startswith("linalg.fill (line 4): %a is memory of the host that the program")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "%a = memref.alloc() : memref<4xf32>\n" + FILL.format("%a") + FILL.format("%b"),
            "linalg.fill (line 2) on the host's own memory: MLIR's passes would make a kernel of "
            "it, as of linalg.fill (line 3)",
        ),
        (
            "%a = memref.alloc() : memref<4xf32>\n" + FILL.format("%b") + FILL.format("%a"),
            "linalg.fill (line 3) on the host's own memory: MLIR's passes would make a kernel of "
            "it, as of linalg.fill (line 2)",
        ),
        (
            FILL.format("%b") + "scf.parallel (%i) = (%a) to (%b) step (%c) {}\n",
            "scf.parallel (line 2): MLIR's passes would make a kernel of it, as of linalg.fill "
            "(line 1)",
        ),
        ("%t = linalg.fill ins(%z : f32) outs(%e : tensor<4xf32>)", "--one-shot-bufferize"),
        (
            "gpu.memcpy %s, %h : memref<4xf32, strided<[4], offset: 1>>, memref<4xf32>",
            "line 1: gpu.memcpy of a memref with strides",
        ),
        (
            "%t = gpu.memcpy async [%u]\n  %s, %h\n  : memref<4xf32, strided<[4]>>, memref<4xf32>",
            "gpu.memcpy of a memref with strides",
        ),
        ("gpu.memset %s, %v : memref<4xf32, affine_map<(i) -> (i * 4)>>, f32", "gpu.memset of a"),
        (
            "gpu.memcpy %d, %s :\n memref<4xf32>,\n memref<4xf32, strided<[4]>>",
            "gpu.memcpy of a",
        ),
        (
            "%a = memref.get_global @w : memref<4xf32>\n%b = gpu.alloc () : memref<4xf32>\n"
            "linalg.add ins(%a, %a : memref<4xf32>, memref<4xf32>) outs(%b : memref<4xf32>)",
            "linalg.add (line 3): %b is in the GPU's memory, and %a in the host's own",
        ),
        (
            "%m = memref.alloc() : memref<4xf32>\n%o = gpu.alloc () : memref<4xf32>\n" + GATHER,
            "linalg.generic (line 3): %o is in the GPU's memory, and %m in the host's own",
        ),
        (
            "%o = memref.alloc() : memref<4xf32>\n%m = gpu.alloc () : memref<4xf32>\n" + GATHER,
            "linalg.generic (line 3): %m is in the GPU's memory, and %o in the host's own",
        ),
        (
            "%a = memref.alloc() : memref<4xf32>\n%b = gpu.alloc () : memref<4xf32>\n"
            "%x = arith.select %c, %a, %b : memref<4xf32>\n" + FILL.format("%x"),
            "%x may be in the GPU's memory or in the host's own",
        ),
        (
            "call_indirect %f(%a) : (memref<4xf32>) -> ()\n" + FILL.format("%b"),
            "call them by their names",
        ),
        (
            "\nlinalg.softmax dimension(1) ins(%a : memref<4x6xf32>) outs(%c : memref<4x6xf32>)",
            "linalg.softmax (line 2): MLIR has no loops for it",
        ),
        ('// "gpu.wait"(\n"linalg.fill"(%z) ({', "linalg.fill (line 2) is in MLIR's generic form"),
        ('"func.func"() <{sym_name = "main"}> ({', "func.func (line 1) is in MLIR's generic form"),
        (
            '%d = "gpu.alloc"() : () -> memref<4xf32>\n"gpu.memcpy"(%d, %s) : '
            "(memref<4xf32>, memref<4xf32, strided<[4]>>) -> ()",
            "gpu.alloc (line 1) is in MLIR's generic form",
        ),
        ("gpu.memset %d, %v : memref<4xi64>, i64", "line 1: gpu.memset of i64"),
        (
            "%t = gpu.wait async [%r, %s]\n%u = gpu.dealloc async [%t,\n %s] %d : memref<4xf32>",
            "line 2: gpu.dealloc with several tokens",
        ),
        (
            "#lay = strided<[4], offset: 1>\n!column = memref<4xf32, #lay>\n"
            "gpu.memcpy %d, %s : memref<4xf32>, !column",
            "line 3: gpu.memcpy of a",
        ),
    ],
)
def test_a_program_that_mlir_would_lower_wrongly_is_refused(text: str, said: str) -> None:
    with pytest.raises(ValueError) as refused:
        preparation(text)
    assert said in str(refused.value)
