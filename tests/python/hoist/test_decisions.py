"""Hoisting moves a call only if all conditions are met; each small program violates one
condition."""

from __future__ import annotations

import pytest

from mgpu_rt._hoist.rewrite import Hoisted
from mgpu_rt._hoist.tools import Refused
from tests.support.hoisted import RELEASES, hoist

pytestmark = pytest.mark.check  # each case is compiled

PTX = r".version 8.0\0A.target sm_90\0A.visible .entry f() { ret; }"

GLOBALS = f"""
  llvm.mlir.global internal constant @image("{PTX}\\00")
  llvm.mlir.global internal constant @name("f\\00")
  llvm.mlir.global internal @place() : !llvm.ptr {{
    %0 = llvm.mlir.zero : !llvm.ptr
    llvm.return %0 : !llvm.ptr
  }}
"""

#: A launch in the form that LLVM 19 produces. Tests replace the parts in capital letters.
BEFORE_21 = f"""
module {{{GLOBALS}  llvm.func @mgpuModuleLoad(!llvm.ptr, i64) -> !llvm.ptr
  llvm.func @mgpuModuleLoadJIT(!llvm.ptr, i32, i64) -> !llvm.ptr
  llvm.func @mgpuModuleGetFunction(!llvm.ptr, !llvm.ptr) -> !llvm.ptr
  llvm.func @mgpuModuleUnload(!llvm.ptr)
  llvm.func @mgpuStreamCreate() -> !llvm.ptr
  llvm.func @mgpuStreamSynchronize(!llvm.ptr)
  llvm.func @mgpuStreamDestroy(!llvm.ptr)
  llvm.func @mgpuEventSynchronize(!llvm.ptr)
  llvm.func @mgpuMemAlloc(i64, !llvm.ptr, i8) -> !llvm.ptr
  llvm.func @mgpuSetDefaultDevice(i32)
  llvm.func @elsewhere(!llvm.ptr)
  llvm.func @mgpuLaunchKernel(!llvm.ptr, i64, i64, i64, i64, i64, i64, i32, !llvm.ptr, !llvm.ptr,
                              !llvm.ptr, i64)
  TOP
  llvm.func @launch(%number: i64, %pointer: !llvm.ptr) {{
    %one = llvm.mlir.constant(1 : i64) : i64
    %small = llvm.mlir.constant(0 : i32) : i32
    %null = llvm.mlir.zero : !llvm.ptr
    %place = llvm.mlir.addressof @place : !llvm.ptr
    %image = llvm.mlir.addressof @image : !llvm.ptr
    %name = llvm.mlir.addressof @name : !llvm.ptr
    %module = llvm.call @mgpuModuleLoad(%image, %one) : (!llvm.ptr, i64) -> !llvm.ptr
    MODULE
    %function = llvm.call @mgpuModuleGetFunction(%module, %name)
        : (!llvm.ptr, !llvm.ptr) -> !llvm.ptr
    %stream = llvm.call @mgpuStreamCreate() : () -> !llvm.ptr
    STREAM
    llvm.call @mgpuLaunchKernel(%function, %one, %one, %one, %one, %one, %one, %small, %stream,
        %null, %null, %one) : (!llvm.ptr, i64, i64, i64, i64, i64, i64, i32, !llvm.ptr, !llvm.ptr,
        !llvm.ptr, i64) -> ()
    llvm.call @mgpuStreamSynchronize(%stream) : (!llvm.ptr) -> ()
    DONE
    llvm.call @mgpuStreamDestroy(%stream) : (!llvm.ptr) -> ()
    llvm.call @mgpuModuleUnload(%module) : (!llvm.ptr) -> ()
    llvm.return
  }}
}}
"""

#: A launch in the form that LLVM 22 produces.
SINCE_21 = f"""
module {{{GLOBALS}  llvm.mlir.global_ctors CONSTRUCTORS
  llvm.func @mgpuModuleLoad(!llvm.ptr, i64) -> !llvm.ptr
  llvm.func @mgpuModuleGetFunction(!llvm.ptr, !llvm.ptr) -> !llvm.ptr
  llvm.func @elsewhere(!llvm.ptr)
  TOP
  llvm.func internal @load() {{
    %one = llvm.mlir.constant(1 : i64) : i64
    %image = llvm.mlir.addressof @image : !llvm.ptr
    %place = llvm.mlir.addressof @place : !llvm.ptr
    %module = llvm.call @mgpuModuleLoad(%image, %one) : (!llvm.ptr, i64) -> !llvm.ptr
    llvm.store %module, %place : !llvm.ptr, !llvm.ptr
    CONSTRUCTOR
    llvm.return
  }}
  llvm.func @launch(%number: i64, %pointer: !llvm.ptr) {{
    %place = llvm.mlir.addressof @place : !llvm.ptr
    %name = llvm.mlir.addressof @name : !llvm.ptr
    %module = llvm.load %place : !llvm.ptr -> !llvm.ptr
    %function = llvm.call @mgpuModuleGetFunction(%module, %name)
        : (!llvm.ptr, !llvm.ptr) -> !llvm.ptr
    llvm.call @elsewhere(%function) : (!llvm.ptr) -> ()
    BODY
    llvm.return
  }}
}}
"""

