"""The settings of `eval-em`."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from realmctl.artifacts import Artifact
from realmctl.deviations import EvalDeviation, explained
from realmctl.extras.ir.ranking.beir import is_beir
from realmctl.pipeline import Precision, Settings, check_device, help_texts, reads, runtime, setting, source
from realmctl.questions.scorers import Scorer
from realmctl.retrieval.names import SEARCHERS, Bm25Tokens

Reading = Literal["mixed", "together"]
"""How a language model reads: each block in a prompt of its own, or all blocks in one."""


def judgements_of(questions: Path | None, qrels: Path | None) -> Path | None:
    """Return the relevance judgements of the questions: those that were named, or a BEIR folder's. None: there are none."""
    return questions if qrels is None and questions is not None and is_beir(Path(questions)) else qrels


class LmReaderSettings(Settings):
    """A language model that reads."""

    reader_lm: str | None = source(
        "Language model that reads blocks in place of realmctl's own reader: a folder or a hub id, of GPT-2's kind (causal) or of T5's.",
        default=None,
        hub=True,
    )
    block_prompt: str | None = setting(
        "text before what is read with a block, with {title} and {block}. The null document has none. Default: the title, the "
        "block on a new line, and an empty line.",
        default=None,
        used_with="reader_lm",
    )
    reader_length: int = setting(
        "longest input, in tokens of the language model. A block is cut at its end.",
        default=512,
        at_least=16,
        at_most=131_072,
        used_with="reader_lm",
    )


class EvalSettings(LmReaderSettings):
    """What is evaluated, a fine-tuned model or a searcher alone, on which questions, and how."""

    qa_model: Artifact | None = reads(
        "qa-model",
        help="Fine-tuned model to evaluate.",
        replaced_by=lambda given: bool(
            given.get("retrieval")
            or given.get("reader_lm")
            or judgements_of(given.get("questions"), given.get("qrels"))
            or (given.get("retriever") and given.get("index"))
        ),
        default=None,
    )
    blocks: Artifact = reads("blocks", help="Blocks to retrieve.")
    retriever: Artifact | None = reads(
        "retriever", help="Retriever to evaluate without a reader.", explicit_only=True, default=None
    )
    index: Artifact | None = reads(
        "index",
        help="Index of that retriever; with a fine-tuned model, index to use instead of its own.",
        instead_of="qa_model",
        default=None,
    )
    retrieval: str | None = setting(
        "Searcher to evaluate without a reader. bm25: BM25 over title and text. dense: --retriever and --index. Other names come"
        " from plug-ins.",
        default=None,
        choices=SEARCHERS.names,
    )
    bm25_stemmer: str | None = setting(help_texts.BM25_STEMMER, default=None)
    bm25_tokens: Bm25Tokens = setting(help_texts.BM25_TOKENS, default="pieces")
    questions: Path = source(help_texts.QUESTIONS)
    qrels: Path | None = source(
        "Relevance judgements. --questions are then queries, whose answers are not read.",
        default=None,
    )
    scorer: Literal["auto", Scorer] = setting(help_texts.SCORER, default="auto", used_with="qa_model|reader_lm")
    regex_answers: bool | None = setting(help_texts.REGEX_ANSWERS, default=None, used_without="qrels")
    answer_field: str | None = setting(help_texts.ANSWER_FIELD, default=None, used_without="qrels")
    reader_beam: int | None = setting(
        "Blocks read per question. Default: as in fine-tuning; 5 with --reader-lm.",
        default=None,
        at_least=1,
        used_with="qa_model|reader_lm",
    )
    reading: Reading = setting(
        "mixed: each block in a prompt of its own, and the answers mixed by p(z|x) (REPLUG). together: all blocks in one prompt.",
        default="mixed",
        used_with="reader_lm",
    )
    prompt: str | None = setting(
        "text with {question} at the question's place, after the block. Default: as in lm-finetune.",
        default=None,
        used_with="reader_lm",
    )
    answer_length: int = setting(
        "longest answer, in tokens of the language model.", default=32, at_least=1, at_most=512, used_with="reader_lm"
    )
    hits: int = setting(
        "Blocks retrieved per question. They are written to retrieved.json, and the recall is counted over them.",
        default=100,
        at_least=1,
    )
    limit: int | None = setting(
        "Evaluate the first questions of the file only, this many. Default: all.", default=None, at_least=1
    )
    official: tuple[EvalDeviation, ...] = setting(
        explained(EvalDeviation),
        default=(),
    )
    all_scorers: bool = runtime(
        "Print the questions on which the scorers disagree, on stderr.", default=False, used_with="qa_model|reader_lm"
    )
    batch_size: int = runtime("Questions per batch.", default=16, at_least=1)
    device: str = runtime(help_texts.DEVICE, default="auto", check=check_device)
    precision: Precision = setting(help_texts.PRECISION, default="auto")
