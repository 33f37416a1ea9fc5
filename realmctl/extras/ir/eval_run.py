"""`realmctl eval-run`: nDCG, MAP, recall and other measures of a ranking."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from realmctl.artifacts import Artifact, Writer, open_artifact, require_descent
from realmctl.errors import ConfigError, MismatchError
from realmctl.pipeline import Stage, extended, help_texts, reads, setting, source

if TYPE_CHECKING:
    from realmctl.extras.ir.ranking.measures import Ranking
    from realmctl.extras.ir.ranking.trec import Relevance

JUDGED, ANSWERED = "nDCG@10 AP RR@10 R@100", "Success@1 Success@5 Success@20 Success@100 RR@10"


def check_measures(flag: str, names: str) -> None:
    """Check the names of measures before anything is made for them. Errors: as of `parsed`."""
    from realmctl.extras.ir.ranking.measures import parsed

    parsed(names)


@extended("eval-run")
class EvalRun(Stage):
    """Measure a ranking: nDCG@10, MAP, MRR@10 and recall, computed by ir-measures.

    With --qrels, the judgements of a file decide what is relevant. With --questions, a block is relevant if it holds an
    answer to the question as words, as eval-em counts; Success@k is then eval-em's recall@k. Of equal scores the greater id is
    ranked first, as by trec_eval.
    """

    makes = "ranking-scores"
    headline = ("*",)
    also_compared: ClassVar[tuple[str, ...]] = ("ranking",)
    """Kinds of what `measured_alike` measures beside files."""

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
        "Leave out a document with the id of its query, unless it is judged relevant, as BEIR does.",
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

    def measure_names(self) -> list[str]:
        """Names of the measures as they are printed."""
        from realmctl.extras.ir.ranking.measures import parsed

        return [str(measure) for measure in parsed(self._measures())]

    def measured_alike(self, other: Path) -> Mapping[str, Mapping[str, float]] | None:
        """The measures of each query of another ranking, or TREC run, by the same judgements; None for what is neither.

        Raises ConfigError for a TREC run beside --questions, whose blocks are not known, and MismatchError for a ranking of other queries.
        """
        from realmctl.extras.ir.ranking.measures import measured, parsed, require_judged

        ranking = open_artifact(other) if other.is_dir() else None
        if ranking is not None and ranking.kind != "ranking":
            return None
        if ranking is None and self.questions is not None:
            raise ConfigError(
                f"{other} is a TREC run, whose blocks are not known. With --questions name a ranking of rank."
            )
        relevance, rankings = self._judged(ranking, other)
        if self.ranking is not None and ranking is not None:
            one, two = (
                {query: text for query, text in _texts(each).items() if query in relevance}
                for each in (self.ranking, ranking)
            )
            if other_queries := sorted(query for query, _ in one.items() ^ two.items()):
                raise MismatchError(
                    f"--baseline {other} was asked {len(two):,} of the judged queries and this run {len(one):,}: {other_queries[0]!r} is of one alone, or has another text. "
                    "Rank the same queries for both."
                )
        return dict(measured(parsed(self._measures()), relevance, require_judged(relevance, rankings)))

    def run(self, out: Writer) -> Mapping[str, object]:
        from realmctl.extras.ir.ranking.measures import measure_run
        from realmctl.extras.ir.ranking.trec import qrels_lines

        relevance, rankings = self._judged(self.ranking, self.run_file)
        if self.questions is not None:
            with out.file("qrels.trec").open("w", encoding="utf-8") as file:
                file.writelines(qrels_lines(relevance))
        return measure_run(self._measures(), relevance, rankings, out, _texts(self.ranking))

    def _judged(self, ranking: Artifact | None, run_file: Path | None) -> tuple[Relevance, Iterable[Ranking]]:
        """The judgements, by the file or by the answers, and the rankings that they judge."""
        run = ranking.file("run.trec") if ranking is not None else run_file
        assert run is not None
        if self.qrels is not None:
            from realmctl.extras.ir.ranking.measures import judged_rankings, with_missing_told

            relevance, rankings = judged_rankings(run, self.qrels, self.without_same_id)
            return relevance, with_missing_told(relevance, rankings, run)
        from realmctl.extras.ir.ranking.answer_relevance import answer_relevance
        from realmctl.extras.ir.ranking.trec import read_run
        from realmctl.questions.questions import read_questions

        assert self.questions is not None and ranking is not None and self.blocks is not None
        require_descent(ranking, self.blocks)
        questions = read_questions(self.questions, is_regex=self.regex_answers, answer_field=self.answer_field)
        return answer_relevance(ranking, self.blocks, questions), read_run(run)


def _texts(ranking: Artifact | None) -> dict[str, str]:
    """The texts of the queries by their ids in the run; none of a run file."""
    from realmctl.extras.ir.ranking.trec import trec_name

    if ranking is None:
        return {}
    with ranking.file("queries.jsonl").open(encoding="utf-8") as lines:
        return {trec_name(query["id"]): query["text"] for query in map(json.loads, lines)}
