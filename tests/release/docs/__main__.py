"""Writes the generated pages: `python -m tests.release.docs`."""

from tests.release.docs.generated import PAGES
from tests.support.child import ROOT

for place, page in PAGES.items():
    (ROOT / place).write_text(page(), encoding="utf-8")
