"""Say what a release still lacks: python docs/check_release.py. The release workflow runs it before it builds.

The address of the repository holds no release back: where pyproject.toml has one, CITATION.cff has to have the same (`make release SOURCE=https://...`).
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VERSION = re.compile(r'^__version__ = "([^"]+)"', re.MULTILINE)


def missing(root: Path) -> list[str]:
    """Return a sentence for each thing that the release of the repository at `root` lacks."""
    texts = {
        name: (root / name).read_text(encoding="utf-8") for name in ("pyproject.toml", "CITATION.cff", "CHANGELOG.md")
    }
    urls = tomllib.loads(texts["pyproject.toml"])["project"].get("urls", {})
    found = VERSION.search((root / "realmctl" / "version.py").read_text(encoding="utf-8"))
    version = found[1] if found else "?"
    source = str(urls.get("Source", ""))
    named = re.search(r"^repository-code: (.*)$", texts["CITATION.cff"], re.MULTILINE)
    needed = {
        'pyproject.toml: [project.urls] with Source = "https://..."': not urls or source.startswith("https://"),
        f"CITATION.cff: repository-code: {source or 'as in pyproject.toml, which has none,'}": (
            named[1] if named else ""
        )
        == source,
        f"CITATION.cff: version: {version}": f"version: {version}\n" in texts["CITATION.cff"],
        "CITATION.cff: date-released: YYYY-MM-DD": bool(
            re.search(r"^date-released: \d{4}-\d\d-\d\d$", texts["CITATION.cff"], re.MULTILINE)
        ),
        f"tests/frozen/releases/{version}.zip (python -m tests.frozen.releases)": (
            root / f"tests/frozen/releases/{version}.zip"
        ).is_file(),
        f"CHANGELOG.md: ## [{version}] - YYYY-MM-DD": bool(
            re.search(rf"^## \[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d$", texts["CHANGELOG.md"], re.MULTILINE)
        ),
    }
    return [f"{what} is missing." for what, there in needed.items() if not there]


if __name__ == "__main__":
    sys.exit("\n".join(missing(ROOT)) or 0)
