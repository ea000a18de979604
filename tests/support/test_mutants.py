"""Each mutant's guard stands once in its file: `make check` compiles them, `make test` has this."""

from __future__ import annotations

from tests.hoist.test_guards import GUARDS as OF_HOIST
from tests.manager.test_hosting_guards import RULES
from tests.python_runtime.test_guards import GUARDS as OF_PYTHON
from tests.support.child import ROOT
from tests.support.variants import Change


def test_every_guard_stands_once() -> None:
    changes = [rule.change for rule in RULES]
    changes += [Change(each.file, each.guard, "") for each in OF_PYTHON]
    changes += [Change(f"mgpu_rt/hoist/{each.file}", each.guard, "") for each in OF_HOIST]
    stale = [
        f"{change.file}: {change.old}"
        for change in changes
        if not (path := ROOT / change.file).exists() or path.read_text().count(change.old) != 1
    ]
    assert stale == []
