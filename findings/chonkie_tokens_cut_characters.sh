#!/usr/bin/env bash
# chonkie 1.7.0 with a byte-level BPE of tokenizers 0.23.3, as GPT-2, RoBERTa and Qwen have.
# Expected: the chunks of TokenChunker, put together, are the text, and start_index and end_index are their places in it.
# Seen: a chunk that ends within a character (three bytes in Japanese) has U+FFFD in its place, and the next begins with U+FFFD: the character is in
# neither. The places are wrong from there on. Latin text is whole.
# This fails when the chunks are the text.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" -q install chonkie==1.7.0 tokenizers==0.23.3
cd "$folder"
venv/bin/python - <<'PYTHON'
from chonkie import TokenChunker
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

signs = sorted(pre_tokenizers.ByteLevel.alphabet())
words = Tokenizer(models.BPE(vocab={sign: number for number, sign in enumerate(signs)}, merges=[]))
words.pre_tokenizer, words.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
for text, whole in (("The harbour of the town", True), ("東京都は日本の首都である", False)):
    found = TokenChunker(words, chunk_size=10, chunk_overlap=0).chunk(text)
    print([each.text for each in found])
    assert ("".join(each.text for each in found) == text) == whole
    assert any("\ufffd" in each.text for each in found) != whole
    assert all(text[each.start_index : each.end_index] == each.text for each in found) == whole
PYTHON
echo "as seen"
