#!/usr/bin/env bash
# pypandoc_binary 1.17 (pandoc 3.9).
# Expected: of a wiki's page the words come out that its program shows, and nothing else; what a reader of pandoc does not know is left out or
# told by a warning.
# Seen: the reader of TikiWiki puts words of its own around coloured, centred and boxed text ("NOT SUPPORTED: ~~ (colored) BEGIN: ... :END"). That
# of DokuWiki makes a picture of a link to a file; that of Jira drops the title above a block of code, and keeps that of a panel. Of a note in an
# Org text whose words have brackets the end becomes text, and a note in a note is lost.
# This fails when one of these readers changes.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" -q install pypandoc_binary==1.17
"$folder/venv/bin/python" - <<'PYTHON'
import subprocess

import pypandoc


def plain(name: str, source: str) -> str:
    command = [pypandoc.get_pandoc_path(), "-f", name, "-t", "plain", "--wrap=none"]
    return " ".join(subprocess.run(command, input=source, capture_output=True, text=True, check=True).stdout.split())


found = {
    name: plain(name.partition(" ")[0], source)
    for name, source in {
        "tikiwiki coloured": "The ~~red:mill~~ burnt.\n",
        "tikiwiki centred": "The ::mill:: burnt.\n",
        "tikiwiki boxed": "The ^mill^ burnt.\n",
        "dokuwiki file": "See {{plan.pdf|the plan}} now.\n",
        "dokuwiki page": "See [[plan|the plan]] now.\n",
        "jira code": "{code:title=Plan.java}\nint a;\n{code}\n",
        "jira panel": "{panel:title=Plan}\nWords.\n{panel}\n",
        "org brackets": "One[fn:: a [b] c] two.\n",
        "org nested": "One[fn:: a [fn:: b] c] two.\n",
    }.items()
}
print(*found.items(), sep="\n")
assert "NOT SUPPORTED: ~~ (colored) BEGIN" in found["tikiwiki coloured"] and "NOT SUPPORTED" in found["tikiwiki centred"]
assert "NOT SUPPORTED: ^ (boxed) BEGIN" in found["tikiwiki boxed"]
assert found["dokuwiki page"] == "See the plan now."
assert found["dokuwiki file"] == "See [the plan] now."
assert "Plan" in found["jira panel"] and found["jira code"] == "int a;"
assert found["org brackets"] == "One[1] c] two. [1] a [b"
assert found["org nested"] == "One[1] two. [1] a [2] c"
PYTHON
echo "as seen"
