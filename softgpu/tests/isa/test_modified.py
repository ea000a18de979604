"""Tests vector instructions with modifiers. The test applies the pseudocode to modified operands,
and compares the part of the result that the modifiers select."""

from __future__ import annotations

import itertools
import random
import re
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import pytest

from . import oracle as o
from .cases import SOURCES, VECTOR, Case, all_cases, differs, expected_vector, width_of
from .device import TARGETS
from .instructions import tolerance
from .single import LANES, Batch, Result, Wave, random_waves
from .test_instructions import close, seeded

FLOATS = {"F16": 16, "F32": 32, "F64": 64}
HALVES, WORDS = ("PF16", "PI16"), ("PF32",)
PARTS = {"DWORD": (0, 32), "WORD_0": (0, 16), "WORD_1": (16, 16)}
PARTS |= {f"BYTE_{n}": (8 * n, 8) for n in range(4)}
REST = ("PAD", "SEXT", "PRESERVE")
#: `make check` tests only one target, because few of these instructions differ between targets.
ON_TARGETS = pytest.mark.parametrize(
    "target",
    [
        pytest.param(t, marks=pytest.mark.check if t == "gfx90a" else pytest.mark.check_isa)
        for t in TARGETS
    ],
)


@dataclass(frozen=True)
class Place:
    """The destination bits that contain the result, and the expected content of the remaining
    bits."""

    shift: int
    width: int
    rest: str = ""  # one of REST; otherwise these bits are not compared

    def others(self, got: int, old: int) -> int:
        """Returns the dword that the test expects: the result's bits from `got`, and the other bits
        as `rest` requires."""
        mask = ((1 << self.width) - 1) << self.shift
        sign = got >> (self.shift + self.width - 1) & 1 if self.width + self.shift else 0
        above = 0xFFFFFFFF & ~((1 << (self.shift + self.width)) - 1)
        rest = {"PAD": 0, "SEXT": sign * above, "PRESERVE": old & 0xFFFFFFFF & ~mask}
        return got & mask | rest[self.rest]


@dataclass(frozen=True)
class Modified:
    case: Case
    text: str
    before: Callable[[int, int], int] = lambda n, bits: bits  # changes a source by its number
    after: Callable[[int], int] = lambda bits: bits
    place: Place | None = None

    def difference(self, wave: Wave, got: Result) -> str:
        """Describes the first mistake in one wave; returns an empty text if the wave has no
        mistake."""
        case = self.case
        lanes = [(*(self.before(n, lane[n]) for n in range(3)), lane[3]) for lane in wave.lanes]
        seen = replace(wave, lanes=lanes)
        want = expected_vector(case, seen)
        width = 16 if case.result == "b16" else width_of(case.dst)
        place = self.place or Place(0, width)
        mask = (1 << place.width) - 1
        if (got.exec, got.vcc, got.scc) != (want.exec, want.vcc, want.scc):
            return f"{self.text}: vcc is {got.vcc:#x}, want {want.vcc:#x}; exec {got.exec:#x}"
        if case.dst in ("SDST", "MASK"):
            return ""
        for n in range(LANES):
            old, result = wave.lanes[n][3], got.lanes[n]
            if not wave.exec >> n & 1:
                if result != old:
                    return f"{self.text}: lane {n} does not run and has changed"
                continue
            if differs(case, seen, n):
                continue
            a, b = result >> place.shift & mask, self.after(want.lanes[n] & mask) & mask
            low = result & 0xFFFFFFFF
            right = not place.rest or low == place.others(low, old)
            if not right or not close(case.result, a, b, tolerance(case.name)):
                operands = [hex(x) for x in wave.lanes[n]]
                return f"{self.text} {operands}: {result & 2**64 - 1:#x}, want {b:#x} in {place}"
        return ""


def assembled(target: str, modified: list[Modified]) -> list[Modified]:
    """Returns the instructions that LLVM's assembler accepts for the target."""
    done = subprocess.run(
        ["llvm-mc-22", "-triple=amdgcn-amd-amdhsa", f"-mcpu={target}", "-filetype=null"],
        input="\n".join(m.text for m in modified),
        text=True,
        capture_output=True,
        check=False,
    )
    refused = {int(line) for line in re.findall(r"^<stdin>:(\d+):\d+: error", done.stderr, re.M)}
    return [m for n, m in enumerate(modified, 1) if n not in refused]


def check(target: str, wanted: Iterator[Modified], at_least: int, denormals: int = 3) -> None:
    modified = assembled(target, list(wanted))
    assert len(modified) >= at_least, len(modified)
    batch = Batch(target, denormals)
    for n, m in enumerate(modified):
        batch.add(f"case_{n}", m.text)
    code = batch.load()
    wrong = []
    for n, m in enumerate(modified):
        waves = random_waves(seeded(m.text), m.case.kinds, 1)
        for wave, got in zip(waves, code.run(f"case_{n}", waves), strict=True):
            if text := m.difference(wave, got):
                wrong.append(text)
    assert not wrong, "\n".join([f"{len(wrong)} of {len(modified)} differ", *wrong[:20]])
    print(f"{target}: {len(modified)} agree")


