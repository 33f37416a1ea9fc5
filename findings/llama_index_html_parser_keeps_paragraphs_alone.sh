#!/usr/bin/env bash
# llama-index-core 0.14.25.
# Expected: HTMLNodeParser with its defaults gives all text of a page, cut into nodes.
# Seen: it gives the text of p, li, headings, b, i, u and section alone. Cells of tables, code (pre), definitions, quotes, and what stands in div or span
# are left out, without a word.
# This fails when one of these comes out.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" -q install llama-index-core==0.14.25 beautifulsoup4==4.14.2
cd "$folder"
venv/bin/python - <<'PYTHON'
from llama_index.core import Document
from llama_index.core.node_parser import HTMLNodeParser

kept = {"h2": "heading", "p": "paragraph", "li": "item"}
lost = {"div": "division", "td": "cell", "pre": "code", "dt": "term", "dd": "definition", "blockquote": "quotation", "span": "note"}
body = "".join(f"<{tag}>{word}</{tag}>" for tag, word in {**kept, **lost}.items())
body = body.replace("<td>", "<table><tr><td>").replace("</td>", "</td></tr></table>").replace("<dt>", "<dl><dt>").replace("</dd>", "</dd></dl>")
found = " ".join(node.text for node in HTMLNodeParser().get_nodes_from_documents([Document(text=f"<html><body>{body}</body></html>")]))
print(found)
assert all(word in found for word in kept.values()) and not any(word in found for word in lost.values())
PYTHON
echo "as seen"
