"""Collects the findings of `mgpu-rt doctor` in a list of checks, which is shown as text or as
JSON."""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass, field

OK, NOTE, WARNING, FAILURE = "ok", "note", "warning", "failure"


@dataclass(frozen=True)
class Check:
    """One line of the list: the check's subject, state, finding and remedy."""

    name: str
    state: str
    text: str
    advice: str = ""


@dataclass
class Checklist:
    device: str
    chip: str = ""  # of an emulated device that was named
    checks: list[Check] = field(default_factory=list)
    hip: str = ""
    devices: list[str] = field(default_factory=list)
    python: str = ""

    def add(self, name: str, state: str, text: str, advice: str = "") -> None:
        self.checks.append(Check(name, state, text, advice))

    @property
    def possible(self) -> bool:
        return all(check.state != FAILURE for check in self.checks)

    def as_dict(self) -> dict[str, object]:
        return {"possible": self.possible, **asdict(self)}

    def show(self) -> None:
        import click

        from mgpu_rt._text import columns

        colours = {OK: "green", NOTE: "blue", WARNING: "yellow", FAILURE: "red"}
        signs = {OK: "✓", NOTE: "–", WARNING: "!", FAILURE: "✗"}
        if not (sys.stdout.encoding or "").lower().startswith("utf"):
            signs = {OK: "ok", NOTE: "-", WARNING: "!", FAILURE: "no"}
        rows = [
            (signs[check.state], check.name, "\n".join(filter(None, (check.text, check.advice))))
            for check in self.checks
        ]
        for check, block in zip(self.checks, columns(rows), strict=True):
            sign = signs[check.state]
            click.echo(click.style(sign, fg=colours[check.state]) + block[len(sign) :])
        if self.possible:
            word = self.chip or self.device
            click.secho(f"A run is possible: mgpu-rt run --device {word} -- PROGRAM", fg="green")
        else:
            click.secho("A run is not possible", fg="red")
