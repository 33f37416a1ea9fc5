"""Write the tables of families in docs/how-to/own-encoder.md and of kinds of folders in docs/results/encoders/kinds.md: python -m docs.make_families

It computes how far realmctl is from transformers and sentence-transformers on the tiny random models of the tests. The tests hold each
deviation below 1e-5 and say which stages run, and a test compares the table with them.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import numpy as np

import realmctl
from realmctl.extras.hub.exports.hub_export import export
from realmctl.imports.encoder_retriever import EncoderSettings, import_encoder
from realmctl.tokens.tokenizer import Tokenizer
from tests.extras.families import test_kinds
from tests.extras.families.test_families import beside_transformers
from tests.extras.hub.imports.test_import_families import TEXTS, imported, sentence_folder
from tests.fixtures import families, kinds

PAGE = Path(__file__).parent / "how-to" / "own-encoder.md"
OF_KINDS = Path(__file__).parent / "results" / "encoders" / "kinds.md"
KINDS = re.compile(r"(<!-- kinds: python -m docs.make_families -->\n).*?(<!-- /kinds -->)", re.DOTALL)
TABLE = re.compile(r"(<!-- families: python -m docs.make_families -->\n).*?(<!-- /families -->)", re.DOTALL)
TOKENIZERS = {
    "bert": "WordPiece",
    "roberta": "byte-level BPE",
    "xlm-roberta": "Unigram",
    "camembert": "Unigram",
    "mpnet": "WordPiece with `<s>`",
    "modernbert": "byte-level BPE",
}
EXCEPT = {"modernbert": "all but `retromae-init`"}
KINDS_HEAD = """| kind of folder | frame of a text | pooling | width | queries | blocks | export | gradients |
|---|---|---|--:|--:|--:|--:|--:|
"""
HEAD = """| `model_type` | tokenizer | frame of two texts | stages | states | log-probabilities | gradients | imported vectors |
|---|---|---|---|--:|--:|--:|--:|
"""


def row(model_type: str, folder: Path) -> str:
    """Return the line of a family."""
    families.tokenizer(model_type).save_pretrained(folder / "tokenizer")
    words = Tokenizer.load(folder)
    ours, theirs = beside_transformers(model_type, words)
    model = sentence_folder(model_type, folder)
    vectors = realmctl.load(imported(folder), precision="fp32").encode_queries(TEXTS)
    apart = [
        float((ours[0] - theirs[0]).abs().max()),
        float((ours[1] - theirs[1]).abs().max()),
        max(float((ours[2][name] - gradient).abs().max()) for name, gradient in theirs[2].items()),
        float(np.abs(vectors - model.encode_query(TEXTS)).max()),
    ]
    cls, sep = words.names[2:4]
    frame = f"`{cls} x {sep * len(words.frame.between)} y {sep}`"
    cells = [f"`{model_type}`", TOKENIZERS[model_type], frame, EXCEPT.get(model_type, "all")]
    return "| " + " | ".join([*cells, *map(rounded, apart)]) + " |\n"


def kind_row(kind: str, folder: Path) -> str:
    """Return the line of a kind of folder: how far vectors are from sentence-transformers', and gradients from transformers'."""
    path = kinds.KINDS[kind](folder / "kind")
    model, made = test_kinds.theirs(path), import_encoder(path, None, None, EncoderSettings(), folder / "retriever")
    loaded, words, _ = test_kinds.ours(made)
    texts = kinds.texts(64)
    asked, told = (test_kinds.unit(encode(texts)) for encode in (model.encode_query, model.encode_document))
    apart = [
        np.abs(test_kinds.queries(made, texts) - asked).max(),
        np.abs(test_kinds.blocks(made, texts, [""] * len(texts), 32) - told).max(),
    ]
    separate = loaded.towers == "separate"
    export(made.path, folder / "export", "block" if separate else None)
    apart.append(np.abs(test_kinds.unit(test_kinds.theirs(folder / "export").encode_document(texts)) - told).max())
    gradients = test_kinds.gradients_apart(kind, folder / "gradients") if kind in kinds.MODELS else None
    frame = " ".join(
        [
            *map(words.tokenizer.id_to_token, words.frame.before),
            "x",
            *map(words.tokenizer.id_to_token, words.frame.after),
        ]
    )
    of_blocks = loaded.block_tower or loaded.query_tower
    pooling = ", ".join(dict.fromkeys([loaded.query_tower.pooling, of_blocks.pooling]))
    cells = [
        f"`{kind}`",
        f"`{frame.replace('|', chr(92) + '|')}`",
        f"`{pooling}`",
        str(loaded.projection),
        *map(rounded, apart),
    ]
    return "| " + " | ".join([*cells, "" if gradients is None else rounded(gradients)]) + " |\n"


def rounded(value: float) -> str:
    """Return a deviation with one digit."""
    return f"{value:.0e}".replace("e-0", "e-").replace("0e+00", "0")


def main() -> None:
    """Run the command line."""
    rows = []
    for model_type in families.TYPES:
        with tempfile.TemporaryDirectory() as folder:
            rows.append(row(model_type, Path(folder)))
    text = TABLE.sub(lambda match: match[1] + HEAD + "".join(rows) + match[2], PAGE.read_text(encoding="utf-8"))
    PAGE.write_text(text, encoding="utf-8")
    of_kinds = []
    for kind in kinds.KINDS:
        with tempfile.TemporaryDirectory() as folder:
            of_kinds.append(kind_row(kind, Path(folder)))
    text = OF_KINDS.read_text(encoding="utf-8")
    text = KINDS.sub(lambda match: match[1] + KINDS_HEAD + "".join(of_kinds) + match[2], text)
    OF_KINDS.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
