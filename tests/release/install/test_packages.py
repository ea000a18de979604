"""The container image has the packages that it needs, and the package's metadata is true."""

from __future__ import annotations

import re
import subprocess
import sys

from tests.support.child import ROOT

PACKAGING = ROOT / "csrc" / "packaging"


def test_the_image_has_the_packages_that_the_page_names() -> None:
    page = (ROOT / "docs/ci.md").read_text(encoding="utf-8")
    line = re.search(r"^    apt-get install (.*)$", page, re.MULTILINE)
    assert line
    text = (PACKAGING / "Dockerfile").read_text(encoding="utf-8")
    assert set(line[1].split()) <= set(re.split(r"[\s\\]+", text))


def test_an_image_is_built_of_what_git_has() -> None:
    """The container image contains no object files of this machine, because make would consider the
    files up to date."""
    ignored = (ROOT / ".gitignore").read_text(encoding="utf-8").split()
    wanted = {f"**/{line}".replace("**//", "").rstrip("/") for line in ignored}
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert {line for line in lines if line[:1] != "#"} == wanted | {".git"}


def test_the_metadata_names_no_address_that_is_not_there() -> None:
    code = "import importlib.metadata as m; print(m.metadata('mgpu_rt').as_string())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "Project-URL" not in done.stdout  # the project has no address yet
    assert "Classifier: Typing :: Typed" in done.stdout
