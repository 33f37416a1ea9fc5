#!/usr/bin/env bash
# pysbd 0.3.4.
# Expected: with clean=False the sentences, put together again, are the text.
# Seen: the signs that pysbd puts into a text for its own use (such as ∮ for a contour integral, ☉ for the sun, ♭ of music, ☝) end what
# is kept: the words before them are dropped. With char_span=True too.
# This fails when the sentences are the whole text.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" -q install pysbd==0.3.4
cd "$folder"
venv/bin/python - <<'PYTHON'
import pysbd

for sign, kept in (("∮", "Second part."), ("☉", "of it. Second part."), ("♭", "Second part."), ("☝", "Second part."), ("☏", None)):
    text = f"First part {sign} of it. Second part."
    found = "".join(pysbd.Segmenter(language="en", clean=False).segment(text))
    spans = "".join(span.sent for span in pysbd.Segmenter(language="en", clean=False, char_span=True).segment(text))
    print(sign, repr(found), repr(spans))
    assert found == spans == (kept or text)
PYTHON
echo "as seen"
