"""What several commands have: the options --device and --json, and how JSON is printed.

Each command is imported at every start, so it imports what it needs only when it is called.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def device(words: str) -> Callable[[Any], Any]:
    """The option; `words` say what the command does with it."""
    return click.option(
        "--device",
        type=click.Choice(["auto", "hip", "softgpu", "cuda"]),
        default="auto",
        show_default=True,
        help=words,
    )


def show_json(values: Any) -> None:
    """Prints JSON."""
    import json

    click.echo(json.dumps(values, indent=2))
