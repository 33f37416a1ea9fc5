#!/usr/bin/env bash
# haystack-ai 3.4.1.
# Expected: DocumentCleaner before DocumentSplitter(split_by="passage"), the order of a pipeline, leaves the passages that the splitter cuts.
# Seen: with its defaults the cleaner makes one blank of each row of blanks and ends of lines, so that a document is one passage and code one line.
# The same document without the cleaner has three passages. split_by="line" finds one line.
# This fails when the passages stay.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" -q install haystack-ai==3.4.1
cd "$folder"
venv/bin/python - <<'PYTHON'
from haystack import Document
from haystack.components.preprocessors import DocumentCleaner, DocumentSplitter

document = Document(content="First passage.\n\nSecond passage.\n\n    code()\n")
splitter = DocumentSplitter(split_by="passage", split_length=1, split_overlap=0)
cleaned = DocumentCleaner().run([document])["documents"]
before, after = (splitter.run(each)["documents"] for each in ([document], cleaned))
print([each.content for each in before], [each.content for each in after])
assert len(before) == 3 and [each.content for each in after] == ["First passage. Second passage. code()"]
PYTHON
echo "as seen"
