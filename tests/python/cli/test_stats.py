"""Tests `mgpu-rt stats` and `mgpu-rt compare` with a lowered program on the emulated device."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from mgpu_rt._cli.stats import runs as runs_of
from mgpu_rt._cli.stats.runs import Run
from mgpu_rt._cli.stats.statistics import (
    Cache,
    Graphs,
    Statistics,
    added,
)
from tests.python.cli.test_report import hostile
from tests.runtime.driver import test_word
from tests.support import known, recorded
from tests.support.child import STUB, library
from tests.support.command import command, invoke
from tests.support.compiled import compile_c
from tests.support.programs import STOCK, build

LAUNCHES = 20
ON_SOFTGPU = {"MGPU_RT_HIP": ""}


@pytest.fixture(scope="module")
def forum() -> Path:
    """Builds the forum's program in the form that LLVM 19 generates, and links the program with the
    plain runtime."""
    return build("forum", 19, LAUNCHES, STOCK)


def run(program: Path, path: Path, **env: str) -> str:
    """Runs a program that writes a statistics file; returns the program's remaining output."""
    words = ("run", "--device", "softgpu", "--stats", "--stats-json", path, "--", program)
    result = command(*words, **ON_SOFTGPU, **env)
    assert result.returncode >= 0, result.stderr
    return result.stderr


