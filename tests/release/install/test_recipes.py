"""The recipes for package registries list the packages that mgpu_rt needs. All addresses in the
recipes exist."""

from __future__ import annotations

import ast
import hashlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.child import ROOT

PACKAGING = ROOT / "csrc" / "packaging"
PYPROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
_NEED = re.compile(r'"([\w-]+)>=([\d.]+)"')


def needs(key: str) -> dict[str, str]:
    """Returns the packages in a list of pyproject.toml, with the lowest version of each package."""
    found = re.search(rf"^{key} = \[(.*?)\]", PYPROJECT, re.MULTILINE | re.DOTALL)
    assert found, key
    return dict(_NEED.findall(found[1]))


@pytest.fixture(scope="module")
def recipes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    archive = tmp_path_factory.mktemp("dist") / "mgpu_rt-0.1.0.tar.gz"
    archive.write_bytes(b"an archive")
    subprocess.run([sys.executable, PACKAGING / "recipes.py", archive], check=True)
    return archive.parent / "recipes"


@pytest.fixture(scope="module")
def conda(recipes: Path) -> str:
    return (recipes / "conda/recipe.yaml").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def spack(recipes: Path) -> str:
    return (recipes / "spack/packages/py_mgpu_rt/package.py").read_text(encoding="utf-8")


def test_nothing_is_left_to_fill(conda: str, spack: str) -> None:
    for text in (conda, spack):
        assert not re.search(r"@[A-Z]+@", text)
        assert hashlib.sha256(b"an archive").hexdigest() in text
        assert set(re.findall(r"\w+://", text)) <= {"file://"}  # the project has no home yet


def test_conda_asks_for_what_the_package_needs(conda: str) -> None:
    wanted = {**needs("dependencies"), **needs("requires")}
    names = {"msgpack": "msgpack-python"}
    for name, version in wanted.items():
        assert f"- {names.get(name, name)} >={version}\n" in conda


def test_spack_asks_for_what_the_package_needs(spack: str) -> None:
    ast.parse(spack)
    for name, version in {**needs("dependencies"), **needs("requires")}.items():
        found = re.search(rf'depends_on\("py-{name}@([\d.]+):"', spack)
        assert found and version in (found[1], f"{found[1]}.0"), name


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
    given = re.findall(r"^Project-URL: .*$", done.stdout, re.MULTILINE)
    home = (PACKAGING / "home.txt").read_text(encoding="utf-8")
    assert len(given) == len(re.findall(r"^(?!Archive|#).*= *\S", home, re.MULTILINE))
    assert "Classifier: Typing :: Typed" in done.stdout
