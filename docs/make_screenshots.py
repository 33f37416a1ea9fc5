"""Take the pictures of `serve` and of a report, from the workspace of a finished `realmctl demo`, with Chromium; or the one of a search.

    python docs/make_screenshots.py demo/artifacts "With what was Nerto Brostardo honoured?"
    python docs/make_screenshots.py artifacts "QUESTION" search.png

The pictures are not made in tests: their scores are those of one run.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

PICTURES = Path(__file__).parent / "pictures"
REALMCTL = (sys.executable, "-m", "realmctl")
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")


@contextmanager
def served(workspace: str) -> Iterator[str]:
    """The address of `realmctl serve`, which ends with the block."""
    with subprocess.Popen(
        [*REALMCTL, "serve", "--workspace", workspace, "--port", "0", "--json"], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            yield json.loads(process.stdout.readline())["address"]
        finally:
            process.terminate()


def photograph(browser: str, address: str, picture: Path, height: int) -> None:
    """Save what the browser shows of an address, 1,200 pixels wide."""
    subprocess.run(
        [
            browser, "--headless", "--no-sandbox", "--hide-scrollbars", f"--window-size=1200,{height}",
            "--virtual-time-budget=15000", f"--screenshot={picture}", address,
        ],
        check=True,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip


def main(workspace: str, question: str, search: str = "") -> None:
    browser = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if browser is None:
        sys.exit(f"no browser found: install one of {', '.join(BROWSERS)}")
    with served(workspace) as address:
        photograph(browser, f"{address}/#q={quote(question)}", PICTURES / (search or "serve.png"), 740)
    if search:
        return
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.html"
        subprocess.run([*REALMCTL, "report", "--workspace", workspace, "--out", str(report)], check=True)
        photograph(browser, report.as_uri(), PICTURES / "report.png", 1400)


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit("usage: python docs/make_screenshots.py WORKSPACE QUESTION [PICTURE]")
    main(*sys.argv[1:])
