"""The documents: generated parts are up to date, links lead to existing targets, commands run."""

from __future__ import annotations

import fnmatch
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from mgpu_rt._cli import softgpu
from tests.release.docs.generated import PAGES
from tests.support import lower
from tests.support.child import ROOT
from tests.support.command import COMMAND
from tests.support.sources import SOURCES

LISTED = subprocess.run(
    ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
    cwd=ROOT,
    capture_output=True,
    text=True,
    check=True,
).stdout
DOCUMENTS = [ROOT / name for name in LISTED.splitlines() if (ROOT / name).is_file()]
LOTS = ("tests", "softgpu")  # these have tests
NAMES = [str(path.relative_to(ROOT)) for path in DOCUMENTS]


@pytest.mark.parametrize("place", PAGES)
def test_generated_pages_are_up_to_date(place: str) -> None:
    assert (ROOT / place).read_text(encoding="utf-8") == PAGES[place](), (
        "run: python -m tests.release.docs"
    )


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 120


# ---- links ----


def without_code(text: str) -> str:
    return re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.DOTALL)


def anchors(path: Path) -> set[str]:
    """Returns the anchors that GitHub gives the headings of a page."""
    headings = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    plain = (re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings)
    return set(plain)


def test_links_lead_somewhere() -> None:
    for document in DOCUMENTS:
        text = without_code(document.read_text(encoding="utf-8"))
        for link in re.findall(r"\]\(\s*([^)\s]+)\s*\)", text):
            if link.startswith(("http://", "https://", "mailto:")):
                continue
            place, _, anchor = link.partition("#")
            target = (document.parent / place).resolve() if place else document
            assert target.exists(), (document, link)
            assert not anchor or anchor in anchors(target), (document, link)


# ---- names ----

#: Returns a file or a folder of this checkout.
NAMED = re.compile(r"(?<![\w./-])(?:bench|csrc|docs|examples|softgpu|tests)/[\w./*-]*[\w*]")


def test_files_that_are_named_are_there() -> None:
    for document in DOCUMENTS:
        for name in NAMED.findall(document.read_text(encoding="utf-8")):
            assert any(ROOT.glob(name)), (document, name)


