"""Programs in which the commands find something to advise on, and words of command lines."""

from __future__ import annotations

import json
from pathlib import Path

from tests.python.cli.check.test_check import ON_THE_HOST
from tests.python.cli.check.test_streams import TWO_STREAMS
from tests.python.cli.test_fault import FAR
from tests.python.cli.test_report import counted
from tests.support.child import ROOT
from tests.support.sources import SOURCES

EXAMPLES = ROOT / "examples"
PRINTS = "steps.mlir"
STEPS = f"mgpu-rt lower --emit executable {PRINTS} -o steps"
RUN = "mgpu-rt run --device softgpu"
PLAIN = "MGPU_RT_RUNTIME=mgpu_rt.runtime:PlainRuntime"
PROGRAM = f"{STEPS}; env -u MGPU_RT_HIP"

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
#: A copy to the GPU's memory, for which nothing waits, and one back.
COPY_TO = """%a0 = gpu.wait async
  %gpu, %a1 = gpu.alloc async [%a0] () : memref<4xi32>
  %a2 = gpu.memcpy async [%a1] %gpu, %host : memref<4xi32>, memref<4xi32>"""
COPY_BACK = """%b0 = gpu.wait async
  %b1 = gpu.memcpy async [%b0] %host, %gpu : memref<4xi32>, memref<4xi32>
  %a3 = gpu.dealloc async [%a2] %gpu : memref<4xi32>
  gpu.wait [%b1, %a3]"""
BY_LINALG = "linalg.fill ins(%seven : i32) outs(%host : memref<4xi32>)"
LINALG = "linalg.fill ins(%seven : i32) outs(%gpu : memref<4xi32>)"
PARALLEL = """scf.parallel (%i) = (%c0) to (%c4) step (%c1) {
    memref.store %seven, %gpu[%i] : memref<4xi32>
  }"""
FORALL = """scf.forall (%i) in (4) {
    memref.store %seven, %gpu[%i] : memref<4xi32>
  } {mapping = [#gpu.block<x>]}"""
COPY = "memref.copy %host, %gpu : memref<4xi32> to memref<4xi32>"
#: Reads the elements of a table in linalg's body.
GATHER = """linalg.generic {indexing_maps = [affine_map<(i) -> (i)>],
      iterator_types = ["parallel"]} outs(%gpu : memref<4xi32>) {
  ^bb0(%old: i32):
    %i = linalg.index 0 : index
    %element = memref.load %TABLE[%i] : memref<4xi32>
    linalg.yield %element : i32
  }"""
GATHERS = f"%table = gpu.alloc () : memref<4xi32>\n  {ON_GPU}"
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
ROTATED = """%three = arith.constant 3 : i32
    %width = arith.constant 64 : i32
    %from = arith.addi %number, %three : i32
    %sum, %valid = gpu.shuffle idx %number, %from, %width : i32"""
SUBGROUPS = """%count = gpu.num_subgroups : index
    %sum = arith.index_cast %count : index to i32"""
GENERIC_ATOMIC = """%zero = arith.constant 0.0 : f32
    %one = arith.constant 1.0 : f32
    %cell = memref.alloca() : memref<1xf32>
    memref.store %zero, %cell[%c0] : memref<1xf32>
    UPDATE
    %float = memref.load %cell[%c0] : memref<1xf32>
    %sum = arith.fptosi %float : f32 to i32"""
BY_GENERIC = """%new = memref.generic_atomic_rmw %cell[%c0] : memref<1xf32> {
    ^bb0(%old: f32):
      %more = arith.addf %old, %one : f32
      memref.atomic_yield %more : f32
    }"""
BY_ATOMIC = "%old = memref.atomic_rmw addf %one, %cell[%c0] : (f32, memref<1xf32>) -> f32"
ALLOCATES = """%own = memref.alloc () : memref<1xi32>
    memref.store %number, %own[%c0] : memref<1xi32>
    %sum = memref.load %own[%c0] : memref<1xi32>"""