BLANKS = ("TOP", "MODULE", "STREAM", "DONE", "BODY", "CONSTRUCTOR")
CALL_ELSEWHERE = "llvm.call @elsewhere({}) : (!llvm.ptr) -> ()"


def before_21(**inserted: str) -> str:
    return filled(BEFORE_21, inserted)


def since_21(llvm: int, **inserted: str) -> str:
    old, new = (
        "{ctors = [@load], priorities = [123 : i32]}",
        ("ctors = [@load], priorities = [123 : i32], data = [#llvm.zero]"),
    )
    return filled(SINCE_21.replace("CONSTRUCTORS", old if llvm < 21 else new), inserted)


def filled(text: str, inserted: dict[str, str]) -> str:
    for blank in BLANKS:
        text = text.replace(f"  {blank}\n", f"  {inserted.get(blank.lower(), '')}\n")
    return text


MOVED = [
    "launch: moved a stream",
    "launch: moved the load of @image",
    "launch: moved the look-up of f",
]


@pytest.mark.parametrize("llvm", RELEASES)
def test_a_launch_of_llvm_20_is_hoisted(llvm: int) -> None:
    hoisted = hoist(before_21(), llvm)
    assert hoisted.said == MOVED
    for left_over in ("@image", "@name"):
        assert left_over not in launch(hoisted)


def launch(hoisted: Hoisted) -> str:
    """Returns the body of the lowered function `launch`."""
    return hoisted.program.decode().partition("@launch(")[2].partition("\n  }")[0]


@pytest.mark.parametrize("llvm", RELEASES)
def test_a_launch_of_llvm_21_is_hoisted(llvm: int) -> None:
    hoisted = hoist(since_21(llvm), llvm)
    assert "llvm.load" not in launch(hoisted)
    assert hoisted.said == [
        "launch: moved the look-up of f",
        "load: left the load of @image: it is done once already, before main",
    ]


# ---- streams -------------------------------------------------------------------------------------

IN_BRANCHES = "llvm.br ^next\n  ^next:"
NO_DESTROY = "llvm.call @mgpuStreamDestroy(%stream) : (!llvm.ptr) -> ()"
WAIT = "llvm.call @mgpuStreamSynchronize(%stream) : (!llvm.ptr) -> ()"
ALLOCATE = "%a = llvm.call @mgpuMemAlloc(%one, %stream, %b) : (i64, !llvm.ptr, i8) -> !llvm.ptr"
BYTE = "%b = llvm.mlir.constant(0 : i8) : i8\n"


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        (before_21(stream=CALL_ELSEWHERE.format("%stream")), "it goes to elsewhere"),
        (
            before_21(stream="llvm.store %stream, %place : !llvm.ptr, !llvm.ptr"),
            "it goes to llvm.store",
        ),
        # LLVM 22 and older pass a stream in place of an event.
        (
            before_21(done="llvm.call @mgpuEventSynchronize(%stream) : (!llvm.ptr) -> ()"),
            "it goes to mgpuEventSynchronize",
        ),
        # The program passes the stream twice to mgpuLaunchKernel, the second time in place of a
        # null pointer.
        (
            before_21().replace("%stream,\n        %null", "%stream,\n        %stream"),
            "it goes to mgpuLaunchKernel",
        ),
        (before_21().replace(NO_DESTROY, ""), "it is not destroyed here"),
        (before_21().replace(WAIT, ""), "it is destroyed without a wait just before"),
        (before_21(done=BYTE + ALLOCATE), "it is destroyed without a wait just before"),
        (before_21(done=IN_BRANCHES), "it is destroyed without a wait just before"),
    ],
)
def test_a_stream_is_left(program: str, reason: str) -> None:
    said = hoist(program, 22).said
    assert said == [*MOVED[1:], f"launch: left a stream: {reason}"]