@pytest.mark.parametrize("part", ["tests", "csrc/runtime", "softgpu"])
def test_a_readme_names_each_folder_beside_it(part: str) -> None:
    files = subprocess.run(
        ["git", "ls-files", part], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    below = {Path(file).relative_to(part).parts for file in files}
    readme = (ROOT / part / "README.md").read_text(encoding="utf-8")
    assert [parts[0] for parts in below if len(parts) > 1 and f"`{parts[0]}/`" not in readme] == []


@pytest.mark.parametrize("group", ["runtime", "python", "proofs", "devices"])
def test_the_tests_readme_names_each_folder_of_a_group(group: str) -> None:
    readme = (ROOT / "tests" / "README.md").read_text(encoding="utf-8")
    folders = [init.parent.name for init in (ROOT / "tests" / group).glob("*/__init__.py")]
    assert [name for name in folders if f"`{name}/`" not in readme] == []


#: Matches a table of what a user sees; the group contains the rows.
SYMPTOMS = re.compile(r"^\| you see \|.*\n\|.*\n((?:\|.*\n)+)", re.MULTILINE)
#: The starts of messages of pytest, ROCr and HIP.
OF_OTHERS = ("unrecognized arguments", "Memory access", "Resource leak", "hipError", "'hipModule")
#: Matches the parts of a message that vary: names, numbers, lists.
VARIES = re.compile(r"'[^']*'|gfx\w+|\d+|\.\.\.")


def test_messages_that_are_explained_are_printed() -> None:
    files = [path for lot in ("csrc", "mgpu_rt") for path in (ROOT / lot).rglob("*.[cp]*")]
    texts = [path.read_text(encoding="utf-8") for path in files if path.suffix in (".c", ".py")]
    printed = re.sub(r'"\s*f?"', "", "\n".join(texts))  # joins the parts of a string
    seen = [
        message
        for document in DOCUMENTS
        for rows in SYMPTOMS.findall(document.read_text(encoding="utf-8"))
        for row in rows.splitlines()
        for message in re.findall(r"`([^`]+)`", row.split(" | ")[0])
        if not message.startswith(OF_OTHERS)
    ]
    parts = {part.strip(): message for message in seen for part in VARIES.split(message)}
    assert {part: message for part, message in parts.items() if part not in printed} == {}
    assert len(seen) >= 8


def test_tests_that_are_named_are_there() -> None:
    """The names are those of all tests and of their files."""
    defined: list[str] = []
    for path in (path for lot in LOTS for path in (ROOT / lot).rglob("test_*.py")):
        text = path.read_text(encoding="utf-8")
        defined += [path.stem, *re.findall(r"^def (test_\w+)", text, re.MULTILINE)]
    for document in DOCUMENTS:
        for name in re.findall(r"`(test_\w+\*?)`", document.read_text(encoding="utf-8")):
            assert fnmatch.filter(defined, name), (document, name)


# ---- the index ----


def test_the_index_says_of_every_page_what_it_is_for() -> None:
    """Each page has its own row in the index, so that the index leads to every page."""
    index = ROOT / "docs" / "index.md"
    rows = re.findall(
        r"^\| \[[^]]+\]\(([^)]+)\) \| .{9,} \|$", index.read_text("utf-8"), re.MULTILINE
    )
    found = [(index.parent / link).resolve() for link in rows]
    pages = {path for path in DOCUMENTS if index.parent in path.parents} - {index}
    assert pages <= set(found)
    assert len(found) == len(set(found))


# ---- commands ----

#: Matches a line of a code block that is a command; excludes the comment after the command.
COMMAND_LINE = re.compile(
    r"^    ((?:mgpu-rt(?!:)|make|cc|pip|pkg-config|cmake|mlir-runner|LD_PRELOAD=|\.venv/bin/)"
    r"(?:[^\n#]|(?<=\S)#)*?)\s*(?:\s# .*)?$",
    re.MULTILINE,
)

#: Maps each command that cannot run here unchanged to the tests that cover the command, such as the
#: GPU suite.
ELSEWHERE = {
    'cc program.o -L"$RUNTIME" -Wl,-rpath,"$RUNTIME" -lmlir_rocm_runtime -o program': (
        "tests/python/hoist"
    ),
    "mgpu-rt hoist --llvm 22 lowered.mlir -o hoisted.mlir": "tests/python/hoist",
    "mgpu-rt run --device cuda -- ./program": "tests/devices/gpu",
    "mgpu-rt run --device softgpu -- mlir-runner-22 product.llvm.mlir $OPTIONS": (
        "tests/runtime/sparse"
    ),
    "mgpu-rt run --device cuda -- PROGRAM": "tests/devices/gpu",
    "mgpu-rt doctor --device cuda": "tests/devices/cuhip",
    "pip install .": "tests/release/install",
    "pip install /path/to/mgpu_rt pytest numpy": "tests/release/install/test_ci.py",
    "pip install mgpu_rt-0.1.0-cp310-abi3-manylinux_2_28_x86_64.whl": "tests/release/install",
    "cmake -B build -Dmgpu_rt_DIR=$(mgpu-rt config --cmakedir)": "tests/release/install",
    "mgpu-rt selftest --json selftest.json": "tests/python/selftest",
    "mgpu-rt selftest --json first.json": "tests/python/selftest",
    "mgpu-rt selftest --json second.json": "tests/python/selftest",
    "mgpu-rt selftest --harsh --json harsh.json": "tests/python/selftest",
    "mgpu-rt check -- mgpu-rt replay recording": "tests/python/cli/check",
    "mgpu-rt run --device gfx942 -- ./steps": "tests/devices/rocm",
    "mgpu-rt check --device gfx942 -- ./steps": "tests/devices/rocm",
}


def commands() -> Iterator[tuple[str, str]]:
    for document, name in zip(DOCUMENTS, NAMES, strict=True):
        if name.startswith(("docs/", "README", "CONTRIBUTING", "csrc/", "softgpu/")):
            for line in COMMAND_LINE.findall(document.read_text(encoding="utf-8")):
                yield name, line


#: A page for each command: a command that several pages show runs once.
SHOWN = sorted({line: name for name, line in commands()}.items())


#: A program that ends by _exit, so that exit handlers do not run.
CUT_OFF = b"int main(void) { mgpuStreamSynchronize(0); _exit(0); }"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Creates a folder with the files that the documents name. The folder contains a program, its
    object file, its form in LLVM's dialect, and the statistics and traces of two runs."""
    directory = tmp_path_factory.mktemp("documents")
    forum = SOURCES["forum"]
    shutil.copy(forum, directory / "program.mlir")
    shutil.copy(lower.lower(forum, llvm=22, iterations=3), directory / "program.o")
    shutil.copy(lower.lower_to_llvm_dialect(forum, 22, iterations=3), directory / "x.mlir")
    shutil.copy(ROOT / "examples" / "c" / "version.c", directory)
    (directory / ".venv").symlink_to(ROOT / ".venv")
    (directory / "build").symlink_to(ROOT / "build")
    (directory / "examples").symlink_to(ROOT / "examples")
    here = {"cwd": directory, "env": surroundings(directory), "check": True}
    subprocess.run(["sh", "-c", "cc program.o $(mgpu-rt config --libs) -o program"], **here)
    subprocess.run(
        ["sh", "-c", "cc -w -xc - $(mgpu-rt config --libs) -o cut"], input=CUT_OFF, **here
    )
    run = "mgpu-rt run --stats-json s.json -- ./cut; MGPU_RT_TRACE=rec ./cut"
    subprocess.run(["sh", "-c", run], **here)
    for name in ("before", "after"):
        outputs = f"--stats-json {name}.json --trace {name}-trace.json"
        run = f"mgpu-rt run {outputs} -- ./program; test -s {name}.json -a -s {name}-trace.json"
        subprocess.run(["sh", "-c", run], **here)
    return directory


def surroundings(directory: Path) -> dict[str, str]:
    """Returns an environment whose PATH contains the command, and in which programs run on the
    emulated device."""
    env = {**os.environ, **softgpu.environment()}
    env["PATH"] = f"{COMMAND.parent}:{os.environ['PATH']}"
    return env


@pytest.mark.check
@pytest.mark.parametrize(("line", "name"), [shown for shown in SHOWN if shown[0] not in ELSEWHERE])
def test_a_command_runs(name: str, line: str, place: Path) -> None:
    """The command runs as the page shows it; for make, the test only lists the commands."""
    line = line.replace("...", "-e main --entry-point-result=void")
    if line.startswith("make"):
        words = ["make", "-n", *line.split()[1:]]
        result = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    else:
        result = subprocess.run(
            ["sh", "-c", line], cwd=place, env=surroundings(place), capture_output=True, text=True
        )
    # MLIR's main returns no value, so the exit status of ./program is arbitrary, even 127.
    of_command = () if "./program" in line else range(1, 256)
    assert result.returncode >= 0 and result.returncode not in of_command, result.stderr
    assert not re.search("failed with|not found|denied|^[Uu]sage:", result.stderr)


def test_commands_tested_elsewhere_are_shown_and_exist() -> None:
    assert set(ELSEWHERE) <= {line for line, _ in SHOWN}
    assert all((ROOT / test).exists() for test in ELSEWHERE.values())
