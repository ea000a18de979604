"""Writes the generated pages, and the figures of other pages: `python -m tests.release.docs`."""

from tests.release.docs.claims import CLAIMS
from tests.release.docs.generated import PAGES
from tests.support.child import ROOT

for place, page in PAGES.items():
    (ROOT / place).write_text(page(), encoding="utf-8")
for claim in CLAIMS:
    text = (ROOT / claim.page).read_text(encoding="utf-8")
    (ROOT / claim.page).write_text(claim.refreshed(text), encoding="utf-8")
