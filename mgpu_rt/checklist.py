"""What `mgpu-rt doctor` has found: a list of checks, for people and for machines."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field

OK, NOTE, WARNING, FAILURE = "ok", "note", "warning", "failure"


@dataclass(frozen=True)
class Check:
    """One line of the list: what was looked at, how it is, and the way out if it is bad."""

    name: str
    state: str
    text: str
    advice: str = ""


@dataclass
class Report:
    """What was found on the way to a run on `device`."""

    device: str
    checks: list[Check] = field(default_factory=list)
    hip: str = ""
    devices: list[str] = field(default_factory=list)
    python: str = ""

    def add(self, name: str, state: str, text: str, advice: str = "") -> None:
        """Adds a line."""
        self.checks.append(Check(name, state, text, advice))

    @property
    def possible(self) -> bool:
        """True if a program could run."""
        return all(check.state != FAILURE for check in self.checks)

    def as_dict(self) -> dict[str, object]:
        """For JSON."""
        return {"possible": self.possible, **asdict(self)}

    def show(self) -> None:
        """Prints the list."""
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        console = Console()
        colours = {OK: "green", NOTE: "blue", WARNING: "yellow", FAILURE: "red"}
        signs = {OK: "✓", NOTE: "–", WARNING: "!", FAILURE: "✗"}
        if not console.encoding.lower().startswith("utf"):
            signs = {OK: "ok", NOTE: "-", WARNING: "!", FAILURE: "no"}
        table = Table.grid(padding=(0, 1))
        for check in self.checks:
            text = Text(check.text, overflow="fold")
            if check.advice:
                text.append("\n" + check.advice, style="bold")
            table.add_row(Text(signs[check.state], style=colours[check.state]), check.name, text)
        console.print(table)
        console.print(
            Text(f"A run is possible: mgpu-rt run --device {self.device} -- PROGRAM", "green")
            if self.possible
            else Text("A run is not possible", "red")
        )
