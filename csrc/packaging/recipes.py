"""Fills in the recipes with which conda and Spack install the archive in dist.

The command is `make dist recipes`.
"""

from __future__ import annotations

import hashlib
import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]

#: The template of each recipe, and the path at which conda or Spack expects the recipe.
RECIPES = {
    "conda.yaml.in": "conda/recipe.yaml",
    "spack.py.in": "spack/packages/py_mgpu_rt/package.py",
}


def home(version: str) -> dict[str, str]:
    """Returns the project's addresses, without the addresses that do not exist yet."""
    lines = (HERE / "home.txt").read_text(encoding="utf-8").splitlines()
    given = dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))
    plain = {
        name.strip(): text.strip().replace("@VERSION@", version) for name, text in given.items()
    }
    return {name: text for name, text in plain.items() if text}


def field(file: str, name: str) -> str:
    """Returns the text that a file assigns to a name."""
    text = (ROOT / file).read_text(encoding="utf-8")
    found = re.search(rf'^{name} = "(.*)"$', text, re.MULTILINE)
    assert found, f"{file} has no {name}"
    return found[1]


def values(archive: Path) -> dict[str, str]:
    """Returns the text that replaces each @NAME@. Without the project's home page, the addresses
    point to files of this machine."""
    version = field("mgpu_rt/__init__.py", "__version__")
    addresses = home(version)
    return {
        "VERSION": version,
        "SUMMARY": field("pyproject.toml", "description"),
        "HOME": addresses.get("Homepage", archive.parent.as_uri()),
        "ARCHIVE": addresses.get("Archive", archive.as_uri()),
        "SHA256": hashlib.sha256(archive.read_bytes()).hexdigest(),
    }


def main() -> None:
    """Writes the recipes into the folder `recipes`, next to the archive that the argument names."""
    archive = Path(sys.argv[1]).resolve()
    known = values(archive)
    for template, place in RECIPES.items():
        text = (HERE / template).read_text(encoding="utf-8")
        out = archive.parent / "recipes" / place
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(
            re.sub(r"@([A-Z0-9]+)@", lambda name: known[name[1]], text), encoding="utf-8"
        )
        print(out)


if __name__ == "__main__":
    main()
