"""The documents: generated parts are up to date, links lead to existing targets, commands run."""

from __future__ import annotations

import fnmatch
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

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


def test_tests_that_are_named_are_there() -> None:
    """The names are those of all tests and of their files."""
    defined: list[str] = []
    for path in (path for lot in LOTS for path in (ROOT / lot).rglob("test_*.py")):
        text = path.read_text(encoding="utf-8")
        defined += [path.stem, *re.findall(r"^def (test_\w+)", text, re.MULTILINE)]
    for document in DOCUMENTS:
        for name in re.findall(r"`(test_\w+\*?)`", document.read_text(encoding="utf-8")):
            assert fnmatch.filter(defined, name), (document, name)


# ---- links between pages ----


#: For each row of README.md: how it begins, and the speedups whose ranges it shows, in their order.
#: Each speedup is of a kind of results, a side, a pattern of MODEL/VARIANT or of programs, and
#: releases.
CLAIMS = {
    "LLVM 19 lowered": [
        "models mgpu_rt .*/(?!registered).* 19",
        "models lazy .*/(?!registered).* 19",
        "graphs graph .* 19",
    ],
    "LLVM 22 lowered": [
        "models mgpu_rt .*/(?!registered).* 22",
        "models lazy .*/(?!registered).* 22",
        "graphs graph .* 22",
    ],
    "LLVM 19, and each": ["models mgpu_rt .*/registered 19", "models lazy .*/registered 19"],
    "LLVM 22, and each": ["models mgpu_rt .*/registered 22", "models lazy .*/registered 22"],
    "works": ["models mgpu_rt .*/(waits|shared)", "models lazy .*/(waits|shared)"],
    "submits": ["models mgpu_rt .*/chain 22", "graphs graph .*/chain 22"],
    "allocates": ["programs mgpu_rt grow|ragged", "models mgpu_rt decode/.*"],
    "forks and joins two": ["programs mgpu_rt forkjoin"],
    "forks and joins without": ["programs mgpu_rt forkjoin-nowait"],
    "registers": ["models mgpu_rt .*/registered", "models lazy .*/registered"],
    "runs": ["processes mgpu_rt churn.*|ragged.*"],
}


def gains(kind: str, side: str, pattern: str, *llvms: str) -> list[float]:
    """Returns the speedups of a side compared with LLVM's own library, for each variant of a model
    or each program whose name fits."""
    results = json.loads((ROOT / _shown(kind)).read_text(encoding="utf-8"))
    rows = [row for row in results["benchmarks"][f"{kind}-cuda"]["data"] if "us" in row]
    taken = {
        (name, row["llvm"], row["side"]): row["us"]
        for name, row in zip(map(_name, rows), rows, strict=True)
        if name
    }
    return [
        taken[name, llvm, "llvm"] / us
        for (name, llvm, of), us in taken.items()
        if of == side and re.fullmatch(pattern, name) and str(llvm) in (llvms or ("19", "22"))
    ]


def _name(row: dict[str, Any]) -> str | None:
    """Returns the name of a row's program or model, with its variant; None if the variant has no
    name."""
    name = row.get("model", row.get("program"))
    if "variant" not in row:
        return name
    return f"{name}/{row['variant']}" if row["variant"] else None


def _factor(gain: float) -> str:
    return f"{gain:.1f}" if gain >= 1 else f"{gain:.2f}"


@pytest.mark.parametrize("row", CLAIMS)
def test_the_readmes_gains_are_those_of_one_run(row: str) -> None:
    """README.md shows the least and the largest ratio over models, variants and programs."""
    assert _shown("models") == _shown("graphs") == _shown("programs")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (line,) = re.findall(rf"^\| {row}.*", readme, re.MULTILINE)
    ranges = []
    for claim in CLAIMS[row]:
        found = [gain for part in claim.split(" + ") for gain in gains(*part.split())]
        ranges.append(f"{_factor(min(found))} to {_factor(max(found))}")
    assert re.findall(r"[\d.]+ to [\d.]+", line) == ranges


def _shown(kind: str) -> str:
    """Returns the results that figures.md shows."""
    figures = (ROOT / "docs" / "record" / "figures.md").read_text(encoding="utf-8")
    (name,) = re.findall(rf"<!-- table {kind} (\S+) cuda -->", figures)
    return name


def test_the_missed_targets_are_those_of_the_results() -> None:
    """figures.md names each missed target of the models and the graphs, with the paired ratio."""
    page = (ROOT / "docs" / "record" / "figures.md").read_text(encoding="utf-8")
    for kind, of in (("models", "{what}[^|]*\\| {target:g} \\| {value:.3g} \\|"), ("graphs", "")):
        results = json.loads((ROOT / _shown(kind)).read_text(encoding="utf-8"))
        targets, missed = 0, 0
        for figure in results["benchmarks"][f"{kind}-cuda"]["figures"]:
            value, least, most = (figure.get(key) for key in ("value", "at_least", "at_most"))
            targets += least is not None or most is not None
            if (least is None or value >= least) and (most is None or value <= most):
                continue
            missed += 1
            what, target = figure["name"].partition(", LLVM's own")[0], least or most
            row = of or r"{value:.3g}\d* times[^.(]*\(target {target:g}"
            pattern = row.format(what=what, target=target, value=value)
            assert re.search(pattern, page), (figure, pattern)
        assert kind == "models" or f"We met {targets - missed} of the {targets} targets" in page


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
