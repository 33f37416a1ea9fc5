#!/usr/bin/env bash
# langchain-text-splitters 1.1.3.
# Expected: HTMLHeaderTextSplitter gives text in the order of the page, each with the headings above it.
# Seen: text that stands in the body behind other elements comes first, and has no heading: "closing words" below, which belongs to "Ships".
# This fails when it comes last, or with its heading.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" -q install langchain-text-splitters==1.1.3 beautifulsoup4==4.14.2 lxml==6.1.3
cd "$folder"
venv/bin/python - <<'PYTHON'
from langchain_text_splitters import HTMLHeaderTextSplitter

page = "<html><body><h1>Port</h1><p>first words</p><h2>Ships</h2><p>more words</p>closing words</body></html>"
found = HTMLHeaderTextSplitter([("h1", "h1"), ("h2", "h2")]).split_text(page)
print([(each.page_content, each.metadata) for each in found])
assert (found[0].page_content, found[0].metadata) == ("closing words", {})
assert found[-1].metadata == {"h1": "Port", "h2": "Ships"} and found[-1].page_content == "more words"
PYTHON
echo "as seen"
