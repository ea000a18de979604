"""Wraps functions so that the library replays each function as a graph: `mgpu-rt lower --graph`.

Each such function becomes an internal function in LLVM IR, with a new name. A wrapper gets the
function's original name. At each call, the wrapper asks mgpu_rt_graph_enter (mgpu_rt.h) whether the
function must run. If the program's runtime library lacks mgpu_rt_graph_enter, the function always
runs.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable

from mgpu_rt._functions.types import split

#: For each function of the library: text that any call or declaration of the function contains, and
#: the function's declaration.
_CALLS = {
    "@mgpu_rt_graph_enter(": "declare extern_weak i32 @mgpu_rt_graph_enter(ptr, ptr, i64)\n",
    "@mgpu_rt_graph_leave(": "declare extern_weak i32 @mgpu_rt_graph_leave(ptr)\n",
}

#: The wrapper of a function. The wrapper packs the arguments without gaps, so that every byte of
#: the packed data is defined.
_WRAPPER = """
{name} = private unnamed_addr constant [{length} x i8] c"{text}\\00"
{graph} = internal global {{ ptr, ptr }} {{ ptr {name}, ptr null }}

define {head}{function}({parameters}) {{
  %known = icmp ne ptr @mgpu_rt_graph_enter, null
  br i1 %known, label %ask, label %plainly
ask:
  %arguments = alloca <{{ {types} }}>
  store <{{ {types} }}> zeroinitializer, ptr %arguments
{stores}
  %end = getelementptr <{{ {types} }}>, ptr null, i32 1
  %bytes = ptrtoint ptr %end to i64
  %way = call i32 @mgpu_rt_graph_enter(ptr {graph}, ptr %arguments, i64 %bytes)
  switch i32 %way, label %plainly [ i32 0, label %done
                                    i32 2, label %build ]
build:
  call void {plainly}({values})
  %left = call i32 @mgpu_rt_graph_leave(ptr {graph})
  %built = icmp eq i32 %left, 0
  br i1 %built, label %done, label %plainly
plainly:
  call void {plainly}({values})
  br label %done
done:
  ret void
}}
"""
_STORE = """\
  %at{number} = getelementptr inbounds <{{ {types} }}>, ptr %arguments, i32 0, i32 {number}
  store {value}, ptr %at{number}, align 1"""


def check(text: str, functions: Iterable[str]) -> None:
    """Raises ValueError if a function is a C interface wrapper, or takes a memref without a
    rank."""
    for function in functions:
        if function.startswith("_mlir_ciface_"):
            raise ValueError(
                f"--graph {function}: this C wrapper calls "
                f"{function.removeprefix('_mlir_ciface_')}: name that function instead"
            )
        found = re.search(rf'@"?{re.escape(function)}"?\(([^{{]*)', text)
        if found and "memref<*" in found[1]:
            raise ValueError(
                f"--graph {function}: the function takes a memref without a rank, so the "
                f"memory's size is not known"
            )


def wrap(ir: str, functions: Iterable[str]) -> str:
    """Returns the program, changed so that the library replays the named functions as graphs.
    Raises ValueError if a function cannot be replayed."""
    names = list(dict.fromkeys(functions))
    declarations = [text for known, text in _CALLS.items() if names and known not in ir]
    for name in names:
        ir = _wrap(ir, name)
    return "".join((ir, *declarations))


def _symbol(name: str) -> str:
    """Returns a name in LLVM's spelling."""
    content = name.encode(errors="surrogateescape")
    if re.fullmatch(rb"[A-Za-z._-][A-Za-z0-9._-]*", content):
        return f"@{name}"
    plain = (byte for byte in range(0x20, 0x7F) if byte not in b'"\\')
    letters = {byte: chr(byte) for byte in plain}
    return '@"' + "".join(letters.get(byte, f"\\{byte:02X}") for byte in content) + '"'


def _own_symbols(ir: str, function: str) -> dict[str, str]:
    """Returns unused symbols for the three parts that the wrapper adds to the program."""
    for number in itertools.count():
        end = f".{number}" if number else ""
        found = {kind: _symbol(f"{function}.{kind}{end}") for kind in ("name", "graph", "plainly")}
        if not any(symbol in ir for symbol in found.values()):
            break
    return found


def _wrap(ir: str, function: str) -> str:
    symbol = _symbol(function)
    definition = re.compile(
        rf"^define (?P<head>[^@\n]*){re.escape(symbol)}\((?P<parameters>.*)\)(?P<tail>[^\n]*\{{)$",
        re.MULTILINE,
    )
    found = definition.search(ir)
    if not found:
        raise ValueError(f"--graph {function}: the program defines no function of that name")
    head, parameters = found["head"], found["parameters"]
    if not re.search(r"\bvoid $", head) or re.search(r"\bsret\b", parameters):
        raise ValueError(
            f"--graph {function}: the function returns a value, but a replay returns none"
        )
    if re.search(r"\bbyval\b", parameters) or "..." in parameters:
        raise ValueError(f"--graph {function}: some of its arguments are not plain values")
    values = [_value(parameter) for parameter in split(parameters)]
    types = ", ".join(kind for kind, _ in values) or "i8"
    named = [f"{kind} {name}" for kind, name in values]
    stores = (
        _STORE.format(types=types, number=number, value=value) for number, value in enumerate(named)
    )
    content = function.encode(errors="surrogateescape")
    own = _own_symbols(ir, function)
    wrapper = _WRAPPER.format(
        **own,
        function=symbol,
        text="".join(f"\\{byte:02X}" for byte in content),
        length=len(content) + 1,
        head=head,
        parameters=parameters,
        types=types,
        stores="\n".join(stores),
        values=", ".join(named),
    )
    renamed = f"define internal void {own['plainly']}({parameters}){found['tail']}"
    return ir[: found.start()] + renamed + ir[found.end() :] + wrapper


def _value(parameter: str) -> tuple[str, str]:
    """Returns the type and the name of a parameter, but not the parameter's attributes."""
    depth = 0
    for end, letter in enumerate(parameter):
        depth += (letter in "{[<(") - (letter in "}]>)")
        if letter == " " and depth == 0:
            return parameter[:end], parameter.rpartition(" ")[2]
    raise ValueError(f"a parameter without a name: {parameter}")
