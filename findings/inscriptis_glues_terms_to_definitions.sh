#!/usr/bin/env bash
# inscriptis 2.7.6.
# Expected: the term and the definition of an HTML definition list are on lines of their own, or at least apart.
# Seen: they are glued to one word, as are all entries of the list: "portA place for shipsquayA wall". A search for "port" does not find it.
# This fails when the term is a word of its own.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" -q install inscriptis==2.7.6
cd "$folder"
venv/bin/python - <<'PYTHON'
import inscriptis

text = inscriptis.get_text("<html><body><dl><dt>port</dt><dd>A place for ships</dd><dt>quay</dt><dd>A wall</dd></dl></body></html>")
print(repr(text))
assert text.strip() == "portA place for shipsquayA wall"
PYTHON
echo "as seen"
