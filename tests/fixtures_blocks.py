"""Blocks artifacts small enough to write inside a test.

Sentences are written as wikitext would have them: `[[Target]]` and `[[Target|surface]]` become link anchors.

    make_blocks(path, {"Ada Lovelace": [["She met [[Charles Babbage]] in 1833.", "They wrote."]]})

The tokenizer is an uncased BERT WordPiece whose vocabulary is every word of the documents plus every single
character, so nothing is [UNK] and words that are not in the documents are spelled out.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import BertWordPieceTokenizer, Tokenizer

from realmctl.artifact import Artifact, Writer
from realmctl.records import RecordWriter
from realmctl.stage import Stage, setting

SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
LINK = re.compile(r"\[\[([^\]|]*)\|?([^\]]*)\]\]")

Documents = Mapping[str, Sequence[Sequence[str]]]
"""Title -> the document's blocks -> the block's sentences."""


class FixtureBlocks(Stage):
    """Blocks written by hand."""

    makes = "blocks"
    documents: str = setting("Documents, as JSON.")

    def run(self, out: Writer) -> Mapping[str, Any]:
        records = list(block_records(json.loads(self.documents)))
        tokenizer = word_tokenizer(text for r in records for text in (r["title"], r["text"]))
        with RecordWriter(out.file("blocks.jsonl.zst")) as writer:
            for record in records:
                writer.write(record)
        save_tokenizer(tokenizer, out.file("tokenizer/tokenizer.json").parent)
        for name, array in block_arrays(records, tokenizer).items():
            np.save(out.file(f"{name}.npy"), array)
        return {"blocks": len(records)}


def make_blocks(path: Path, documents: Documents) -> Artifact:
    """Write `documents` as a blocks artifact under the series folder `path`."""
    return FixtureBlocks(documents=json.dumps(documents)).make(path)


def block_records(documents: Documents) -> Iterable[dict[str, Any]]:
    for document, (title, blocks) in enumerate(documents.items()):
        for k, sentences in enumerate(blocks):
            yield {"id": f"{document}-{k}", "document": str(document), "title": title, **_body(sentences)}


def block_arrays(records: Sequence[dict[str, Any]], tokenizer: Tokenizer) -> dict[str, np.ndarray]:
    """The memory-mapped half of a blocks artifact; each sentence is tokenised on its own."""
    sentences = [[_ids(tokenizer, r["text"][s:e]) for s, e in r["sentences"]] for r in records]
    titles = [_ids(tokenizer, r["title"]) for r in records]
    starts = [np.cumsum([0, *map(len, ids[:-1])]) for ids in sentences]
    uids = [hashlib.sha1(f"{r['title']} <sep> {r['text']}".encode()).digest()[:8] for r in records]
    return {
        "tokens": np.array([i for block in sentences for ids in block for i in ids], np.uint16),
        "offsets": _offsets([sum(map(len, block)) for block in sentences]),
        "title_tokens": np.array([i for ids in titles for i in ids], np.uint16),
        "title_offsets": _offsets(list(map(len, titles))),
        "sentence_starts": np.concatenate([np.zeros(0), *starts]).astype(np.int32),
        "sentence_offsets": _offsets(list(map(len, sentences))),
        "uids": np.array([int.from_bytes(uid, "big") for uid in uids], np.uint64),
    }


def word_tokenizer(texts: Iterable[str]) -> Tokenizer:
    words: set[str] = set()
    for text in texts:
        words.update(re.findall(r"\w+|[^\w\s]", text.lower()))
    letters = sorted(set("abcdefghijklmnopqrstuvwxyz0123456789").union(*words))
    pieces = [*SPECIALS, *letters, *(f"##{letter}" for letter in letters), *sorted(words - set(letters))]
    tokenizer = BertWordPieceTokenizer({piece: i for i, piece in enumerate(pieces)}, lowercase=True)
    return Tokenizer.from_str(tokenizer.to_str())


def save_tokenizer(tokenizer: Tokenizer, folder: Path) -> None:
    """Write the three files that `AutoTokenizer.from_pretrained(folder)` wants."""
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    ids = tokenizer.get_vocab()
    (folder / "vocab.txt").write_text("".join(f"{piece}\n" for piece in sorted(ids, key=ids.__getitem__)))
    names = {f"{name.strip('[]').lower()}_token": name for name in SPECIALS}
    config = {"tokenizer_class": "BertTokenizer", "do_lower_case": True, "model_max_length": 512, **names}
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=2))


def _body(marked_sentences: Sequence[str]) -> dict[str, Any]:
    text, sentences, anchors = "", [], []
    for marked in marked_sentences:
        text += " " if text else ""
        start, last = len(text), 0
        for link in LINK.finditer(marked):
            target, surface = link[1], link[2] or link[1]
            text += marked[last : link.start()]
            anchors.append([len(text), len(text) + len(surface), target])
            text, last = text + surface, link.end()
        text += marked[last:]
        sentences.append([start, len(text)])
    return {"text": text, "sentences": sentences, "anchors": anchors}


def _ids(tokenizer: Tokenizer, text: str) -> list[int]:
    return tokenizer.encode(text, add_special_tokens=False).ids


def _offsets(lengths: Sequence[int]) -> np.ndarray:
    return np.cumsum([0, *lengths], dtype=np.int64)