def vector_cases(target: str, without: tuple[str, ...] = ()) -> Iterator[Case]:
    for case in all_cases(target):
        if case.row.family in VECTOR and not any(flag in case.row.rest[4] for flag in without):
            yield case


def with_sources(text: str, form: Callable[[int, str], str]) -> str:
    """Returns the text, with each source register rewritten."""
    for n, register in enumerate(SOURCES):
        pattern = rf"(?<![\w\[])v(?:{register}|\[{register}:\d+\])(?!\w)"
        text = re.sub(pattern, lambda found, n=n: form(n, found[0]), text)
    return text


def long_form(case: Case) -> str:
    """Returns the text in VOP3's encoding."""
    name, operands = case.text.split(" ", 1)
    return f"{name}_e64 {operands}" if case.row.family in ("vop1", "vop2", "vopc") else case.text


def kind_of(case: Case, n: int) -> str:
    return case.sources[n] if n < len(case.sources) else ""


def signed(case: Case, signs: tuple[str, ...]) -> Modified:
    """Adds a sign modifier to each float source: `-` for negation, `|` for the absolute value, or
    the two combined. An instruction with a carry output cannot use `|`, because the encoding stores
    the number of the carry's register in the same bits."""
    if "CARRY_OUT" in case.row.rest[4]:
        signs = tuple(sign.strip("|") for sign in signs)

    def form(n: int, register: str) -> str:
        sign = signs[n] if kind_of(case, n) in FLOATS else ""
        return f"{sign}{register}{'|' * ('|' in sign)}"

    def before(n: int, bits: int) -> int:
        width = FLOATS.get(kind_of(case, n))
        if width is None or (n == 2 and "ACC" in case.row.rest[4]):
            return bits
        top = 1 << (width - 1)
        bits = bits & ~top if "|" in signs[n] else bits
        return bits ^ top if "-" in signs[n] else bits

    return Modified(case, with_sources(long_form(case), form), before)


def clamped(case: Case) -> Modified:
    kind = case.result

    def one(kind: str, bits: int) -> int:
        number = o.decode(kind, bits)
        return o.encode(kind, min(number, 1.0) if number > 0 else 0.0)

    def after(bits: int) -> int:
        if kind[0] != "p":
            return one(kind, bits)
        part, half = kind[1:], width_of(case.dst) // 2
        mask = (1 << half) - 1
        return one(part, bits & mask) | one(part, bits >> half & mask) << half

    return Modified(case, f"{long_form(case)} clamp", after=after)


def halved(case: Case, select: tuple[int, ...]) -> Modified:
    """Uses op_sel of VOP3, which selects one half of each 16-bit source and one half of the
    destination."""
    narrow = width_of(case.dst) == 16
    count = len(case.sources)
    chosen = [bit * (width_of(kind) == 16) for bit, kind in zip(select, case.sources, strict=False)]
    to = select[3] * narrow
    words = ",".join(map(str, [*chosen, to]))

    def before(n: int, bits: int) -> int:
        return bits >> 16 if n < count and chosen[n] else bits

    place = Place(16 * to, 16, "PRESERVE") if narrow else None
    return Modified(case, f"{case.text} op_sel:[{words}]", before, place=place)


def paired(case: Case, rng: random.Random) -> Modified:
    """Uses VOP3P's modifiers. For each half of the result, the modifiers select one half or dword
    of each source, and may negate the selected part."""
    count = len(case.sources)
    pairs = [kind in HALVES + WORDS for kind in case.sources]
    floats = [kind in ("PF16", "PF32") for kind in case.sources]
    low, high = ([rng.getrandbits(1) if p else x for p in pairs] for x in (0, 1))
    signs = [[rng.getrandbits(1) if f else 0 for f in floats] for _ in range(2)]
    fields = {"op_sel": low, "op_sel_hi": high}
    if any(floats):
        fields |= {"neg_lo": signs[0], "neg_hi": signs[1]}

    def before(n: int, bits: int) -> int:
        if n >= count or not pairs[n] or (n == 2 and "ACC" in case.row.rest[4]):
            return bits
        width = 32 if case.sources[n] in WORDS else 16
        mask = (1 << width) - 1
        parts = [bits >> width * side[n] & mask for side in (low, high)]
        parts = [x ^ sign[n] << (width - 1) for x, sign in zip(parts, signs, strict=True)]
        return parts[0] | parts[1] << width

    words = [f"{name}:[{','.join(map(str, bits))}]" for name, bits in fields.items()]
    return Modified(case, " ".join([case.text, *words]), before)


