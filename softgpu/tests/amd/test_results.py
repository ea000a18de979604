"""Checks that the record names each of AMD's own tests that failed."""

from __future__ import annotations

from softgpu.tests.amd import rocrand, rocrtst


def test_amds_own_tests_ended_as_expected() -> None:
    outcomes = rocrtst.load()
    assert rocrtst.unexpected(outcomes) == []
    assert set(rocrtst.EXPECTED) <= set(outcomes)


def test_no_test_of_rocrand_failed() -> None:
    results = rocrand.load()
    assert rocrand.failures(results) == []
    assert set(results) == set(rocrand.HIPS)


def test_the_output_of_rocrand_is_understood() -> None:
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
    ended = rocrand.outcome(said, -6, "softgpu: kernel k: what it did")
    assert (ended["passed"], ended["late"]) == (1, False)
    assert ended["failed"] == {
        "a.fails/1": "Expected equality of these values: 1 2",
        "a.crashes": "softgpu: kernel k: what it did",
    }
    late = rocrand.outcome(said, None, "")
    assert (late["passed"], list(late["failed"]), late["late"]) == (1, ["a.fails/1"], True)
