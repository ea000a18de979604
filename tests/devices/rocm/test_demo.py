"""Runs `make demo` on the release that --rocm names. Without --rocm the test is skipped, because
`make test` has another test of the demo."""

from __future__ import annotations

import pytest

from bench import demo


def test_the_demo_runs_on_the_release(
    request: pytest.FixtureRequest, capfd: pytest.CaptureFixture[str]
) -> None:
    if not request.config.getoption("--rocm", None):
        pytest.skip("HIP 5.2.3 has `make demo` itself")
    status = demo.main()
    said = capfd.readouterr()
    assert status == 0, said.out + said.err