def partial_words(case: Case, rng: random.Random) -> Modified:
    """SDWA's modifiers select a part of each source and of the destination. A modifier may negate a
    float source, make a float source absolute, or sign-extend an integer source."""
    selected = [rng.choice(list(PARTS)) for _ in range(2)]
    signs = []
    for n in range(2):
        kind = kind_of(case, n)
        signs.append(rng.choice(("", "-", "|", "-|") if kind in FLOATS else ("", "sext")))
    writes = case.row.family != "vopc"
    parts = ["DWORD"] if case.result[0] == "f" and width_of(case.dst) == 32 else list(PARTS)
    if case.result == "f16":  # below this bound an inexact result is not known
        parts = ["DWORD", "WORD_0", "WORD_1"]
    to, unused = rng.choice(parts), rng.choice(REST)

    def form(n: int, register: str) -> str:
        if signs[n] == "sext":
            return f"sext({register})"
        return f"{signs[n]}{register}{'|' * ('|' in signs[n])}"

    def before(n: int, bits: int) -> int:
        if n > 1:
            return bits
        bits = o.field(bits, *PARTS[selected[n]], signs[n] == "sext") & 0xFFFFFFFF
        top = 1 << (FLOATS.get(kind_of(case, n), 32) - 1)
        bits = bits & ~top if "|" in signs[n] else bits
        return bits ^ top if "-" in signs[n] else bits

    name, operands = with_sources(case.text, form).split(" ", 1)
    words = [f"dst_sel:{to}", f"dst_unused:UNUSED_{unused}"] if writes else []
    count = sum(kind != "MASK" for kind in case.sources)
    words += [f"src{n}_sel:{selected[n]}" for n in range(min(count, 2))]
    narrow = case.result == "b16" or width_of(case.dst) == 16
    width = min(PARTS[to][1], 16 if narrow else 32)
    place = Place(PARTS[to][0], width, "" if to == "DWORD" else unused)
    return Modified(case, " ".join([f"{name}_sdwa", operands, *words]), before, place=place)


def flushed(kind: str, bits: int) -> int:
    """Replaces denormal floats by zeros of equal sign."""
    packed = kind.startswith("pf")
    if not packed and kind.upper() not in FLOATS:
        return bits
    width = int(kind.lstrip("pf"))
    exponent = {16: 0x7C00, 32: 0x7F800000, 64: 0x7FF << 52}[width]
    for shift in (0, width) if packed else (0,):
        if not bits >> shift & exponent:
            bits &= ~(((1 << (width - 1)) - 1) << shift)
    return bits


def without_denormals(case: Case) -> Modified:
    def before(n: int, bits: int) -> int:
        return flushed(kind_of(case, n).lower(), bits)

    return Modified(case, case.text, before, lambda bits: flushed(case.result, bits))


@ON_TARGETS
def test_denormals_may_count_as_zeros(target: str) -> None:
    """A setting of MODE replaces denormal sources and denormal results by zeros."""
    cases = (
        case
        for case in vector_cases(target, ("LITK", "ACC", "MIX"))
        if "FP" in case.row.rest[4].split("|")
    )
    check(target, map(without_denormals, cases), 150, denormals=0)


@ON_TARGETS
def test_signs_are_changed(target: str) -> None:
    choices = list(itertools.product(("", "-", "|", "-|"), repeat=3))
    rng = seeded("signs", target)
    cases = [
        case
        for case in vector_cases(target, ("LITK", "NOE64"))
        if case.row.family != "vop3p" and any(kind in FLOATS for kind in case.sources)
    ]
    check(target, (signed(case, rng.choice(choices)) for case in cases), 150)


@ON_TARGETS
def test_floats_are_clamped(target: str) -> None:
    cases = (c for c in vector_cases(target, ("LITK", "NOE64")) if "f" in c.result)
    check(target, map(clamped, cases), 60)


@ON_TARGETS
def test_halves_are_selected(target: str) -> None:
    choices = [s for s in itertools.product((0, 1), repeat=4) if any(s)]
    rng = seeded("halves", target)
    cases = [c for c in vector_cases(target) if "OPSEL" in c.row.rest[4]]
    check(target, (halved(case, rng.choice(choices)) for case in cases for _ in range(3)), 50)


@ON_TARGETS
def test_pairs_are_modified_apart(target: str) -> None:
    rng = seeded("pairs", target)
    cases = [
        case
        for case in vector_cases(target, ("MIX",))
        if case.row.family == "vop3p" and any(kind in HALVES + WORDS for kind in case.sources)
    ]
    check(target, (paired(case, rng) for case in cases for _ in range(4)), 60)


@ON_TARGETS
def test_parts_of_words_are_selected(target: str) -> None:
    rng = seeded("parts", target)
    cases = [
        case
        for case in vector_cases(target, ("NOSDWA", "ACC", "LITK"))
        if case.row.family in ("vop1", "vop2", "vopc")
    ]
    check(target, (partial_words(case, rng) for case in cases for _ in range(2)), 200)