def test_a_stream_that_is_destroyed_on_each_of_two_ways_is_moved() -> None:
    ways = f"""%yes = llvm.icmp "eq" %number, %one : i64
    llvm.cond_br %yes, ^left, ^right
  ^left:
    {WAIT}
    {NO_DESTROY}
    llvm.return
  ^right:
    {WAIT}"""
    hoisted = hoist(before_21(done=ways), 22)
    assert MOVED[0] in hoisted.said
    assert hoisted.program.count(b"call @mgpu_rt_hoisted_stream_give(") == 2


# ---- modules that are loaded for each launch -----------------------------------------------------

WRITABLE = PTX.replace(".visible", ".global .b32 counter;\\0A.visible")
WITHOUT_END = before_21().replace(f'{PTX}\\00"', f'{PTX}"')


THE_LOAD = "the load of @image: "
NO_CONSTANT = "a load: its image is no constant of this program"
OTHER_LOOK_UP = f"{THE_LOAD}its module goes to mgpuModuleGetFunction"


@pytest.mark.parametrize(
    ("program", "words"),
    [
        (
            before_21(module=CALL_ELSEWHERE.format("%module")),
            f"{THE_LOAD}its module goes to elsewhere",
        ),
        (before_21().replace("%module, %name)", "%module, %pointer)"), OTHER_LOOK_UP),
        (before_21().replace("%module, %name)", "%module, %module)"), OTHER_LOOK_UP),
        (before_21().replace("%image, %one", "%pointer, %one"), NO_CONSTANT),
        (before_21().replace("internal constant @image", "internal @image"), NO_CONSTANT),
        # The linker may replace the definition of a weak symbol.
        (before_21().replace("internal constant @image", "weak constant @image"), NO_CONSTANT),
        (
            before_21().replace("%image, %one", "%image, %number"),
            f"{THE_LOAD}its size is no constant",
        ),
        (
            before_21().replace(PTX, WRITABLE),
            f"{THE_LOAD}kernels or the host can write to its globals, which each load resets",
        ),
        (WITHOUT_END, f"{THE_LOAD}it does not contain its own size"),
    ],
)
def test_a_load_is_left(program: str, words: str) -> None:
    said = hoist(program, 22).said
    assert said[:2] == [MOVED[0], f"launch: left {words}"]
    assert said[2].startswith(("launch: left a look-up", "launch: left the look-up"))


def test_a_load_that_compiles_is_moved_too() -> None:
    program = before_21().replace(
        "@mgpuModuleLoad(%image, %one) : (!llvm.ptr, i64)",
        "@mgpuModuleLoadJIT(%image, %small, %one) : (!llvm.ptr, i32, i64)",
    )
    hoisted = hoist(program, 22)
    assert hoisted.said == MOVED
    assert hoisted.program.count(b"call @mgpuModuleLoadJIT") == 1


@pytest.mark.parametrize("declared", ["", "llvm.func @atexit(!llvm.ptr) -> i32"])
def test_functions_that_the_added_text_calls_are_declared_once(declared: str) -> None:
    """A program that never unloads a module does not declare the unload function."""
    program = before_21(top=declared)
    for line in (
        "llvm.func @mgpuModuleUnload(!llvm.ptr)\n",
        "llvm.call @mgpuModuleUnload(%module) : (!llvm.ptr) -> ()\n",
    ):
        assert line in program
        program = program.replace(line, "\n")
    hoisted = hoist(program, 22)
    assert hoisted.said == MOVED
    for name in (b"mgpuModuleUnload", b"atexit", b"getpid"):
        assert hoisted.program.count(b"llvm.func @" + name) == 1


# ---- modules that are loaded before main ---------------------------------------------------------

NO_VARIABLE = "its module is not one for all launches"


@pytest.mark.parametrize(
    "inserted",
    [
        {"body": "llvm.store %pointer, %place : !llvm.ptr, !llvm.ptr"},
        {"body": "llvm.store %place, %pointer : !llvm.ptr, !llvm.ptr"},
        {"constructor": "llvm.store %place, %image : !llvm.ptr, !llvm.ptr"},
        {"body": CALL_ELSEWHERE.format("%place")},
        # The program calls the constructor as an ordinary function.
        {"body": "llvm.call @load() : () -> ()"},
        # A global variable, `other`, contains the address of `place`.
        {
            "top": "llvm.mlir.global external @other() : !llvm.ptr {\n"
            "%0 = llvm.mlir.addressof @place : !llvm.ptr\n llvm.return %0 : !llvm.ptr }"
        },
    ],
)
def test_a_look_up_is_left(inserted: dict[str, str]) -> None:
    said = hoist(since_21(22, **inserted), 22).said
    assert f"launch: left the look-up of f: {NO_VARIABLE}" in said


