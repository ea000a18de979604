"""Checks that the record names each of AMD's own tests that failed."""

from __future__ import annotations

import pytest

from softgpu.tests.amd.gtest import Suite, outcome
from softgpu.tests.amd.rocrand import SUITE as ROCRAND
from softgpu.tests.amd.rocrtst import SUITE as ROCRTST


@pytest.mark.parametrize("suite", (ROCRAND, ROCRTST), ids=lambda suite: suite.name)
def test_amds_own_tests_ended_as_expected(suite: Suite) -> None:
    results = suite.load()
    assert set(results) == set(suite.hips)
    assert [text for totals in results.values() for text in suite.unexpected(totals)] == []


def test_the_output_of_gtest_is_understood() -> None:
    said = """[ RUN      ] a.passes
[       OK ] a.passes (3 ms)
[ RUN      ] a.fails/1
test_a.cpp:37: Failure
Expected equality of these values:
  1
  2
[  FAILED  ] a.fails/1, where GetParam() = 100 (4 ms)
[ RUN      ] a.crashes
"""
    ended = outcome(said, -6, "softgpu: kernel k: what it did")
    assert (ended["passed"], ended["late"]) == (1, False)
    assert ended["failed"] == {
        "a.fails/1": "Expected equality of these values: 1 2",
        "a.crashes": "softgpu: kernel k: what it did",
    }
    late = outcome(said, None, "")
    assert (late["passed"], list(late["failed"]), late["late"]) == (1, ["a.fails/1"], True)
    assert outcome("", 0, "exit status 0")["failed"] == {"the program": "exit status 0"}
