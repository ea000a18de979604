"""Implements `mgpu-rt doctor`, which makes a trial run and reports what a real run would do.

`mgpu-rt doctor` runs a small C program (csrc/probe.c) as `mgpu-rt run` would run any program. With
MGPU_RT_VERBOSE the library prints its findings and decisions in the probe's process. A second child
process lists HIP's devices: if a broken driver hangs or crashes this child, the doctor can still
report the failure.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

import mgpu_rt
from mgpu_rt import _hip_search, _layout
from mgpu_rt._cli import child, cuda, hip_devices, options, preload
from mgpu_rt._cli.checklist import FAILURE, NOTE, OK, WARNING, Checklist
from mgpu_rt._cli.errors import CommandError, NoDevice
from mgpu_rt._cli.hip_devices import TIMEOUT
from mgpu_rt._library import why_not_loaded

#: The remedy if files of the installation are missing or have another version.
HOW_TO_BUILD = (
    "reinstall it: python -m pip install --force-reinstall mgpu_rt"
    if _layout.INSTALLED
    else "build it anew: make"
)


# ---- the library ----


def _library(checklist: Checklist) -> bool:
    try:
        library = preload.runtime()
    except CommandError as error:
        checklist.add("library", FAILURE, str(error))
        return False
    from ctypes import CDLL, c_char_p

    try:
        opened = CDLL(library)
    except OSError as error:
        checklist.add("library", FAILURE, f"{library} cannot be loaded", why_not_loaded(error))
        return False
    opened.mgpu_rt_version.restype = c_char_p
    version = opened.mgpu_rt_version().decode()
    if version == mgpu_rt.__version__:
        checklist.add("library", OK, f"{library}, version {version}")
    else:
        told = f"{library} has version {version}, this command {mgpu_rt.__version__}"
        checklist.add("library", FAILURE, told, HOW_TO_BUILD)
    links = Path(library).parent.glob("*.so.*")
    served = sorted({int(link.name.rpartition(".so.")[2].split(".")[0]) for link in links})
    checklist.add(
        "programs",
        OK if served else WARNING,
        f"linked with libmlir_rocm_runtime.so of LLVM {', '.join(map(str, served)) or 'none'}",
        "" if served else HOW_TO_BUILD,
    )
    return True


# ---- the driver ----


def _driver(checklist: Checklist, base: Mapping[str, str]) -> None:
    kfd = preload.KFD
    state = FAILURE if checklist.device == "hip" and not os.environ.get("MGPU_RT_HIP") else NOTE
    if not kfd.exists():
        way = (
            "load the kernel's driver (modprobe amdgpu; in a container: --device=/dev/kfd "
            "--device=/dev/dri), or use --device softgpu"
        )
        checklist.add("AMD GPU", state, f"none: there is no {kfd}", way if state == FAILURE else "")
    elif os.access(kfd, os.R_OK | os.W_OK):
        checklist.add("AMD GPU", OK, f"{kfd} may be opened")
    else:
        way = f"sudo usermod -aG {kfd.group()} $USER, and log in again"
        told = f"{kfd} may not be opened by this user"
        checklist.add("AMD GPU", state, told, f"become a member of its group: {way}")
    for name, device, find in (
        ("software GPU", "softgpu", lambda: str(preload.softgpu.driver())),
        ("NVIDIA GPU", "cuda", lambda: cuda.environment(base) and cuda.driver(base)),
    ):
        try:
            checklist.add(name, OK, find())
        except NoDevice as error:
            checklist.add(name, FAILURE if checklist.device == device else NOTE, str(error))


# ---- a run ----


def _run(checklist: Checklist, environment: Mapping[str, str], base: Mapping[str, str]) -> None:
    probe, manager = _hip_search.probe(), environment.get("MGPU_RT_MANAGER", "")
    if "delay=" not in manager:
        manager = ",".join(filter(None, (manager, "delay=0")))
    quiet = {"MGPU_RT_STATS": "", "MGPU_RT_TRACE": "", "MGPU_RT_VERBOSE": "1"}
    words = {**environment, **quiet, "MGPU_RT_MANAGER": manager}
    try:
        ended = child.run([probe, "--manager"], words, limit=TIMEOUT, **child.PIPES)
    except CommandError as error:
        advice = "" if os.path.exists(probe) else HOW_TO_BUILD
        checklist.add("HIP", FAILURE, error.message, advice)
        return
    if ended.status is None:
        told = f"a program's first call did not return in {TIMEOUT:.0f} s"
        checklist.add("HIP", FAILURE, told, "the driver hangs: see dmesg, and rocminfo")
        return
    found = re.search(r"^mgpu_rt: HIP: (.+), devices: ", ended.stderr, re.MULTILINE)
    checklist.hip = found[1] if found and found[1] != "none" else ""
    for bad_value in options.SENSELESS.findall(ended.stderr):
        checklist.add("options", WARNING, bad_value)
    _hip(checklist, ended, environment, base)
    if checklist.hip:
        _reports(checklist, ended.stderr, environment.get("MGPU_RT_EXCLUSIVE") == "on")
        _python(checklist, ended, environment)


def other_calls(said: str) -> str:
    """Returns what the library printed about HIP's reports, with MGPU_RT_VERBOSE=1. "none": HIP has
    reported no call of other code. "": the library printed nothing about it."""
    found = re.search(r"^mgpu_rt: calls of HIP by other code: (.+)$", said, re.MULTILINE)
    return found[1] if found else ""


def _reports(checklist: Checklist, said: str, exclusive: bool) -> None:
    """Reports whether HIP tells the library who calls HIP, so that hits need not query HIP. With
    MGPU_RT_EXCLUSIVE=on no hit queries HIP until a call of other code is reported."""
    found = other_calls(said)
    if found == "none":
        end = "ends MGPU_RT_EXCLUSIVE=on" if exclusive else "lets hits query HIP again"
        told = f"HIP reports who calls it, and the first call of other code {end}"
        checklist.add("reports", OK, told)
    elif found:
        reason = found.removeprefix("unknown, because ")
        effect = "nothing checks MGPU_RT_EXCLUSIVE=on" if exclusive else "hits query HIP"
        checklist.add("reports", NOTE, f"{effect}: {reason}")


def _registered(checklist: Checklist, reason: str) -> None:
    if reason:
        told = "memory does not stay registered, also with mgpu-rt run --exclusive"
        checklist.add("registered", NOTE, f"{told}: {reason}")
    else:
        told = "mgpu-rt run --exclusive keeps memory registered (docs/rule.md: two calls may fail)"
        checklist.add("registered", OK, told)


def _ending(ended: child.Ended) -> str:
    end = child.signal_name(ended.status)
    return f" (it was ended by {end})" if end else ""


def _why(hip: str, device: str, base: Mapping[str, str]) -> str:
    """Explains why a program loads the HIP library `hip`, and names the others."""
    if device == "cuda":
        return "which is mgpu_rt's own, over NVIDIA's driver"
    origins = {os.path.realpath(path): origin for path, origin in _hip_search.find(base).items()}
    mine = origins.pop(os.path.realpath(hip), "")
    mine = "as MGPU_RT_HIP says" if base.get("MGPU_RT_HIP") else f"found by {mine}"
    return mine + (f"; there is also {', '.join(origins)}" if origins else "")


def _hip(
    checklist: Checklist,
    ended: child.Ended,
    environment: Mapping[str, str],
    base: Mapping[str, str],
) -> None:
    said = ended.stderr.splitlines()
    if not checklist.hip:
        said = [line for line in said if "no HIP library" in line] or said[-1:]
        said = said or ["a program's first call did not return"]
        text, _, advice = said[0].removeprefix("mgpu_rt: ").partition(". Set ")
        checklist.add("HIP", FAILURE, text + _ending(ended), f"set {advice}" if advice else "")
        return
    real = os.path.basename(os.path.realpath(checklist.hip))
    release = "" if checklist.hip.endswith(real) else f" ({real})"
    checklist.add(
        "HIP", OK, f"{checklist.hip}{release}, {_why(checklist.hip, checklist.device, base)}"
    )
    asked = hip_devices.ask(checklist.hip, environment)
    checklist.devices, error = [each["name"] for each in asked["devices"]], asked["error"]
    if checklist.devices:
        names = ", ".join(f"{number}: {name}" for number, name in enumerate(checklist.devices))
        checklist.add("devices", OK, names)
    else:
        told = f"HIP cannot count them: {error}" if error else "HIP has found none"
        where = _where_devices_are(checklist.device, environment)
        checklist.add("devices", FAILURE, told, where)
    if "pages" in asked:
        _registered(checklist, asked["pages"])
    if ended.status == 0:
        checklist.add("a program", OK, "has created, synchronised and destroyed a stream")
        return
    failed = [line for line in said if line.startswith("softgpu: ") or "failed with" in line]
    failed += [line for line in said[-1:] if not line.startswith("mgpu_rt: HIP: ")]
    failed += ["it said nothing"]
    text = f"could not create a stream: {failed[0]}{_ending(ended)}"
    checklist.add("a program", FAILURE, text)


def _where_devices_are(device: str, environment: Mapping[str, str]) -> str:
    hiding = [f"{name}={environment[name]}" for name in preload.VISIBLE if name in environment]
    if hiding:
        return f"{' and '.join(hiding)} may hide them: unset it"
    if device == "cuda":
        return "see nvidia-smi"
    return "" if device == "softgpu" else "see rocminfo; with no AMD GPU: --device softgpu"


def _python(checklist: Checklist, ended: child.Ended, environment: Mapping[str, str]) -> None:
    manager = re.search(r"manager: Python (\S+), process \d+, '(.+)'", ended.stderr)
    if environment.get("MGPU_RT_CACHE") == "off":
        checklist.add("Python", NOTE, "not needed: MGPU_RT_CACHE=off")
    elif environment.get("MGPU_RT_MANAGER", "").partition(",")[0] in ("off", "0"):
        checklist.add("Python", NOTE, "off: the library manages its caches by itself")
    elif manager:
        checklist.python = manager[1]
        told = f"{manager[1]} would manage the caches, from a process of its own: {manager[2]}"
        checklist.add("Python", OK, told)
    elif not ended.status:
        lines = [line for line in ended.stderr.splitlines() if "no Python" in line]
        text, _, advice = (lines or ["no Python"])[0].removeprefix("mgpu_rt: ").partition(". Set ")
        checklist.add("Python", WARNING, text, f"set {advice}" if advice else "")


# ---- lowering ----


def _lowering(checklist: Checklist) -> None:
    from mgpu_rt._lowering import object_files, pipelines, toolchain
    from mgpu_rt._packages import how_to_install

    for llvm in toolchain.RELEASES:
        needs = object_files.needs(pipelines.pipeline(llvm))
        if llvm not in toolchain.TESTED and toolchain.missing([("mlir-opt", llvm)]):
            continue
        if absent := toolchain.missing(needs):
            lacking = f"mgpu-rt lower lacks {', '.join(each.tool for each in absent)}"
            packages = " ".join(dict.fromkeys(each.package for each in absent))
            checklist.add(f"LLVM {llvm}", NOTE, lacking, how_to_install(packages))
        else:
            tools = ", ".join(dict.fromkeys(name for name, _ in needs))
            checklist.add(f"LLVM {llvm}", OK, f"mgpu-rt lower has its {tools}")
    for name, use, find in (
        ("amdgcn", "code for AMD's GPUs", toolchain.device_libraries),
        ("cc", "executables", toolchain.compiler),
    ):
        try:
            checklist.add(name, OK, f"{find()}, for {use}")
        except toolchain.ToolchainMissing as lacking:
            checklist.add(name, NOTE, f"mgpu-rt lower cannot make {use}", str(lacking))


def examine(device: str, base: Mapping[str, str] = os.environ) -> Checklist:
    kind, base = preload.kind(device, base)
    checklist = Checklist(kind, device if device != kind else "")
    for sentence in options.misspelt(base):
        checklist.add("options", WARNING, sentence)
    try:
        _examine(checklist, kind, base)
    except _hip_search.NoProcess as error:
        checklist.add("HIP", FAILURE, str(error))
    _lowering(checklist)
    return checklist


def _examine(checklist: Checklist, device: str, base: Mapping[str, str]) -> None:
    try:
        if device == "auto":
            checklist.device, why = preload.automatic(base)
            checklist.add("device", OK, f"{checklist.device} (auto): {why}")
        else:
            checklist.add("device", OK, device)
    except CommandError as error:
        checklist.add("device", FAILURE, str(error))
    if not _library(checklist):
        return
    _driver(checklist, base)
    if checklist.device == "auto":
        return
    try:
        environment = preload.environment(checklist.device, base)
    except CommandError as error:
        if checklist.possible:
            checklist.add("HIP", FAILURE, str(error))
        return
    _run(checklist, environment, base)