#: The copy's memrefs are private to the thread (5).
COPIED = """%here = memref.alloca() : memref<2x2xi32, 5>
    memref.store %number, %here[%c0, %c0] : memref<2x2xi32, 5>
    %there = memref.alloca() : memref<2x4xi32, 5>
    %to = memref.subview %there[0, 0] [2, 2] [1, 2]
        : memref<2x4xi32, 5> to memref<2x2xi32, strided<[4, 2]>, 5>
    memref.copy %here, %to : memref<2x2xi32, 5> to memref<2x2xi32, strided<[4, 2]>, 5>
    %last = memref.load %to[%c0, %c0] : memref<2x2xi32, strided<[4, 2]>, 5>
    %one = arith.constant 1 : i32
    %sum = arith.addi %last, %one : i32"""
ARRAY = """%one = arith.constant 1 : i32
    %size = arith.constant 512 : index
    %own = memref.alloca() : memref<512xi32>
    scf.for %i = %c0 to %size step %c1 {
      memref.store %one, %own[%i] : memref<512xi32>
    }
    %sum = memref.load %own[%tx] : memref<512xi32>"""
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

#: A loop carries the token that gpu.wait gets.
CARRIED = """func.func @main() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant 0 : i32
  %first = gpu.wait async
  %gpu, %given = gpu.alloc async [%first] () : memref<4xi32>
  %last = scf.for %i = %c0 to %c4 step %c1 iter_args(%t = %given) -> !gpu.async.token {
    %filled = gpu.memset async [%t] %gpu, %zero : memref<4xi32>, i32
    scf.yield %filled : !gpu.async.token
  }
  gpu.wait [%last]
  return
}"""
#: A gpu.wait async in a loop joins the token from before the loop.
JOINS_BEFORE = CARRIED
for old, new in (
    ("%last = scf", "scf"),
    ("iter_args(%t = %given) -> !gpu.async.token {", "{\n    %t = gpu.wait async [%given]"),
    ("scf.yield %filled : !gpu.async.token", "gpu.wait [%filled]"),
    ("%last", "%given"),
):
    JOINS_BEFORE = JOINS_BEFORE.replace(old, new)
#: Two more events in each round.
JOIN_TWICE = """%u = gpu.wait async [%filled]
    %v = gpu.wait async [%u]
    gpu.wait [%filled, %u, %v]"""
#: Fills memory on one stream, copies it on another, and waits for the tokens TOKENS.
FORKED = """func.func @main() -> i32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %seven = arith.constant 7 : i32
  %host = memref.alloc() : memref<4xi32>
  %a0 = gpu.wait async
  %gpu, %a1 = gpu.alloc async [%a0] () : memref<4xi32>
  %a2 = gpu.memset async [%a1] %gpu, %seven : memref<4xi32>, i32
  %b0 = gpu.wait async [%a2]
  %b1 = gpu.memcpy async [%b0] %host, %gpu : memref<4xi32>, memref<4xi32>
  %b2 = gpu.dealloc async [%b1] %gpu : memref<4xi32>
  gpu.wait [TOKENS]
  %x = memref.load %host[%c0] : memref<4xi32>
  return %x : i32
}"""
FREE = "  %b2 = gpu.dealloc async [%b1] %gpu : memref<4xi32>\n"
#: The store of examples/race.mlir to workgroup memory.
STORE = "memref.store %old, %tile[%i] : memref<128xi64, #gpu.address_space<workgroup>>"
BF16 = """func.func private @printMemrefBF16(memref<*xbf16>)
func.func @main() {
  %two = arith.constant 2.0 : bf16
  %host = memref.alloc() : memref<1xbf16>
  linalg.fill ins(%two : bf16) outs(%host : memref<1xbf16>)
  %any = memref.cast %host : memref<1xbf16> to memref<*xbf16>
  call @printMemrefBF16(%any) : (memref<*xbf16>) -> ()
  return
}"""
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
SIZED = """func.func @size() -> index {
  %size = arith.constant 512 : index
  return %size : index
}"""
#: Computes the softmax of two rows of four zeros, by NORMALIZE.
SOFTMAX = """#same = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
func.func @main() -> f32 {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %least = arith.constant 0xFF800000 : f32
  %host = memref.alloc() : memref<2x4xf32>
  %x = gpu.alloc () : memref<2x4xf32>
  %row = gpu.alloc () : memref<2xf32>
  linalg.fill ins(%zero : f32) outs(%x : memref<2x4xf32>)
  NORMALIZE
  gpu.memcpy %host, %x : memref<2x4xf32>, memref<2x4xf32>
  %r = memref.load %host[%c0, %c0] : memref<2x4xf32>
  return %r : f32
}"""
BY_SOFTMAX = "linalg.softmax dimension(1) ins(%x : memref<2x4xf32>) outs(%x : memref<2x4xf32>)"
BY_REDUCTIONS = """linalg.fill ins(%least : f32) outs(%row : memref<2xf32>)
  linalg.reduce { arith.maximumf } ins(%x : memref<2x4xf32>)
      outs(%row : memref<2xf32>) dimensions = [1]
  linalg.generic {indexing_maps = [#row, #same], iterator_types = ["parallel", "parallel"]}
      ins(%row : memref<2xf32>) outs(%x : memref<2x4xf32>) {
  ^bb0(%m: f32, %v: f32):
    %d = arith.subf %v, %m : f32
    %e = math.exp %d : f32
    linalg.yield %e : f32
  }
  linalg.fill ins(%zero : f32) outs(%row : memref<2xf32>)
  linalg.reduce { arith.addf } ins(%x : memref<2x4xf32>)
      outs(%row : memref<2xf32>) dimensions = [1]
  linalg.generic {indexing_maps = [#row, #same], iterator_types = ["parallel", "parallel"]}
      ins(%row : memref<2xf32>) outs(%x : memref<2x4xf32>) {
  ^bb0(%s: f32, %v: f32):
    %q = arith.divf %v, %s : f32
    linalg.yield %q : f32
  }"""
