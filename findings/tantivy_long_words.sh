#!/usr/bin/env bash
# tantivy 0.27.0 (tantivy-py).
# Expected: a document is found by any of its words, in any script.
# Seen: the tokenizer of a text field drops words of more than 40 bytes, without a word. A sentence of Japanese is one such word from 14
# characters on, since it has no blanks, so the document is in the index and nothing finds it; so are Russian words of 21 letters.
# This fails when such a document is found.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" -q install tantivy==0.27.0
cd "$folder"
venv/bin/python - <<'PYTHON'
import tantivy

schema = tantivy.SchemaBuilder()
schema.add_text_field("text", stored=True)
index = tantivy.Index(schema.build())
writer = index.writer()
texts = {
    "東京都は日本の首都である": True,  # 12 characters, 36 bytes
    "東京都は日本の首都であり人口が最も多い": False,  # 19 characters, 57 bytes
    "водогрязеторфопарафинолечение": False,  # 29 letters, 58 bytes
    "санаторий": True,
}
for text in texts:
    writer.add_document(tantivy.Document(text=text))
writer.commit()
index.reload()
searcher = index.searcher()
for text, known in texts.items():
    found = searcher.search(index.parse_query(text, ["text"]), 5).hits
    print(len(text.encode()), "bytes:", len(found), "found")
    assert bool(found) == known
assert searcher.num_docs == len(texts)
PYTHON
echo "as seen"
