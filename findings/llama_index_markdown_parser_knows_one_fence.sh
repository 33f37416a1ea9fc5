#!/usr/bin/env bash
# llama-index-core 0.14.25.
# Expected: MarkdownNodeParser cuts at headings. A line with a # in a fenced code block is none, whichever fence CommonMark allows.
# Seen: between ~~~ a comment of a shell script begins a node, and the code is cut in two. Between ``` it is not.
# This fails when both are one node.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" -q install llama-index-core==0.14.25
cd "$folder"
venv/bin/python - <<'PYTHON'
from llama_index.core import Document
from llama_index.core.node_parser import MarkdownNodeParser

for fence, nodes in (("```", 1), ("~~~", 2)):
    source = f"# Use\n\n{fence}\nmake\n# a comment\nmake test\n{fence}\n"
    found = [node.text for node in MarkdownNodeParser().get_nodes_from_documents([Document(text=source)])]
    print(fence, found)
    assert len(found) == nodes
PYTHON
echo "as seen"
