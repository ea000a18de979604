"""Stores the latest outcome of each suite and benchmark, as JSON with a line for each part."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bench import ROOT

#: The folder of the suites' records. The records of the emulated device are in softgpu/records, and
#: the results of benchmarks in bench/results.
SUITES = ROOT / "bench" / "results" / "suites"
DEVICE = ROOT / "softgpu" / "records"

_WIDTH = 400


def load(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def save(content: Any, path: Path) -> None:
    """Writes the file; a new file replaces an older file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(_text(content) + "\n", encoding="utf-8")


def _text(content: Any, indent: str = "") -> str:
    """Returns a part as JSON, on one line if the part is short or contains no lists and no
    objects."""
    line = json.dumps(content, ensure_ascii=False)
    is_object = isinstance(content, dict)
    parts = list(content.values()) if is_object else content if isinstance(content, list) else []
    if len(line) <= _WIDTH or not any(isinstance(part, (dict, list)) for part in parts):
        return line
    inner = indent + " "
    texts = [_text(part, inner) for part in parts]
    if is_object:
        names = [json.dumps(name, ensure_ascii=False) for name in content]
        texts = [f"{name}: {text}" for name, text in zip(names, texts, strict=True)]
    begin, end = "{}" if is_object else "[]"
    return f"{begin}\n{inner}" + f",\n{inner}".join(texts) + f"\n{indent}{end}"