@pytest.mark.parametrize("name", ["place", "load"])
def test_a_look_up_is_left_where_others_may_change_the_module(name: str) -> None:
    program = since_21(22).replace(f"internal @{name}", f"external @{name}")
    assert f"launch: left the look-up of f: {NO_VARIABLE}" in hoist(program, 22).said


def test_calls_in_an_unknown_form_are_left() -> None:
    program = """
    llvm.func @mgpuModuleLoad() -> !llvm.ptr
    llvm.func @mgpuModuleGetFunction() -> !llvm.ptr
    llvm.func @mgpuStreamCreate(i32) -> !llvm.ptr
    llvm.func @f() {
      %flags = llvm.mlir.constant(1 : i32) : i32
      %module = llvm.call @mgpuModuleLoad() : () -> !llvm.ptr
      %function = llvm.call @mgpuModuleGetFunction() : () -> !llvm.ptr
      %stream = llvm.call @mgpuStreamCreate(%flags) : (i32) -> !llvm.ptr
      llvm.return
    }"""
    assert hoist(program, 22).said == [
        "nothing was moved",
        "f: left a stream: it is created in an unknown form",
        "f: left a load: it is called in an unknown form",
        "f: left a look-up: its name is no constant",
    ]


def test_a_look_up_of_a_computed_name_is_left() -> None:
    program = since_21(22).replace("%module, %name)", "%module, %pointer)")
    assert "launch: left a look-up: its name is no constant" in hoist(program, 22).said


# ---- whole programs ------------------------------------------------------------------------------

NOTHING = [
    ("module {}", "nothing was moved: it has no GPU calls"),
    (
        before_21(stream="llvm.call @mgpuSetDefaultDevice(%small) : (i32) -> ()"),
        "nothing was moved: it calls mgpuSetDefaultDevice, and what is kept belongs to one device",
    ),
    (
        before_21().replace(
            "llvm.func @mgpuStreamDestroy(!llvm.ptr)",
            "llvm.func @mgpuStreamDestroy(%s: !llvm.ptr) { llvm.return }",
        ),
        "nothing was moved: it defines mgpuStreamDestroy itself",
    ),
]


@pytest.mark.parametrize("llvm", RELEASES)
@pytest.mark.parametrize(("program", "reason"), NOTHING)
def test_nothing_is_moved(program: str, reason: str, llvm: int) -> None:
    hoisted = hoist(program, llvm)
    assert hoisted.said == [reason]
    assert hoisted.program == program.encode()


def test_another_use_than_a_call_is_named() -> None:
    said = hoist(
        before_21(
            stream="%f = llvm.mlir.addressof @mgpuStreamCreate : !llvm.ptr\n"
            + CALL_ELSEWHERE.format("%f")
        ),
        22,
    ).said
    assert "launch: left mgpuStreamCreate: it is used by llvm.mlir.addressof" in said


def test_a_hoisted_program_that_was_changed_is_refused() -> None:
    once = hoist(before_21(), 22).program.decode()
    more = before_21().replace("@launch", "@launch_more")
    body = more[more.index("llvm.func @launch_more") : more.rindex("}")]
    with pytest.raises(Refused, match="the program was hoisted before and changed since"):
        hoist(once[: once.rindex("}")] + body + "}", 22)


def test_the_text_is_the_same_each_time() -> None:
    assert len({hoist.__wrapped__(before_21(), 19).program for _ in range(3)}) == 1


def test_the_target_of_the_program_stays() -> None:
    target = 'llvm.data_layout = "e-m:e-i64:64-S128", llvm.target_triple = "x86_64-linux"'
    hoisted = hoist(before_21().replace("module {", f"module attributes {{{target}}} {{"), 22)
    assert target in hoisted.program.decode()
    assert hoisted.said == MOVED


def test_names_in_quotes_and_strings_that_look_like_code() -> None:
    """A string is neither a call nor a reference, even if its text resembles one."""
    program = before_21(
        top='llvm.mlir.global internal constant @"a \\"b\\" c"("@place callee = @mgpuStreamCreate")'
    ).replace("@launch", '@"the launch"')
    assert hoist(program, 22).said == [said.replace("launch:", "the launch:") for said in MOVED]
