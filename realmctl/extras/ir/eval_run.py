"""`realmctl eval-run`: nDCG, MAP, recall and other measures of a ranking."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from realmctl.artifacts import Artifact, Writer, require_descent
from realmctl.errors import ConfigError
from realmctl.pipeline import Stage, help_texts, reads, setting, source

JUDGED, ANSWERED = "nDCG@10 AP RR@10 R@100", "Success@1 Success@5 Success@20 Success@100 RR@10"


def check_measures(flag: str, names: str) -> None:
    """Check the names of measures before anything is made for them. Errors: as of `parsed`."""
    from realmctl.extras.ir.ranking.measures import parsed

    parsed(names)


class EvalRun(Stage):
    """Measure a ranking: nDCG@10, MAP, MRR@10 and recall, computed by ir-measures.

    With --qrels, the judgements of a file decide what is relevant. With --questions, a block is relevant if it holds an
    answer to the question as words, as eval-em counts; Success@k is then eval-em's recall@k. Of equal scores the greater id is
    ranked first, as by trec_eval.
    """

    makes = "ranking-scores"
    headline = ("*",)

    ranking: Artifact | None = reads("ranking", help="Ranking of rank.", replaced_by=("run_file",), default=None)
    blocks: Artifact | None = reads(
        "blocks",
        help="With --questions: the blocks that were searched.",
        unused_when=lambda given: given.get("questions") is None,
        default=None,
    )
    run_file: Path | None = source("TREC run of any system, instead of --ranking.", default=None)
    qrels: Path | None = source("Relevance judgements, or a BEIR folder.", default=None)
    questions: Path | None = source(help_texts.QUESTIONS, default=None)
    measures: str | None = setting(
        f"Measures by their names in ir-measures, separated by spaces. Default: {JUDGED}; with --questions {ANSWERED}.",
        default=None,
        check=check_measures,
    )
    without_same_id: bool = setting(
        "Leave out a document that has the id of its query, unless it is judged relevant, which BEIR leaves out too. Queries of ArguAna "
        "are documents.",
        default=False,
        used_with="qrels",
    )
    regex_answers: bool | None = setting(help_texts.REGEX_ANSWERS, default=None, used_with="questions")
    answer_field: str | None = setting(help_texts.ANSWER_FIELD, default=None, used_with="questions")

    def check(self) -> None:
        if (self.qrels is None) == (self.questions is None):
            raise ConfigError("eval-run needs one of --qrels and --questions, which say what is relevant.")
        if (self.ranking is None) == (self.run_file is None):
            raise ConfigError("eval-run measures one ranking. Name --ranking or --run-file, and not both.")
        if self.questions is not None:
            if self.ranking is None or self.blocks is None:
                raise ConfigError(
                    "--questions needs a ranking of rank and its blocks, in which the answers are looked for. Name "
                    "--ranking and --blocks, or use --qrels."
                )
            require_descent(self.ranking, self.blocks)
        check_measures("--measures", self._measures())

    def _measures(self) -> str:
        return self.measures or (JUDGED if self.questions is None else ANSWERED)

    def run(self, out: Writer) -> Mapping[str, object]:
        if self.qrels is not None:
            from realmctl.extras.ir.ranking.measures import measure_by_qrels

            run = self.run_file or _run_of(self.ranking)
            return measure_by_qrels(run, self.qrels, self._measures(), out, self.without_same_id)
        from realmctl.extras.ir.ranking.answer_relevance import measure_by_answers
        from realmctl.questions.questions import read_questions

        assert self.questions is not None and self.ranking is not None and self.blocks is not None
        questions = read_questions(self.questions, is_regex=self.regex_answers, answer_field=self.answer_field)
        return measure_by_answers(self.ranking, self.blocks, questions, self._measures(), out)


def _run_of(ranking: Artifact | None) -> Path:
    assert ranking is not None
    return ranking.file("run.trec")