#: Fills the memory MEMREF, which is the host's and registered, or the GPU's view of it.
REGISTERED = """func.func private @mgpuMemGetDeviceMemRef1dInt32(memref<?xi32>) -> memref<?xi32>
func.func @main() -> i32 {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %seven = arith.constant 7 : i32
  %host = memref.alloc(%c4) : memref<?xi32>
  %any = memref.cast %host : memref<?xi32> to memref<*xi32>
  gpu.host_register %any : memref<*xi32>
  %gpu = call @mgpuMemGetDeviceMemRef1dInt32(%host) : (memref<?xi32>) -> memref<?xi32>
  linalg.fill ins(%seven : i32) outs(%MEMREF : memref<?xi32>)
  gpu.host_unregister %any : memref<*xi32>
  %r = memref.load %host[%c0] : memref<?xi32>
  return %r : i32
}"""
#: Each of 128 threads stores its number into the same element.
SAME = """func.func @main() -> i32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  %seven = arith.constant 7 : i32
  %gpu = gpu.alloc () : memref<1xi32>
  gpu.memset %gpu, %seven : memref<1xi32>, i32
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c128, %sy = %c1, %sz = %c1) {
    %number = arith.index_cast %tx : index to i32
    memref.store %number, %gpu[%c0] : memref<1xi32>
    gpu.terminator
  }
  gpu.dealloc %gpu : memref<1xi32>
  return %seven : i32
}"""
ADDS = """%seven = arith.constant 7 : i32
    %sum = arith.addi %number, %seven : i32"""
