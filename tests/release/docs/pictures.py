"""Makes the picture of docs/commands.md from a real run: `python -m tests.release.docs.pictures`.

The script needs Chromium, LLVM 19's tools and Pillow, all of which `make test` or `make bench`
installs.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

from PIL import Image

from tests.support import browser
from tests.support.child import ROOT, environment
from tests.support.command import COMMAND
from tests.support.programs import STOCK, build

LAUNCHES = 1000
PICTURE = ROOT / "docs" / "report.png"


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        shutil.copy(build("churn", 19, LAUNCHES, STOCK), Path(scratch, "churn"))
        words = ("compare", "--report", "report.html", "--device", "softgpu", "--", "./churn")
        subprocess.run([COMMAND, *words], cwd=scratch, env=environment("softgpu"), check=True)
        shown = (f"--screenshot={PICTURE}", "--window-size=1000,1010", "report.html")
        subprocess.run([browser.find(), *browser.FLAGS, *shown], cwd=scratch, check=True)
    # A picture with 256 colours looks equally good, and takes a third of the bytes that a
    # picture with all colours takes.
    picture = Image.open(PICTURE).convert("RGB")
    picture.quantize(method=Image.Quantize.MAXCOVERAGE).save(PICTURE, optimize=True)


if __name__ == "__main__":
    main()
