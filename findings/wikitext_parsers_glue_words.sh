#!/usr/bin/env bash
# mwparserfromhell 0.7.2 and wikitextparser 3.0.0.
# Expected: strip_code() and plain_text() keep words apart that MediaWiki shows on two lines or in two cells, and leave footnotes out.
# Seen: `born 1815<br>died 1852` becomes "born 1815died 1852" in both. A footnote without a blank becomes part of the word before it:
# `harbour<ref>Census</ref>` gives "harbourCensus". The cells of a table come out as one word from mwparserfromhell.
# This fails when one of them comes out otherwise.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" -q install mwparserfromhell==0.7.2 wikitextparser==3.0.0
cd "$folder"
venv/bin/python - <<'PYTHON'
import mwparserfromhell
import wikitextparser

for source, both in (
    ("born 1815<br>died 1852", "born 1815died 1852"),
    ("the harbour<ref>Census</ref> grew", "the harbourCensus grew"),
):
    found = str(mwparserfromhell.parse(source).strip_code()), wikitextparser.parse(source).plain_text()
    print(source, found)
    assert found == (both, both)
table = str(mwparserfromhell.parse("{|\n| Ada || 1815\n|}").strip_code())
print(repr(table))
assert "".join(table.split()) == "Ada1815"
PYTHON
echo "as seen"
