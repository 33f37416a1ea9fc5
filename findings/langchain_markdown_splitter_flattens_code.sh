#!/usr/bin/env bash
# langchain-text-splitters 1.1.3.
# Expected: MarkdownHeaderTextSplitter cuts at headings and leaves the text between them as it is.
# Seen: each line loses its indentation: Python in a code block becomes another program, and lists in lists become one list. A heading that is
# underlined (setext) is no heading.
# This fails when the indentation stays.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" -q install langchain-text-splitters==1.1.3
cd "$folder"
venv/bin/python - <<'PYTHON'
from langchain_text_splitters import MarkdownHeaderTextSplitter

source = """# Use

```python
def f(x):
    if x:
        return 1
```

- a
  - b

Text
----

below
"""
found = MarkdownHeaderTextSplitter([("#", "h1"), ("##", "h2")]).split_text(source)
print(found)
assert len(found) == 1 and found[0].metadata == {"h1": "Use"}
assert "def f(x):\nif x:\nreturn 1" in found[0].page_content and "- a\n- b" in found[0].page_content
PYTHON
echo "as seen"
