"""`realmctl mine-negatives`: hard negatives of a ranking, as training data for retrievers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from realmctl.artifacts import Artifact, Writer, require_descent
from realmctl.errors import ConfigError
from realmctl.lab.dpr.mining_settings import MiningSettings
from realmctl.pipeline import Stage, check_device, help_texts, reads, runtime, setting, source


class MineNegatives(MiningSettings, Stage):
    """Mine hard negatives: blocks that a ranking puts high and that are not relevant to the question.

    With --qrels, the judgements of a file decide what is relevant. With --questions, a block is relevant if it holds an answer.
    train.jsonl is in the layout of Tevatron; dpr-finetune --passages reads it, and export --form triplets writes it for
    sentence-transformers. The ranking comes from rank with --unit block, of any method.
    """

    makes = "negatives"
    headline = ("questions", "negatives", "too_close", "without_positive", "without_negative", "without_hits")

    ranking: Artifact = reads("ranking", help="Ranking of blocks.")
    blocks: Artifact = reads("blocks", help="Blocks that were ranked.")
    qrels: Path | None = source("Relevance judgements, or a BEIR folder, whose split train is taken.", default=None)
    questions: Path | None = source(help_texts.QUESTIONS, default=None)
    regex_answers: bool | None = setting(help_texts.REGEX_ANSWERS, default=None, used_with="questions")
    answer_field: str | None = setting(help_texts.ANSWER_FIELD, default=None, used_with="questions")
    cross_encoder: str | None = source(
        "Cross-encoder whose scores are compared in place of the ranking's: what `rank --rerank` takes. Of a ranking that it has reranked it reads what has no score yet; REALM's reader reads all, since its scores alone are no sums with the search's.",
        default=None,
        hub=True,
    )
    device: str = runtime(help_texts.DEVICE, default="auto", check=check_device)

    def check(self) -> None:
        if (self.qrels is None) == (self.questions is None):
            raise ConfigError("mine-negatives needs one of --qrels and --questions, which say what is relevant.")
        require_descent(self.ranking, self.blocks)

    def run(self, out: Writer) -> Mapping[str, object]:
        from realmctl.extras.ir.ranking.answer_relevance import answer_relevance
        from realmctl.extras.ir.ranking.beir import qrels_file
        from realmctl.extras.ir.ranking.qrels import read_qrels
        from realmctl.extras.ir.ranking.trec import trec_named
        from realmctl.lab.dpr.negatives import mine
        from realmctl.questions.questions import read_questions
        from realmctl.retrieval.search.reranking import Reranking

        if self.qrels is not None:
            judged = trec_named(read_qrels(qrels_file(self.qrels, "train")))
        else:
            assert self.questions is not None
            questions = read_questions(self.questions, is_regex=self.regex_answers, answer_field=self.answer_field)
            judged = answer_relevance(self.ranking, self.blocks, questions)
        relevant = {query: {name for name, value in of.items() if value > 0} for query, of in judged.items()}
        scorer = Reranking.of(self.cross_encoder, None, self.device)
        by = {self.ranking.manifest.inputs.get(name) for name in ("model", "rerank")} - {None}
        # a likelihood alone, which is what a passage without a hit has, is another scale than one that the search's logit was added to
        is_alike = scorer is not None and not scorer.model.is_likelihood
        is_fused = any(self.ranking.settings.get(name) for name in ("fused", "rerank_fused"))  # its scores are of ranks
        has_its_scores = is_alike and not is_fused and self.origin().inputs.get("cross_encoder") in by
        return mine(self.ranking, self.blocks, relevant, self, scorer, out, has_its_scores=has_its_scores)
