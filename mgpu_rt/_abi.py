"""Reads the mgpu* ABI from csrc/abi.def, which declares each function once.

Generates the cffi declarations, and the table in docs/abi.md.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from mgpu_rt import _layout

_LINE = re.compile(
    r"^MGPU_(?:FN\((?P<result>[^,]+), |VOID\()(?P<name>\w+), \((?P<params>.*?)\), "
    r"\(.*\), (?P<first>\d+), (?P<last>\d+), .*\)$",
    re.MULTILINE,
)

#: The types that the declarations use, for cffi.
TYPES = """
typedef struct ihipModule_t *hipModule_t;
typedef struct ihipModuleSymbol_t *hipFunction_t;
typedef struct ihipStream_t *hipStream_t;
typedef struct ihipEvent_t *hipEvent_t;
struct mgpu_memref { char *allocated, *aligned; int64_t offset; int64_t sizes_and_strides[]; };
struct mgpu_memref_float { float *allocated, *aligned; int64_t offset, size, stride; };
struct mgpu_elapsed { float milliseconds; int64_t error; };
struct mgpu_memref_int32 { int32_t *allocated, *aligned; int64_t offset, size, stride; };
typedef void (*mgpu_rt_function)(void);
struct mgpu_rt_graph;
struct mgpu_rt_graph_function { const char *name; void *state; };
struct mgpu_rt_scratch { hipStream_t stream; void *data; size_t capacity; };
"""

#: The library's exported functions beyond the ABI (csrc/include/mgpu_rt.h).
EXTENSIONS = """
int mgpu_rt_use_stream(hipStream_t stream);
const char *mgpu_rt_take_error(void);
int mgpu_rt_empty_cache(void);
void mgpu_rt_on_out_of_memory(void (*make_room)(int device, size_t bytes));
void *mgpu_rt_record(size_t *bytes);
void *mgpu_rt_scratch_reserve(struct mgpu_rt_scratch *scratch, size_t bytes);
void mgpu_rt_scratch_release(struct mgpu_rt_scratch *scratch);
void mgpu_rt_scratch_move(struct mgpu_rt_scratch *to, struct mgpu_rt_scratch *from);
int mgpu_rt_graph_begin(void);
struct mgpu_rt_graph *mgpu_rt_graph_end(void);
int mgpu_rt_graph_launch(struct mgpu_rt_graph *graph, hipStream_t stream);
void mgpu_rt_graph_destroy(struct mgpu_rt_graph *graph);
size_t mgpu_rt_graph_nodes(const struct mgpu_rt_graph *graph);
int mgpu_rt_graph_enter(struct mgpu_rt_graph_function *function, const void *arguments,
    size_t bytes);
int mgpu_rt_graph_leave(struct mgpu_rt_graph_function *function);
mgpu_rt_function mgpu_rt_native(const char *name);
int mgpu_rt_intercept(const char *name, mgpu_rt_function instead);
void mgpu_rt_report(const char *call, int error);
const char *mgpu_rt_version(void);
"""

#: The exported functions that only this package calls (csrc/include/mgpu_rt_private.h).
PRIVATE = """
const char *mgpu_rt_manager(void);
unsigned long long mgpu_rt_image_name(const void *image, char *name, size_t size);
const char *mgpu_rt_hip_path(void);
unsigned mgpu_rt_event_flags(void);
unsigned mgpu_rt_failures(void);
unsigned long long mgpu_rt_epoch(void);
int mgpu_rt_epoch_lasts(unsigned long long epoch);
"""


#: Maps each function that no LLVM release calls to the compiler that calls the function.
FORKS = {
    "mgpuModuleGetGlobal": "a compiler for OpenMP",
    "mgpuModuleOccupancyMaxActiveBlocks": "FlyDSL",
    "mgpuEventElapsedTime": "mlir-air and others",
    "mgpuTraceBufferRead": "FlyDSL",
    "mgpuTraceBufferClear": "FlyDSL",
}

_NVIDIA = "NVIDIA's driver; on AMD an error"

#: Maps the first words of a section's comment in abi.def to the vendor library that serves the
#: section's functions. HIP serves all other sections.
_SECTIONS = {
    "Tensor maps": _NVIDIA,
    "Sparse matrices": "hipSPARSE or cuSPARSE",
}

#: Functions that other runtimes have and this library lacks, with the reason.
LEFT_OUT = {
    "mgpu*SparseLt*, mgpuCusparseLtCreate2To4SpMat": "2:4 sparse matrices, on NVIDIA only",
    "flydslAot*, flydslRuntimeTakeError": "FlyDSL links them from an archive of its own",
}


@dataclass(frozen=True)
class Function:
    """One function of the ABI."""

    name: str
    result: str
    params: str
    first_llvm: int
    last_llvm: int
    served_by: str

    @property
    def emitted_by(self) -> str:
        """Returns the LLVM releases, or the other compiler, whose programs call the function."""
        return FORKS.get(self.name) or f"LLVM {self.first_llvm}–{self.last_llvm}"

    @property
    def prototype(self) -> str:
        """Returns the function's C declaration, without the semicolon."""
        space = "" if self.result.endswith("*") else " "
        return f"{self.result}{space}{self.name}({self.params})"


def _served_by(text: str, match: re.Match[str]) -> str:
    """Returns the vendor library that serves a function. For most functions the comment above the
    function's section determines the library."""
    if match["name"] == "mgpuModuleLoadJIT":
        return _NVIDIA
    section = re.findall(r"^/\* (.*)", text[: match.start()], re.MULTILINE)[-1:]
    found = [
        by for beginning, by in _SECTIONS.items() if section and section[0].startswith(beginning)
    ]
    return found[0] if found else "HIP"


def parse(text: str) -> list[Function]:
    """Reads abi.def. Raises ValueError for a line that it cannot parse."""
    functions = [
        Function(
            match["name"],
            match["result"] or "void",
            match["params"],
            int(match["first"]),
            int(match["last"]),
            _served_by(text, match),
        )
        for match in _LINE.finditer(text)
    ]
    expected = len(re.findall(r"^MGPU_(?:FN|VOID)\(", text, re.MULTILINE))
    if len(functions) != expected:
        raise ValueError(f"abi.def has {expected} lines, but only {len(functions)} can be parsed")
    return functions


def functions(definition: Path | None = None) -> list[Function]:
    """Returns the functions in the order of `definition`, by default the abi.def of this checkout
    or package."""
    path = definition or _layout.table("abi.def")
    return parse(path.read_text(encoding="utf-8"))


def cdef(definition: Path | None = None) -> str:
    """Returns declarations of all the library's exports, for cffi's FFI.cdef."""
    lines = [f"{function.prototype};" for function in functions(definition)]
    return TYPES + "\n".join(lines) + EXTENSIONS + PRIVATE


def markdown() -> str:
    """Returns the ABI as a table for docs/abi.md."""
    rows = [
        f"| `{function.name}` | {function.emitted_by} | {function.served_by} "
        f"| `{function.result} ({function.params})` |"
        for function in functions()
    ]
    head = ["| function | called by | served by | signature |", "|---|---|---|---|"]
    return "\n".join([*head, *rows]) + "\n"


def left_out() -> str:
    """Returns a table of functions that other compilers emit and this library lacks."""
    rows = [f"| `{names}` | {why} |" for names, why in LEFT_OUT.items()]
    return "\n".join(["| left out | why |", "|---|---|", *rows]) + "\n"


if __name__ == "__main__":
    print(markdown() + "\n" + left_out(), end="")