@pytest.fixture(scope="module")
def files(forum: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Returns the statistics of two runs: with stock's behaviour, and with the caches."""
    folder = tmp_path_factory.mktemp("stats")
    run(forum, folder / "stock.json", MGPU_RT_CACHE="off")
    run(forum, folder / "ours.json")
    return folder / "stock.json", folder / "ours.json"


# ---- stats ----


#: Writes the recording of a process that counts no calls.
RECORDS_ITSELF = """
#include "program.h"
void *mgpu_rt_record(size_t *bytes);
int main(int argc, char **argv) {
    size_t bytes;
    mgpuMemFree(mgpuMemAlloc(64, NULL, 0), NULL);
    FILE *file = fopen(argv[argc - 1], "w");
    void *recording = mgpu_rt_record(&bytes);
    return fwrite(recording, 1, bytes, file) != bytes || fclose(file);
}
"""


def test_a_recording_without_counted_calls_is_shown(tmp_path: Path) -> None:
    file = tmp_path / "recording"
    assert known.run_program(known.program(tmp_path, RECORDS_ITSELF), file).returncode == 0
    lines = invoke("stats", str(file)).stdout.splitlines()
    assert ["memory", "–", "1", "–", "–", "0"] in [line.split() for line in lines]


#: Calls the library, and then HIP itself, which the stub reports to the library. With two words, an
#: override answers the library's calls.
CALLS_HIP = """
#include "program.h"
int hipMalloc(void **memory, size_t bytes);
void (*mgpu_rt_native(const char *name))(void);
int mgpu_rt_intercept(const char *name, void (*instead)(void));
int main(int count, char **words) {
    (void)words;
    void *memory;
    if (count > 2)
        mgpu_rt_intercept("mgpuStreamCreate", mgpu_rt_native("mgpuStreamCreate"));
    mgpuStreamDestroy(mgpuStreamCreate());
    return count == 2 ? hipMalloc(&memory, 64) : 0;
}
"""


TELLS = {"HIPSTUB_TELLS": "1", "HIPSTUB_VERSION": "70253211"}
#: Options of `run`, the program's words, and what the statistics say.
FIRST_CALLS: dict[str, tuple[tuple[str, ...], tuple[str, ...], str]] = {
    "none": ((), (), "none"),
    "one": ((), ("hip",), "hipMalloc was the first"),
    "exclusive": (("--exclusive",), (), "none"),
    "ended": (("--exclusive",), ("hip",), f"hipMalloc {test_word.ENDED}"),
    "overridden": (("--exclusive",), ("an", "override"), "none"),
    "silent": (("--exclusive",), ("an", "override"), test_word.OVERRIDE_ENDED),
}


@pytest.mark.parametrize("case", FIRST_CALLS)
def test_stats_and_compare_name_the_first_call_of_other_code(tmp_path: Path, case: str) -> None:
    path = tmp_path / "stats.json"
    options, words, said = FIRST_CALLS[case]
    built = known.program(tmp_path, CALLS_HIP, str(STUB), f"-Wl,-rpath,{STUB.parent}")
    run_it = ("run", *options, "--stats", "--stats-json", path, "--", built, *words)
    done = command(*run_it, **{**TELLS, "HIPSTUB_TELLS": str(int(case != "silent"))})
    line = f"calls of HIP by other code: {said}"
    assert done.returncode == 0 and f"mgpu_rt: {line}" in done.stderr.splitlines(), done.stderr
    for shown in (invoke("stats", str(path)), invoke("compare", str(path), str(path))):
        assert line in shown.stdout.splitlines()


def test_a_comparison_says_that_other_code_has_ended_the_users_word(tmp_path: Path) -> None:
    built = known.program(tmp_path, CALLS_HIP, str(STUB), f"-Wl,-rpath,{STUB.parent}")
    page, line = tmp_path / "page.html", f"calls of HIP by other code: hipMalloc {test_word.ENDED}"
    words = ("compare", "--exclusive", "--report", page, "--", built, "hip")
    done = command(*words, **TELLS)
    assert done.returncode == 0 and line in done.stdout.splitlines(), done.stdout + done.stderr
    assert line in page.read_text()


def test_a_comparison_names_the_call_of_each_side(tmp_path: Path) -> None:
    built = known.program(tmp_path, CALLS_HIP, str(STUB), f"-Wl,-rpath,{STUB.parent}")
    paths = [tmp_path / "ended.json", tmp_path / "alone.json"]
    for path, words in zip(paths, (("hip",), ()), strict=True):
        command("run", "--exclusive", "--stats-json", path, "--", built, *words, **TELLS)
    lines = invoke("compare", *map(str, paths)).stdout.splitlines()
    assert f"before: calls of HIP by other code: hipMalloc {test_word.ENDED}" in lines
    assert "after: calls of HIP by other code: none" in lines


def test_stats_shows_cache_rates(files: tuple[Path, Path]) -> None:
    """A cache that was not in use shows no number; with stock's behaviour no cache is in use."""
    rows = {line.split()[0]: line.split()[1:] for line in tail(files[1])[:CACHES]}
    assert rows["modules"] == [str(LAUNCHES - 1), "1", "0", "95.0", "%", "0"]
    assert rows["registrations"] == ["–"] * 5
    assert all(line.split()[1:] == ["–"] * 5 for line in tail(files[0])[:CACHES])


def tail(path: Path) -> list[str]:
    """Returns the cache rows of the output of `stats`, and the lines behind them."""
    lines = command("stats", path).stdout.splitlines()
    begin = next(n for n, line in enumerate(lines) if line.startswith("cache "))
    return lines[begin + 1 :]


CACHES = 5


def test_stats_shows_kernels_copies_and_images(tmp_path: Path) -> None:
    path = tmp_path / "stats.json"
    run(build("churn", 22, 5, STOCK), path)
    stats = json.loads(path.read_text())
    assert {name: row["launches"] for name, row in stats["kernels"].items()} == {"increment": 5}
    (module,) = stats["modules"]
    assert (module["kernels"], module["why"]) == (["increment"], None)
    lines = command("stats", path).stdout.splitlines()
    assert "ended by exit" in lines[0]
    assert any(line.startswith("device memory ") for line in lines)
    rows = {cells[0]: cells[1:] for cells in (re.split(r"\s{2,}", line) for line in lines)}
    assert rows["increment"][0] == "5"
    copies = stats["copies"]
    assert rows["from device"] == [str(copies["from_device"][key]) for key in ("calls", "bytes")]
    assert rows[module["image"]][-1] == "increment"


#: The test's library depends on the runtime, so the loader runs the destructors of the test's
#: library before the runtime's destructors.
KILL_AT_EXIT = """
#include <signal.h>
extern const char *mgpu_rt_version(void);
__attribute__((destructor)) static void die(void) { raise(mgpu_rt_version() ? SIGKILL : SIGTERM); }
"""


def test_a_killed_program_gets_its_outputs(
    forum: Path, files: tuple[Path, Path], tmp_path: Path
) -> None:
    killer = compile_c(tmp_path / "killer.so", KILL_AT_EXIT, "-shared", "-fPIC", str(library()))
    stats, trace = tmp_path / "stats", tmp_path / "trace"
    options = ("--device", "softgpu", "--stats-json", stats, "--trace", trace)
    shell = f'LD_PRELOAD="$LD_PRELOAD:{killer}" exec {forum}'
    done = command("run", *options, "--", "sh", "-c", shell, **ON_SOFTGPU)
    assert (done.returncode, done.stderr) == (-9, "")
    killed = json.loads(stats.read_text())
    assert json.loads(command("stats", "--json", stats).stdout) == killed
    ended = json.loads(files[1].read_text())
    assert killed["process"]["ended"] == "unfinished"
    assert _calls(killed, "abi") == _calls(ended, "abi")
    assert killed["kernels"]["test_func"]["launches"] == LAUNCHES
    assert killed["modules"] == ended["modules"]
    compared = command("compare", files[0], stats)
    assert (compared.returncode, compared.stderr) == (0, "")
    assert "mgpuLaunchKernel" in compared.stdout
    events = json.loads(trace.read_text())["traceEvents"]
    names = [event["name"] for event in events if event.get("cat") == "stream"]
    assert names.count("test_func") == LAUNCHES


def _calls(stats: dict, layer: str) -> dict[str, int]:
    return {name: counter["calls"] for name, counter in stats[layer].items()}


# ---- compare ----


def test_compare_shows_two_files_side_by_side(files: tuple[Path, Path]) -> None:
    result = command("compare", *files)
    assert (result.returncode, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    assert lines[:2] == [f"before: {files[0]}", f"after:  {files[1]}"]
    rows = {line.split()[0]: line.split()[1:] for line in lines if line}
    assert rows["mgpuLaunchKernel"][:2] == [str(LAUNCHES)] * 2
    assert rows["hipModuleLoadData"][:2] == [str(LAUNCHES), "1"]
    assert rows["test_func"][:2] == [str(LAUNCHES)] * 2
    assert rows["hipStreamQuery"][:3] == ["–", str(LAUNCHES - 1), "–"]
    assert rows["modules"] == [*"––––", str(LAUNCHES - 1), "1", "0", "95.0", "%"]


def cells(text: str) -> dict[str, list[str]]:
    """Returns the cells of each line of a comparison, by the first cell."""
    return {row[0]: row[1:] for row in map(split, text.splitlines())}


def test_compare_runs_a_program_twice(forum: Path) -> None:
    """If the user has set variables for the library's caches and output files, the comparison
    ignores these variables. The program's output goes to stderr."""
    hostile = {"MGPU_RT_CACHE": "off", "MGPU_RT_TRACE": "/nowhere/trace"}
    words = ("compare", "--device", "softgpu", "--repeat", "2", "--", "sh", "-c")
    result = command(*words, f"echo x; {forum}", **ON_SOFTGPU, **hostile)
    assert (result.returncode, result.stderr) == (0, "x\n" * 4)
    assert cells(result.stdout)["hipModuleLoadData"][:2] == [str(LAUNCHES), "1"]
    assert "the median of 2 runs a side. From HIP's start to the last end: before " in result.stdout
    assert not re.search(r"\bratio\b", result.stdout)


@pytest.mark.check
def test_compare_adds_up_processes(forum: Path, tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text(f'#!/bin/sh\necho "$@"\n"{forum}"\n"{forum}"\nexit 0\n')
    script.chmod(0o755)
    words = ("compare", "--device", "softgpu", "--", script, "--repeat", "--", "b")
    result = command(*words, **ON_SOFTGPU)
    assert result.returncode == 0, result.stderr
    assert result.stderr == "--repeat -- b\n" * 2  # the program prints its arguments
    (row,) = (line for line in result.stdout.splitlines() if "mgpuLaunchKernel" in line)
    assert row.split()[1:3] == [str(2 * LAUNCHES)] * 2


@pytest.mark.parametrize("options", [("--exclusive",), ("--exclusive", "--lazy")])
def test_compare_runs_a_side_with_the_options(options: tuple[str, ...], forum: Path) -> None:
    result = command("compare", *options, "--repeat", 2, "--", forum)
    assert result.returncode == 0, result.stderr
    assert f"\nafter:  {' '.join(options)}\n" in result.stdout
    assert ("MGPU_RT_SYNC=lazy postponed" in result.stdout) == ("--lazy" in options)
    assert result.stdout.endswith("\nAll runs print equal output.\n")


def test_compare_says_that_lazy_had_no_effect(forum: Path) -> None:
    """The host can read the device's memory."""
    words = ("compare", "--exclusive", "--lazy", "--", forum)
    said = command(*words, HIPSTUB_VISIBLE="bar").stdout
    assert "\n--lazy postponed no synchronise, so these are the figures without it" in said
    assert "\n--lazy postponed" not in command(*words).stdout


def split(line: str) -> list[str]:
    return re.split(r"\s{2,}", line)


def test_compare_says_that_an_option_changes_the_output(forum: Path, tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text(f'#!/bin/sh\necho "$MGPU_RT_SYNC"\n"{forum}"\n')
    script.chmod(0o755)
    result = command("compare", "--exclusive", "--lazy", "--", script)
    assert "If none is, leave out --exclusive --lazy. If that does not help" in result.stdout


#: The end of a script after a run of the program: the script's status, and words of the comparison.
ENDINGS = [
    ("", 0, "All runs print equal output."),
    ("echo $MGPU_RT_CACHE", 1, "The output differs. Unless the program prints times or addresses"),
    ("[ ! $MGPU_RT_CACHE ]", 0, "The exit status is 1 before and 0 after, so one side may"),
    ("[ ! $MGPU_RT_CACHE ] || exit 3; $0 x", 1, "The exit status is 3 before and 0 after"),
]


@pytest.mark.parametrize(("ending", "status", "told"), ENDINGS)
def test_compare_says_how_the_sides_end(
    ending: str, status: int, told: str, forum: Path, tmp_path: Path
) -> None:
    script = tmp_path / "script"
    script.write_text(f'#!/bin/sh\n"{forum}"\n[ $1 ] && exit\n{ending}\n')
    script.chmod(0o755)
    result = command("compare", "--report", page := tmp_path / "page", "--", script)
    assert result.returncode == status, result.stderr
    assert told in result.stdout and told in page.read_text()
    assert ("The exit status" in result.stdout) == ("exit status" in told)
    if "differs" in told:
        assert "first run `mgpu-rt check --device hip -- " in result.stdout
    if "exit status" in told:
        assert "see why with `MGPU_RT_CACHE=off mgpu-rt run --device hip -- " in result.stdout
    repeated = command("compare", "--repeat", "2", "--", script).stdout
    assert (": a side stopped early, so no gain" in repeated) == ("exit 3" in ending)


def test_compare_names_options_of_the_environment(forum: Path) -> None:
    options = {"MGPU_RT_CACHE": "modules,functions", "MGPU_RT_EXCLUSIVE": "on"}
    said = command("compare", "--", forum, **options).stdout
    assert "\nafter:  MGPU_RT_CACHE=modules,functions MGPU_RT_EXCLUSIVE=on\n" in said
    assert cells(said)["streams"][:5] == ["–"] * 5
    said = command("compare", "--exclusive", "--", forum, **options).stdout
    assert "\nafter:  MGPU_RT_CACHE=modules,functions --exclusive\n" in said


def test_addresses_of_memrefs_make_no_other_output() -> None:
    """LLVM's printMemref functions print an address, which differs in each run."""
    runs = [
        Run(Statistics({}, {}, {}), f"base@ = 0x{address} rank = 1\n[{value}]")
        for address, value in (("55e6fbb9d0a0", 1), ("7f01fbb9d0a0", 1), ("55e6fbb9d0a0", 2))
    ]
    equal, other = runs_of.output_sentence([runs[:1], runs[1:2]], "", ""), runs[2:]
    assert equal == "All runs print equal output."
    told = runs_of.output_sentence([runs[:2], other], "", "")
    assert told.startswith("The output differs") and "graph" not in told


def test_a_graph_is_named_as_a_cause_of_another_output() -> None:
    """The graph's function computed on the host, against the user's promise."""
    runs = [
        [Run(Statistics({}, {}, {}, graphs=Graphs(launches=launches)), output)]
        for launches, output in ((0, "111"), (110, "19"))
    ]
    told = runs_of.output_sentence(runs, "", "")
    assert "A graph repeats no host code: docs/graphs.md says what you promise. If that" in told


# ---- error messages ----


@pytest.mark.parametrize("command", ("stats", "compare", "compare after"))
def test_names_of_a_file_are_only_text(command: str, tmp_path: Path) -> None:
    """A name cannot move the terminal's cursor, add a line, or occupy more columns than the
    limit."""
    evil, plain = tmp_path / "evil.json", tmp_path / "plain.json"
    evil.write_text(json.dumps(hostile()["s"]))
    plain.write_text(json.dumps(recorded.stock()))
    words = {"stats": [evil], "compare": [plain, evil], "compare after": [evil, plain]}[command]
    result = invoke(*command.split()[:1], *map(str, words))
    assert result.exit_code == 0, result.output
    assert "<script>alert(1)</script>" in result.stdout
    assert r"a\u0000b\u001b[31m\u000ac" in result.stdout
    for line in result.stdout.splitlines():
        assert line.isprintable()
        assert len(line) < 1000


def test_caches_of_processes_are_added_up() -> None:
    run = Statistics({}, {}, {"modules": Cache(3, 2, 0, 1)})
    assert added([run, run]).caches == {"modules": Cache(6, 4, 0, 2)}


def test_a_bypass_is_no_hit_and_lowers_the_rate(tmp_path: Path) -> None:
    """Files of older releases do not count bypasses."""
    run = recorded.statistics(kept={"ranges": 0, "bytes": 0, "changed": 4, "limited": 0})
    run["cache"]["registrations"] = {"hits": 5, "misses": 4, "bypasses": 11, "evictions": 4}
    run["cache"]["streams"] = {"hits": 99, "misses": 1, "evictions": 1}
    path = tmp_path / "s.json"
    path.write_text(json.dumps(run))
    said = " ".join(invoke("stats", str(path)).stdout.split())
    assert "registrations 5 4 11 25.0 % 4" in said
    assert "streams 99 1 – 99.0 % 1" in said
    assert "memory – – – – –" in said
    assert "4 kept registrations ended as the program unmapped or dropped their pages" in said


def test_stats_shows_one_file_after_the_other(tmp_path: Path) -> None:
    paths = [tmp_path / "s.1.json", tmp_path / "s.2.json"]
    for pid, path in enumerate(paths, 1):
        path.write_text(json.dumps(recorded.statistics(process=recorded.process(pid=pid))))
    alone = [invoke("stats", str(path)).stdout for path in paths]
    assert "process 1: " in alone[0] and "process 2: " in alone[1]
    assert invoke("stats", *map(str, paths)).stdout == "\n".join(alone)
