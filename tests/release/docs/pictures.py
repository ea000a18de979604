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

#: Maps each file name to four values. The values are the screen's width, True for dark colours, the
#: element to show, and the picture's height.
PICTURES = {
    "report.png": (1000, False, "body", 1010),
}


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        shutil.copy(build("churn", 19, LAUNCHES, STOCK), Path(scratch, "churn"))
        words = [
            COMMAND,
            "compare",
            "--report",
            "report.html",
            "--device",
            "softgpu",
            "--",
            "./churn",
        ]
        subprocess.run(words, cwd=scratch, env=environment("softgpu"), check=True)
        with browser.page() as page:
            for name, (width, dark, part, height) in PICTURES.items():
                page.show(Path(scratch, "report.html"), width=width, dark=dark)
                page.picture(ROOT / "docs" / name, part=part, height=height)
    for name in PICTURES:
        path = ROOT / "docs" / name
        picture = Image.open(path).convert("RGB")
        # A picture with 256 colours looks equally good, and takes a third of the bytes that a
        # picture with all colours takes.
        picture.quantize(method=Image.Quantize.MAXCOVERAGE).save(path, optimize=True)


if __name__ == "__main__":
    main()