LONG = """func.func @main() -> i64 {
  %twelve = arith.constant 12 : i64
  return %twelve : i64
}"""
BOTH = "%both = gpu.wait async [%b2, %a3]"
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
#: Captures a stream that a lowered function uses, or with an argument builds a graph.
CAPTURES = f"""import ctypes, os, sys
import numpy, mgpu_rt
scale = mgpu_rt.Library(mgpu_rt.lower("{EXAMPLES / "python/kernels.mlir"}")).scale_on_device
array = mgpu_rt.to_device(numpy.ones(4, "f4"))
if sys.argv[1:]:
    with mgpu_rt.graph() as graph:
        scale(array, 3.0)
    graph.replay()
    print(array.to_host())
else:
    hip, stream = ctypes.CDLL(os.environ["MGPU_RT_HIP"]), ctypes.c_void_p()
    hip.hipStreamCreate(ctypes.byref(stream))
    with mgpu_rt.use_stream(stream.value):
        hip.hipStreamBeginCapture(stream, 0)
        scale(array, 3.0)
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


def program(source: Path, iterations: int) -> str:
    text = source.read_text()
    return text.replace(
        "iterations = arith.constant 1000 ", f"iterations = arith.constant {iterations} "
    )


def forked(tokens: str, loop_before: str = "") -> str:
    """Returns the program FORKED with these tokens. A loop of three rounds begins before the
    operation `loop_before`."""
    text = FORKED.replace("gpu.wait [TOKENS]", f"gpu.wait [{tokens}]" if tokens else "")
    if loop_before:
        loop = "scf.for %i = %c0 to %c3 step %c1 {"
        text = text.replace(f"  {loop_before}", f"  {loop}\n  {loop_before}", 1)
        text = text.replace("  %x =", "  }\n  %x =", 1)
    return text


def fills(buffer: str, before: str = "", after: str = "") -> str:
    return FILLS.replace("BUFFER", buffer).replace("BEFORE", before).replace("AFTER", after)


#: A task numbers 64 elements on the GPU, and copies them back.
TASK = """gpu.module @k {
  gpu.func @number(%p: memref<64xi64>) kernel {
    %i = gpu.thread_id x
    %n = arith.index_cast %i : index to i64
    memref.store %n, %p[%i] : memref<64xi64>
    gpu.return
  }
}
func.func @main() -> i64 {
  %c1 = arith.constant 1 : index
  %c63 = arith.constant 63 : index
  %c64 = arith.constant 64 : index
  %host = memref.alloc() : memref<64xi64>
  %task = async.execute {
    BODY
    async.yield
  }
  async.await %task : !async.token
  %x = memref.load %host[%c63] : memref<64xi64>
  return %x : i64
}"""
WITHOUT_TOKENS = """%gpu = gpu.alloc () : memref<64xi64>
    gpu.launch_func SIZED
    gpu.memcpy %host, %gpu : memref<64xi64>, memref<64xi64>
    gpu.dealloc %gpu : memref<64xi64>"""
WITH_TOKENS = """%a = gpu.wait async
    %gpu, %b = gpu.alloc async [%a] () : memref<64xi64>
    %c = gpu.launch_func async [%b] SIZED
    %d = gpu.memcpy async [%c] %host, %gpu : memref<64xi64>, memref<64xi64>
    %e = gpu.dealloc async [%d] %gpu : memref<64xi64>
    gpu.wait [%e]"""


def task(body: str) -> str:
    launch = (
        "@k::@number blocks in (%c1, %c1, %c1) threads in (%c64, %c1, %c1) "
        "args(%gpu : memref<64xi64>)"
    )
    text = TASK.replace("BODY", body.replace("SIZED", launch))
    return f"module attributes {{gpu.container_module}} {{\n{text}\n}}"


def reduces(reduction: str) -> str:
    return REDUCES.replace("REDUCTION", reduction)


#: A workgroup of two waves; LLVM leaves out a barrier for one.
WAVES = reduces(BRANCHES).replace("constant 64", "constant 128")
THREE, TWENTY = (program(ROOT / "examples" / PRINTS, steps) for steps in (3, 20))
#: A kernel adds a constant that the host can find by its name, in place of a counter.
CONSTANT = program(SOURCES["globals"], 20)
for old, new in (
    (
        "llvm.mlir.global external @launches(0 : i32) {addr_space = 1 : i32} : i32",
        "memref.global constant @launches : memref<1xi32> = dense<1>",
    ),
    ("llvm.mlir.addressof @launches : !llvm.ptr<1>", "memref.get_global @launches : memref<1xi32>"),
    ("%old = llvm", "%at = arith.constant 0 : index\n%old = llvm"),
    ("llvm.load %address :", "memref.load %address[%at] :"),
    ("!llvm.ptr<1> -> i32", "memref<1xi32>"),
    ("llvm.store %new, %address : i32, !llvm.ptr<1>", ""),
):
    CONSTANT = CONSTANT.replace(old, new)
#: Programs that the commands find in their folder.
PROGRAMS = {
    "far.mlir": FAR.read_text(),
    PRINTS: THREE,
    "tensors.mlir": TENSORS,
    "host.mlir": fills("host"),
    "kernels.mlir": fills("gpu", ON_GPU, BACK),
    "both.mlir": fills("gpu", f"{BY_LINALG}\n  {ON_GPU}", BACK),
    "one.mlir": fills("gpu", f"{BY_LOOP}\n  {ON_GPU}", BACK),
    "softmax.mlir": SOFTMAX.replace("NORMALIZE", BY_SOFTMAX),
    "reductions.mlir": SOFTMAX.replace("NORMALIZE", BY_REDUCTIONS),
    "fills-host.mlir": REGISTERED.replace("MEMREF", "host"),
    "fills-device.mlir": REGISTERED.replace("MEMREF", "gpu"),
    "wrapped.mlir": REGISTERED.replace("MEMREF", "gpu").replace(
        "memref<?xi32>\nfunc", "memref<?xi32> attributes {llvm.emit_c_interface}\nfunc"
    ),
    "reduces.mlir": reduces("%sum = gpu.subgroup_reduce add %number : (i32) -> i32"),
    "shuffles.mlir": reduces(BY_SHUFFLE),
    "all-reduces.mlir": reduces("%sum = gpu.all_reduce add %number {} : (i32) -> (i32)"),
    "rotates.mlir": reduces("%sum, %valid = gpu.rotate %number, 3, 64 : i32"),
    "rotated.mlir": reduces(ROTATED),
    "subgroups.mlir": reduces(SUBGROUPS),
    "generic-atomic.mlir": reduces(GENERIC_ATOMIC.replace("UPDATE", BY_GENERIC)),
    "atomic.mlir": reduces(GENERIC_ATOMIC.replace("UPDATE", BY_ATOMIC)),
    "gathers-host.mlir": fills("host", ON_GPU, BACK).replace(
        BY_LINALG, f"{BY_LOOP}\n  {GATHER.replace('TABLE', 'host')}"
    ),
    "gathers.mlir": fills("table", GATHERS, f"{GATHER.replace('TABLE', 'table')}\n  {BACK}"),
    "allocates.mlir": reduces(ALLOCATES),
    "copied.mlir": reduces(COPIED),
    "array.mlir": reduces(ARRAY),
    "parallel.mlir": fills("gpu", ON_GPU, BACK).replace(LINALG, PARALLEL),
    "forall.mlir": fills("gpu", ON_GPU, BACK).replace(LINALG, FORALL),
    "copies.mlir": fills("host", ON_GPU, f"{COPY}\n  {BACK}"),
    "asserts.mlir": reduces(ASSERTS),
    "branch.mlir": WAVES.replace("INSIDE", "gpu.barrier").replace("BEHIND", ""),
    "moved.mlir": WAVES.replace("INSIDE", "").replace("BEHIND", "gpu.barrier"),
    "libm.mlir": f"{ERFF}\n{reduces(OF_LIBM.replace('ERF', BY_CALL))}",
    "math.mlir": reduces(OF_LIBM.replace("ERF", "math.erf %float : f32")),
    "sin.mlir": reduces(OF_LIBM.replace("ERF", "math.sin %float : f32")),
    "prints.mlir": reduces(PRINTED),
    "small.mlir": reduces(SMALL),
    "calls.mlir": CALLS,
    "bf16.mlir": BF16,
    "wrong.mlir": CALLS.replace("call @five", "cal! @five"),
    "twice.mlir": TWICE,
    "large.mlir": LARGE,
    "blocks.mlir": SIZED
    + reduces(ADDS).replace("arith.constant 64 :", "func.call @size() : () ->"),
    "long.mlir": LONG,
    "inner.mlir": f"module {{\nmodule @inner {{\n{LONG}\n}}\n}}",
    "named.mlir": LONG.replace("@main", "@named"),
    "unjoined.mlir": TWO_STREAMS,
    "tokens.mlir": TWO_STREAMS.replace("func async [%b2]", "func async [%b2, %a3]"),
    "joined.mlir": TWO_STREAMS.replace("%b3 =", f"{BOTH}\n    %b3 =").replace(
        "func async [%b2]", "func async [%both]"
    ),
    "waited.mlir": TWO_STREAMS.replace("    %b0 =", "    gpu.wait [%a3]\n    %b0 =", 1),
    "pair.mlir": forked("%a2, %b1, %b2"),
    "pairs.mlir": forked("%a2, %b1, %b2", "%a0 ="),
    "pair-later.mlir": forked("%a1, %a2, %b1").replace(
        "  %a0 =", "  %z0 = gpu.wait async\n  gpu.wait [%z0]\n  %a0 =", 1
    ),
    "begun-before.mlir": forked("%b2, %a2", "%gpu, %a1 ="),
    "freed-twice.mlir": forked("%a2, %b1").replace(FREE, FREE + FREE.replace("%b2", "%b3")),
    "freed-in-loop.mlir": forked("%a2, %b1").replace(
        FREE, f"  scf.for %i = %c0 to %c3 step %c1 {{\n{FREE}  }}\n"
    ),
    "race-in-branch.mlir": (EXAMPLES / "race.mlir")
    .read_text()
    .replace(STORE, f"%low = arith.cmpi ult, %i, %half : index\n scf.if %low {{\n {STORE}\n }}"),
    "joins-before.mlir": JOINS_BEFORE,
    "joins-before-and-inside.mlir": JOINS_BEFORE.replace("gpu.wait [%filled]", JOIN_TWICE),
    "allocated-before.mlir": JOINS_BEFORE.replace("async [%given]\n", "async\n"),
    "copied-for-linalg.mlir": fills("gpu", COPY_TO, COPY_BACK),
    "forked.mlir": forked(""),
    "same.mlir": SAME,
    "holds.py": "import mgpu_rt\nstream = mgpu_rt.Stream()\n",
    "forks.py": FORKS,
    "captures.py": CAPTURES,
    "on-host.mlir": ON_THE_HOST,
    "registered.mlir": DEVICE_ADDRESS + ON_THE_HOST.replace("  gpu.launch", REGISTER, 1),
    "advice.c": Path(__file__).with_name("advice.c").read_text(),
    "late.c": LATE_C,
    "llvm.c": LLVM_C,
    "allocator.c": ALLOCATOR_C,
    "cluster.mlir": program(SOURCES["cluster"], 1),
    "globals.mlir": program(SOURCES["globals"], 3),
    "constant.mlir": CONSTANT,
    "forkjoin.mlir": program(ROOT / "bench" / "programs" / "forkjoin.mlir", 20),
    "vecadd.mlir": program(SOURCES["vecadd"], 3),
    "open.mlir": TWENTY.replace("gpu.wait [%freed]", ""),
    "closed.mlir": TWENTY,
    "leaking.mlir": TWENTY.replace(
        "%freed = gpu.dealloc async [%back]",
        "gpu.wait [%back]\n%other = gpu.wait async\n%freed = gpu.dealloc async [%other]",
    ).replace("gpu.wait [%freed]", ""),
    "busy.c": BUSY_C,
    "registers.json": json.dumps(counted("abi", "mgpuMemHostRegisterMemRef", calls=10, ns=10_000)),
    "asks.json": json.dumps(counted("hip", "hipStreamQuery", calls=100, ns=5_000)),
    "carried.mlir": CARRIED,
    "task.mlir": task(WITHOUT_TOKENS),
    "tokens-task.mlir": task(WITH_TOKENS),
    "two.mlir": THREE.replace("  gpu.module", f"  {ANOTHER}\n  gpu.module", 1),
    "interface.mlir": THREE.replace("llvm.noinline", "llvm.noinline, llvm.emit_c_interface"),
    "trusts.mlir": reduces(ASSERTS.replace("cf.assert", "// cf.assert")),
}
