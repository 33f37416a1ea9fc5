"""Fill in what a release needs: python docs/make_release.py [--source https://...] [--date YYYY-MM-DD]

The address of the repository, where it is named, goes into pyproject.toml and CITATION.cff, the date into CITATION.cff and CHANGELOG.md. `docs/check_release.py` then has
nothing to say. Commit the three files, and push the tag that is printed: the release workflow tests, builds and publishes.
"""

from __future__ import annotations

import argparse
import datetime
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from docs.check_release import VERSION, missing

ROOT = Path(__file__).resolve().parents[1]

ADDRESS = re.compile(r"https://[\w.-]+\.[a-z]+(/[\w./-]+)?")
NOT_YET = re.compile(r"^# \[project\.urls\].*$", re.MULTILINE)
UNRELEASED = "## [Unreleased]\n"


def release(root: Path, source: str, date: str) -> str:
    """Write the address, if one is given, and the date into the files of the repository at `root`. Returns the tag, such as v0.1.0.

    Raises ValueError for an address or a date that is none, and for a version that has its section already; then no file is changed.
    """
    source = source.rstrip("/")
    if source and not ADDRESS.fullmatch(source):
        raise ValueError(f"{source!r} is not the address of a repository. It begins with https://")
    datetime.date.fromisoformat(date)
    project, citation, changes = (root / name for name in ("pyproject.toml", "CITATION.cff", "CHANGELOG.md"))
    found = VERSION.search((root / "realmctl" / "version.py").read_text(encoding="utf-8"))
    version = found[1] if found else ""
    told = changes.read_text(encoding="utf-8")
    if not version or told.count(UNRELEASED) != 1 or f"## [{version}]" in told:
        raise ValueError(f"CHANGELOG.md needs one section [Unreleased], and none of {version or 'no version'} yet.")
    changes.write_text(told.replace(UNRELEASED, f"{UNRELEASED}\n## [{version}] - {date}\n"), encoding="utf-8")
    replaced = ("date-released:", "version:", *(["repository-code:"] if source else []))
    urls = f'[project.urls]\nSource = "{source}"\nIssues = "{source}/issues"\nChangelog = "{source}/blob/main/CHANGELOG.md"'
    if source:
        text = project.read_text(encoding="utf-8")
        if "\n[project.urls]\n" in text:
            text = re.sub(r"\n\[project\.urls\]\n(?:\w+ = .*\n)*", f"\n{urls}\n", text)
        else:
            text = NOT_YET.sub(urls, text)
        project.write_text(text, encoding="utf-8")
    kept = [line for line in citation.read_text(encoding="utf-8").splitlines() if not line.startswith(replaced)]  # fmt: skip
    kept[1:1] = [f"version: {version}", f"date-released: {date}", *([f"repository-code: {source}"] if source else [])]
    citation.write_text("\n".join(kept) + "\n", encoding="utf-8")
    return f"v{version}"


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", default="", help="address of the repository")
    parser.add_argument("--date", default=datetime.date.today().isoformat())
    given = parser.parse_args()
    try:
        tag = release(ROOT, given.source, given.date)
    except ValueError as error:
        sys.exit(f"error: {error}")
    sys.exit("\n".join(missing(ROOT)) or print(f"Commit, then: git tag {tag} && git push origin {tag}"))


if __name__ == "__main__":
    main()
