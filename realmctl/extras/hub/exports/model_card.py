"""The model card of an exported folder: a README.md that says what the model is, how to load it and how it was made.

Its header is huggingface_hub's ModelCardData (huggingface.co/docs/hub/model-cards).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from huggingface_hub import EvalResult, ModelCardData

from realmctl.artifacts import Artifact

RETRIEVER_USE = """```python
from sentence_transformers import SentenceTransformer

model = SentenceTransformer("{name}")
queries = model.encode(["who wrote it"])
blocks = model.encode([("Title", "The body of the block.")])
scores = queries @ blocks.T  # inner products, not normalised
```"""
BERT_USE = """```python
from transformers import AutoModel, AutoTokenizer

model, tokenizer = AutoModel.from_pretrained("{name}"), AutoTokenizer.from_pretrained("{name}")
```"""
WHAT = {
    "retriever": "A dense retriever: it embeds queries and blocks so that their inner product ranks the blocks.",
    "encoder": "A BERT, trained as the start of a retriever or a reader.",
    "reader": "A BERT, pre-trained to fill masks with the help of retrieved blocks (REALM).",
    "span-reader": "A BERT that reads answers from retrieved blocks. Its span head is not in this folder.",
}


SCORED = {"scores": ("question-answering", "Question answering"), "ranking-scores": ("text-retrieval", "Retrieval")}
"""{kind of scores: (task of the hub, its name)}."""


@dataclass(frozen=True, kw_only=True)
class CardFacts:
    """What only its author knows of a model: names and identifiers of the hub. `scores` are artifacts of eval-em and eval-run."""

    license: str | None = None
    language: Sequence[str] = ()
    base_model: str | None = None
    datasets: Sequence[str] = ()
    scores: Sequence[Artifact] = ()

    def results(self) -> Iterator[EvalResult]:
        """The numbers of the scores, as the hub's model-index has them. The data are named by the scores' files."""
        for scores in self.scores:
            task, task_name = SCORED[scores.kind]
            files = [file.name for files in scores.manifest.sources.values() for file in files]
            data = ", ".join(files) or scores.path.parent.name
            for name, value in scores.metrics.items():
                if isinstance(value, float):
                    yield EvalResult(
                        task_type=task,
                        task_name=task_name,
                        dataset_type="custom",
                        dataset_name=data,
                        metric_type=name,
                        metric_value=value,
                    )


NO_FACTS = CardFacts()


def write_card(
    artifact: Artifact, folder: Path, name: str, side: str | None = None, facts: CardFacts = NO_FACTS
) -> None:
    """Write README.md into an exported folder.

    Args:
        artifact: what was exported.
        folder: the folder.
        name: the folder or hub id to load the model from, for the example.
        side: the tower that was exported: query, block, or None.
        facts: what the artifact does not know.
    """
    retriever = artifact.kind == "retriever"
    library, task = (
        ("sentence-transformers", "sentence-similarity") if retriever else ("transformers", "feature-extraction")
    )
    tower = f" This is its {side} tower." if side else ""
    results = [*facts.results()]
    header = ModelCardData(
        language=[*facts.language] or None,
        license=facts.license,
        base_model=facts.base_model,
        datasets=[*facts.datasets] or None,
        library_name=library,
        pipeline_tag=task,
        tags=["realm", "retrieval"],
        model_name=Path(name).name if results else None,
        eval_results=results or None,
    )
    parts = [
        f"---\n{header}\n---",
        f"# {Path(name).name}",
        WHAT[artifact.kind] + tower,
        "## Use",
        (RETRIEVER_USE if retriever else BERT_USE).format(name=name),
        "## Training",
        f"Made by realmctl {artifact.manifest.realmctl}, stage `{artifact.manifest.stage}`.",
        _table(("setting", "value"), artifact.settings),
        _table(
            ("result", "value"),
            {name: value for name, value in artifact.metrics.items() if not isinstance(value, dict | list)},
        ),
        f"Content {artifact.content}, recipe {artifact.recipe}.",
    ]
    (folder / "README.md").write_text("\n\n".join(part for part in parts if part) + "\n", encoding="utf-8")


def _table(heads: tuple[str, str], rows: Any) -> str:
    """Return a Markdown table; nothing for no rows."""
    lines = [f"| `{name}` | `{json.dumps(value).replace('|', chr(92) + '|')}` |" for name, value in rows.items()]
    return "\n".join([f"| {heads[0]} | {heads[1]} |", "|---|---|", *lines]) if lines else ""
