"""Kernels with one name in several images get names that distinguish them."""

from __future__ import annotations

import pytest

from mgpu_rt._images import find, kernel_names
from tests.support import lower
from tests.support.sources import SOURCES


@pytest.mark.parametrize("llvm", [22, 19])
def test_the_module_is_named_by_the_constant_that_holds_it(llvm: int) -> None:
    program = lower.lower(SOURCES["samename"], llvm=llvm)
    images = find.contents(program.read_bytes(), "the program").images
    assert [image.module for image in images] == ["first", "second"]
    assert list(kernel_names.shown(images).values()) == ["first::mark", "second::mark"]
    assert list(kernel_names.shown(images[:1]).values()) == ["mark"]


def test_each_ending_of_mlirs_constants_is_removed() -> None:
    assert kernel_names.module_of("main_kernel_0_binary") == "main_kernel_0"
    assert kernel_names.module_of("main_kernel_gpubin_cst") == "main_kernel"  # LLVM 17 and older
    assert kernel_names.module_of("main_kernel_bin_cst") == "main_kernel"
    assert kernel_names.module_of("table") == ""
    assert kernel_names.full_name("", "mark") == "mark"
