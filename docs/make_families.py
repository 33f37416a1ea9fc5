"""Write the table of families in docs/how-to/own-encoder.md: python -m docs.make_families

It computes how far realmctl is from transformers and sentence-transformers on the tiny random models of the tests. The tests hold each
deviation below 1e-5 and say which stages run, and a test compares the table with them.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import numpy as np

import realmctl
from realmctl.tokens.tokenizer import Tokenizer
from tests.extras.families.test_families import beside_transformers
from tests.extras.hub.imports.test_import_families import TEXTS, imported, sentence_folder
from tests.fixtures import families

PAGE = Path(__file__).parent / "how-to" / "own-encoder.md"
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
    return (
        "| "
        + " | ".join([*cells, *(f"{value:.0e}".replace("e-0", "e-").replace("0e+00", "0") for value in apart)])
        + " |\n"
    )


def main() -> None:
    """Run the command line."""
    rows = []
    for model_type in families.TYPES:
        with tempfile.TemporaryDirectory() as folder:
            rows.append(row(model_type, Path(folder)))
    text = TABLE.sub(lambda match: match[1] + HEAD + "".join(rows) + match[2], PAGE.read_text(encoding="utf-8"))
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
