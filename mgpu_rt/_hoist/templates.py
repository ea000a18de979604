"""The text that hoisting adds to a program, in the LLVM dialect as releases 19 to 22 print it.

The added code creates each module, function and stream at the first use instead of before main.
Before the first use the program may therefore choose its device, or fork. An exit handler releases
the objects. The exit handler runs before HIP's own handlers; a destructor in the program would run
after HIP's handlers.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from string import Template

PREFIX = "mgpu_rt_hoisted"
TAKE, GIVE = f"{PREFIX}_stream_take", f"{PREFIX}_stream_give"

#: The added code keeps at most this number of idle streams. Programs use fewer streams at the same
#: time.
STREAMS = 32

# proof: slot_is_emptied_at_once, else `_TAKE_IT = "llvm.load %slot : !llvm.ptr -> !llvm.ptr"`
_TAKE_IT = "llvm.atomicrmw xchg %slot, %none acq_rel : !llvm.ptr, !llvm.ptr"
# proof: one_module_is_kept, else `_IF_SECOND = "^done($module : !llvm.ptr)"`
_IF_SECOND = "^second"
# proof: process_made_the_objects, else `_IF_OURS = "llvm.br ^release"`
_IF_OURS = "llvm.cond_br %ours, ^release, ^done"

_VARIABLE = Template("""
  llvm.mlir.global internal @${prefix}_$name() {addr_space = 0 : i32} : $type {
    %value = llvm.mlir.zero : $type
    llvm.return %value : $type
  }""")

_KNOWN = """\
    %all = llvm.mlir.addressof @${prefix}_${kind}s : !llvm.ptr
    %slot = llvm.getelementptr %all[$index] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
    %none = llvm.mlir.zero : !llvm.ptr
    %known = llvm.load %slot atomic acquire {alignment = 8 : i64} : !llvm.ptr -> !llvm.ptr
    %missing = llvm.icmp "eq" %known, %none : !llvm.ptr
    llvm.cond_br %missing, ^make, ^done(%known : !llvm.ptr)
  ^make:"""

# Two threads may load a module at the same time. The thread that finishes second unloads its own
# copy of the module.
_MODULE = Template(f"""
  llvm.func internal @${{prefix}}_module_$index() -> !llvm.ptr {{
{_KNOWN}
$load
    llvm.call @${{prefix}}_register() : () -> ()
    %swap = llvm.cmpxchg %slot, %none, $module acq_rel acquire : !llvm.ptr, !llvm.ptr
    %before = llvm.extractvalue %swap[0] : !llvm.struct<(ptr, i1)>
    %first = llvm.extractvalue %swap[1] : !llvm.struct<(ptr, i1)>
    llvm.cond_br %first, ^done($module : !llvm.ptr), {_IF_SECOND}
  ^second:
    llvm.call @mgpuModuleUnload($module) : (!llvm.ptr) -> ()
    llvm.br ^done(%before : !llvm.ptr)
  ^done(%result: !llvm.ptr):
    llvm.return %result : !llvm.ptr
  }}""")

# If two threads look up a kernel at the same time, both threads get the same function.
_FUNCTION = Template(f"""
  llvm.func internal @${{prefix}}_function_$index() -> !llvm.ptr {{
{_KNOWN}
$module
    %name = llvm.mlir.addressof @"$name" : !llvm.ptr
    %found = llvm.call @mgpuModuleGetFunction(%module, %name) : (!llvm.ptr, !llvm.ptr) -> !llvm.ptr
    llvm.store %found, %slot atomic release {{alignment = 8 : i64}} : !llvm.ptr, !llvm.ptr
    llvm.br ^done(%found : !llvm.ptr)
  ^done(%result: !llvm.ptr):
    llvm.return %result : !llvm.ptr
  }}""")

# A loop over the slots of %all. The text between _EACH_SLOT and _NEXT_SLOT uses %slot, and then
# branches to ^next or out of the loop. The text after _NEXT_SLOT runs after the loop has visited
# all slots.
_EACH_SLOT = """\
    %none = llvm.mlir.zero : !llvm.ptr
    %start = llvm.mlir.constant(0 : i64) : i64
    %one = llvm.mlir.constant(1 : i64) : i64
    llvm.br ^look(%start : i64)
  ^look(%i: i64):
    %slot = llvm.getelementptr %all[%i] : (!llvm.ptr, i64) -> !llvm.ptr, !llvm.ptr"""
_NEXT_SLOT = """\
  ^next:
    %after = llvm.add %i, %one : i64
    %more = llvm.icmp "ult" %after, %count : i64
    llvm.cond_br %more, ^look(%after : i64), ^end
  ^end:"""

# Each call takes a stream of its own, so threads and recursive calls never share a stream.
_STREAMS = Template(f"""
  llvm.func internal @${{prefix}}_stream_take() -> !llvm.ptr {{
    %all = llvm.mlir.addressof @${{prefix}}_streams : !llvm.ptr
    %count = llvm.mlir.constant($count : i64) : i64
{_EACH_SLOT}
    %idle = {_TAKE_IT}
    %empty = llvm.icmp "eq" %idle, %none : !llvm.ptr
    llvm.cond_br %empty, ^next, ^done(%idle : !llvm.ptr)
{_NEXT_SLOT}
    %new = llvm.call @mgpuStreamCreate() : () -> !llvm.ptr
    llvm.call @${{prefix}}_register() : () -> ()
    llvm.br ^done(%new : !llvm.ptr)
  ^done(%stream: !llvm.ptr):
    llvm.return %stream : !llvm.ptr
  }}

  llvm.func internal @${{prefix}}_stream_give(%stream: !llvm.ptr) {{
    %all = llvm.mlir.addressof @${{prefix}}_streams : !llvm.ptr
    %count = llvm.mlir.constant($count : i64) : i64
{_EACH_SLOT}
    %swap = llvm.cmpxchg %slot, %none, %stream acq_rel monotonic : !llvm.ptr, !llvm.ptr
    %kept = llvm.extractvalue %swap[1] : !llvm.struct<(ptr, i1)>
    llvm.cond_br %kept, ^done, ^next
{_NEXT_SLOT}
    llvm.call @mgpuStreamDestroy(%stream) : (!llvm.ptr) -> ()
    llvm.br ^done
  ^done:
    llvm.return
  }}""")

# The exit handler is registered after HIP has created an object, because exit runs the last
# registered handler first. A forked child has the parent's handles and must not use them.
_RELEASE = Template(f"""
  llvm.func internal @${{prefix}}_register() {{
    %process = llvm.mlir.addressof @${{prefix}}_process : !llvm.ptr
    %none = llvm.mlir.constant(0 : i32) : i32
    %self = llvm.call @getpid() : () -> i32
    %swap = llvm.cmpxchg %process, %none, %self acq_rel monotonic : !llvm.ptr, i32
    %first = llvm.extractvalue %swap[1] : !llvm.struct<(i32, i1)>
    llvm.cond_br %first, ^register, ^done
  ^register:
    %handler = llvm.mlir.addressof @${{prefix}}_release : !llvm.ptr
    %status = llvm.call @atexit(%handler) : (!llvm.ptr) -> i32
    llvm.br ^done
  ^done:
    llvm.return
  }}

  llvm.func internal @${{prefix}}_release() {{
    %process = llvm.mlir.addressof @${{prefix}}_process : !llvm.ptr
    %owner = llvm.load %process {{alignment = 4 : i64}} : !llvm.ptr -> i32
    %self = llvm.call @getpid() : () -> i32
    %ours = llvm.icmp "eq" %owner, %self : i32
    {_IF_OURS}
  ^release:
$release
    llvm.br ^done
  ^done:
    llvm.return
  }}""")

_FORGET = Template("""\
    %functions = llvm.mlir.addressof @${prefix}_functions : !llvm.ptr
    %zero = llvm.mlir.constant(0 : i8) : i8
    %bytes = llvm.mlir.constant($bytes : i64) : i64
    "llvm.intr.memset"(%functions, %zero, %bytes) <{isVolatile = false}>
        : (!llvm.ptr, i8, i64) -> ()""")

_GIVE_BACK = Template("""\
    %${kind}s = llvm.mlir.addressof @${prefix}_${kind}s : !llvm.ptr
    %${kind}_count = llvm.mlir.constant($count : i64) : i64
    llvm.call @${prefix}_release_${kind}s(%${kind}s, %${kind}_count) : (!llvm.ptr, i64) -> ()""")

_GIVE_ALL_BACK = Template(f"""
  llvm.func internal @${{prefix}}_release_${{kind}}s(%all: !llvm.ptr, %count: i64) {{
{_EACH_SLOT}
    %kept = llvm.atomicrmw xchg %slot, %none acq_rel : !llvm.ptr, !llvm.ptr
    %empty = llvm.icmp "eq" %kept, %none : !llvm.ptr
    llvm.cond_br %empty, ^next, ^release
  ^release:
    llvm.call @$undo(%kept) : (!llvm.ptr) -> ()
    llvm.br ^next
{_NEXT_SLOT}
    llvm.return
  }}""")

#: Functions that the added text may call. If the program lacks a called function, the function's
#: declaration is added.
_DECLARATIONS = {
    "atexit": "(!llvm.ptr) -> i32",
    "getpid": "() -> i32",
    "mgpuModuleUnload": "(!llvm.ptr)",
}


def module_name(index: int) -> str:
    return f"{PREFIX}_module_{index}"


def function_name(index: int) -> str:
    return f"{PREFIX}_function_{index}"


def module(index: int, load: Iterable[str], result: str) -> str:
    """Returns the text of a function that returns a module; ``load`` contains the lines that load
    the module."""
    return _MODULE.substitute(
        prefix=PREFIX, kind="module", index=index, load="\n".join(load), module=result
    )


def function(index: int, of_module: Iterable[str], name: str) -> str:
    """Returns the text of a function that returns a kernel; ``of_module`` contains the lines that
    define %module."""
    return _FUNCTION.substitute(
        prefix=PREFIX, kind="function", index=index, module="\n".join(of_module), name=name
    )


def common(modules: int, functions: int, streams: bool, declared: Container[str]) -> str:
    """Returns the variables and functions that all added functions share. ``declared`` contains the
    program's declarations."""
    counts = {"module": modules, "function": functions, "stream": STREAMS if streams else 0}
    undo = {"module": "mgpuModuleUnload", "stream": "mgpuStreamDestroy"}
    parts, release = [], []
    for kind, count in counts.items():
        if count:
            parts.append(_variable(f"{kind}s", f"!llvm.array<{count} x ptr>"))
    if functions:
        # proof: exit_clears_functions
        release.append(_FORGET.substitute(prefix=PREFIX, bytes=8 * functions))
    for kind in undo:
        if counts[kind]:
            parts.append(_GIVE_ALL_BACK.substitute(prefix=PREFIX, kind=kind, undo=undo[kind]))
            release.append(_GIVE_BACK.substitute(prefix=PREFIX, kind=kind, count=counts[kind]))
    if streams:
        parts.append(_STREAMS.substitute(prefix=PREFIX, count=STREAMS))
    if modules or streams:
        parts.append(_variable("process", "i32"))
        parts.append(_RELEASE.substitute(prefix=PREFIX, release="\n".join(release)))
    parts += [
        f"\n  llvm.func @{name}{signature}"
        for name, signature in _DECLARATIONS.items()
        if name not in declared and any(f"@{name}(" in part for part in parts)
    ]
    return "".join(parts)


def _variable(name: str, kind: str) -> str:
    return _VARIABLE.substitute(prefix=PREFIX, name=name, type=kind)
