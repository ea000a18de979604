"""Functions that are replayed as a graph: `mgpu-rt lower --graph`.

Each such function becomes an internal one in LLVM IR. A wrapper of its name asks the library at
each call whether the function has to run (mgpu_rt_graph_enter in mgpu_rt.h). With another library
than this one, the function always runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_CALLS = """
declare extern_weak i32 @mgpu_rt_graph_enter(ptr, ptr, i64)
declare extern_weak i32 @mgpu_rt_graph_leave(ptr)
"""

#: The wrapper of a function. It packs the arguments, so that every byte of them is written.
_WRAPPER = """
@"{function}.name" = private unnamed_addr constant [{length} x i8] c"{text}\\00"
@"{function}.graph" = internal global {{ ptr, ptr }} {{ ptr @"{function}.name", ptr null }}

define {head}@"{function}"({parameters}) {{
  %known = icmp ne ptr @mgpu_rt_graph_enter, null
  br i1 %known, label %ask, label %plainly
ask:
  %arguments = alloca <{{ {types} }}>
  store <{{ {types} }}> zeroinitializer, ptr %arguments
{stores}
  %end = getelementptr <{{ {types} }}>, ptr null, i32 1
  %bytes = ptrtoint ptr %end to i64
  %way = call i32 @mgpu_rt_graph_enter(ptr @"{function}.graph", ptr %arguments, i64 %bytes)
  switch i32 %way, label %plainly [ i32 0, label %done
                                    i32 2, label %build ]
build:
  call void @"{function}.plainly"({values})
  %left = call i32 @mgpu_rt_graph_leave(ptr @"{function}.graph")
  %built = icmp eq i32 %left, 0
  br i1 %built, label %done, label %plainly
plainly:
  call void @"{function}.plainly"({values})
  br label %done
done:
  ret void
}}
"""
_STORE = """\
  %at{number} = getelementptr inbounds <{{ {types} }}>, ptr %arguments, i32 0, i32 {number}
  store {value}, ptr %at{number}, align 1"""


def check(text: str, functions: Iterable[str]) -> None:
    """Raises ValueError for a function whose call depends on more than its arguments."""
    for function in functions:
        if function.startswith("_mlir_ciface_"):
            raise ValueError(
                f"--graph {function}: name {function.removeprefix('_mlir_ciface_')}, which it calls"
            )
        found = re.search(rf'@"?{re.escape(function)}"?\(([^{{]*)', text)
        if found and "memref<*" in found[1]:
            raise ValueError(
                f"--graph {function}: it takes a memref without a rank, whose address does not say "
                "what memory it is"
            )


def wrap(ir: str, functions: Iterable[str]) -> str:
    """The program, its functions of these names replayed. Raises ValueError where one cannot be."""
    names = list(dict.fromkeys(functions))
    for name in names:
        ir = _wrap(ir, name)
    return ir + _CALLS if names else ir


def _wrap(ir: str, function: str) -> str:
    quoted = function if re.fullmatch(r"[\w.$-]+", function) else f'"{function}"'
    definition = re.compile(
        rf"^define (?P<head>[^@\n]*)@{re.escape(quoted)}\((?P<parameters>.*)\)(?P<tail>[^\n]*\{{)$",
        re.MULTILINE,
    )
    found = definition.search(ir)
    if not found:
        raise ValueError(f"--graph {function}: the program defines no function of that name")
    head, parameters = found["head"], found["parameters"]
    if not re.search(r"\bvoid $", head) or re.search(r"\bsret\b", parameters):
        raise ValueError(f"--graph {function}: it returns a value, and a replay has none")
    if re.search(r"\bbyval\b", parameters) or "..." in parameters:
        raise ValueError(f"--graph {function}: its arguments are not all plain values")
    values = [_value(parameter) for parameter in _split(parameters)]
    types = ", ".join(kind for kind, _ in values) or "i8"
    named = [f"{kind} {name}" for kind, name in values]
    stores = (
        _STORE.format(types=types, number=number, value=value) for number, value in enumerate(named)
    )
    wrapper = _WRAPPER.format(
        function=function,
        text="".join(f"\\{byte:02X}" for byte in function.encode()),
        length=len(function.encode()) + 1,
        head=head,
        parameters=parameters,
        types=types,
        stores="\n".join(stores),
        values=", ".join(named),
    )
    renamed = f'define internal void @"{function}.plainly"({parameters}){found["tail"]}'
    return ir[: found.start()] + renamed + ir[found.end() :] + wrapper


def _split(parameters: str) -> list[str]:
    """At the commas that stand in no brackets."""
    parts, depth = [""], 0
    for letter in parameters:
        depth += (letter in "{[<(") - (letter in "}]>)")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts if part.strip()]


def _value(parameter: str) -> tuple[str, str]:
    """The type and the name of a parameter, without the attributes between them."""
    depth = 0
    for end, letter in enumerate(parameter):
        depth += (letter in "{[<(") - (letter in "}]>)")
        if letter == " " and depth == 0:
            return parameter[:end], parameter.rpartition(" ")[2]
    raise ValueError(f"a parameter without a name: {parameter}")
