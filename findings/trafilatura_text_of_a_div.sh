#!/usr/bin/env bash
# trafilatura 2.3.1.
# Expected: text that stands in a div or a section of an article, between paragraphs, is part of the main text, at least with favor_recall.
# Seen: it is dropped, and of `<div>ONE<br>TWO</div>` TWO comes out and ONE does not. The same words in a paragraph come out. The caption
# of a figure is dropped too.
# This fails when one of these words comes out.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" -q install trafilatura==2.3.1 lxml==6.1.3 lxml_html_clean
cd "$folder"
venv/bin/python - <<'PYTHON'
import trafilatura

around = "<p>" + "The harbour of the town holds ships, and sailors who came from the islands in the north. " * 5 + "</p>"
for element, kept, lost in (
    ("<p>Fares rose.</p>", ["Fares"], []),
    ("<div>Fares rose.</div>", [], ["Fares"]),
    ("<section>Fares rose.</section>", [], ["Fares"]),
    ("<div>Fares<br>rose</div>", ["rose"], ["Fares"]),
    ("<figure><img src='a.png'><figcaption>Fares by year.</figcaption></figure>", [], ["Fares"]),
):
    page = f"<html><body><article><h1>Port</h1>{around}{element}{around}</article></body></html>"
    for options in ({}, {"favor_recall": True}):
        text = trafilatura.extract(page, **options)
        print(element, options, [word for word in ("Fares", "rose") if word in text])
        assert all(word in text for word in kept) and not any(word in text for word in lost)
PYTHON
echo "as seen"
