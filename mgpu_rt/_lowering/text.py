"""Reads MLIR's text: its string literals, the types of functions, and the device images of a
lowered program."""

from __future__ import annotations

import re

from mgpu_rt._functions.types import split
from mgpu_rt._images import elf
from mgpu_rt._lowering import steps, toolchain
from mgpu_rt._lowering.steps import Step

_ESCAPE = re.compile(rb"\\([0-9A-Fa-f]{2}|.)", re.DOTALL)


def unescape(text: str) -> bytes:
    """Returns the bytes of a string literal. A backslash precedes two hexadecimal digits, or one
    character that stands for itself."""

    def replace(match: re.Match[bytes]) -> bytes:
        code = match.group(1)
        return bytes([int(code, 16)]) if len(code) == 2 else code

    return _ESCAPE.sub(replace, text.encode())


_LITERAL = r'"(?:[^"\\\n]|\\.)*"'
#: A comment, a literal that is a name (the group), or another literal.
_NO_CODE = re.compile(rf"//[^\n]*|(@{_LITERAL}|{_LITERAL}\s*\()|{_LITERAL}")


def code(text: str) -> str:
    """Returns a program without its comments and string literals. Literals that are names stay: of
    symbols (`@"f"`), and of operations in the generic form (`"gpu.alloc"(`)."""
    return _NO_CODE.sub(r"\1", text)


def line_of(text: str, match: re.Match[str]) -> str:
    """Returns the words for the line on which a match begins."""
    return f"line {text.count(chr(10), 0, match.start()) + 1}"


# ---- host functions ----

#: A function that has a body and is in no inner module.
_FUNCTION = re.compile(
    r'^  "func\.func"\(\) <\{(?P<properties>.*)\}> \(\{\n(?!  \}\))', re.MULTILINE
)
_NAME = re.compile(r'\bsym_name = "((?:[^"\\]|\\.)*)"')
_TYPE = re.compile(r"\bfunction_type = (.*)")


def function_types(text: str, llvm: int = 22) -> dict[str, str]:
    """Returns the type of each function that the program defines, by name. Runs mlir-opt of the
    release `llvm`. Raises ToolchainMissing or LoweringFailed."""
    command = [toolchain.tool("mlir-opt", llvm), "--mlir-print-op-generic"]
    command += ["--mlir-elide-elementsattrs-if-larger=1", "--mlir-print-local-scope"]
    printed = steps.run([Step(command)], text.encode()).decode()
    found = {}
    for match in _FUNCTION.finditer(printed):
        name, kind = _NAME.search(match["properties"]), _TYPE.search(match["properties"])
        if name and kind:
            found[unescape(name[1]).decode(errors="surrogateescape")] = split(kind[1])[0]
    return found


# ---- device images ----

_BINARY = re.compile(
    r'gpu\.binary @("[^"]*"|[\w.$-]+).*?\b(?:bin|assembly) = "((?:[^"\\]|\\.)*)"', re.DOTALL
)


def device_images(lowered: str) -> dict[str, bytes]:
    """Returns the images in a result of Pipeline.device_steps(), by the name of the gpu.module."""
    return {name.strip('"'): unescape(code) for name, code in _BINARY.findall(lowered)}


def only_image(lowered: str) -> bytes:
    """Returns the image in a result of Pipeline.device_steps(). Raises ValueError unless there is a
    single image."""
    images = device_images(lowered)
    if len(images) == 1:
        return next(iter(images.values()))
    if not images:
        raise ValueError("the program has no kernel: --emit image writes the image of kernels")
    raise ValueError(
        f"the program has {len(images)} images (gpu.module {', '.join(sorted(images))}): --emit "
        "image writes one, so keep one gpu.module"
    )


def without_undefined(text: bytes) -> bytes:
    """Returns the program unchanged. Raises ValueError if a code object calls a function that it
    does not define: the linker accepts it, but HIP loads no such image."""
    for module, image in device_images(text.decode()).items():
        if missing := elf.read(image).undefined:
            if "malloc" in missing:
                raise ValueError(
                    f"a kernel of gpu.module {module} has memref.alloc, and no GPU allocates in a "
                    "kernel: use memref.alloca, or a workgroup or private memref of the kernel"
                )
            names = ", ".join(sorted(name.removeprefix("_mlir_ciface_") for name in missing))
            raise ValueError(
                f"the kernels of gpu.module {module} call {names}, which no device library "
                "defines: define the function in the gpu.module. A call of libm comes from "
                "convert-math-to-libm: leave math operations of kernels to mgpu-rt lower"
            )
    return text
