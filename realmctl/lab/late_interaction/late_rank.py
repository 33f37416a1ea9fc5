"""`realmctl late-rank`: rank blocks by MaxSim, all of them or those of a first ranking."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from realmctl.artifacts import Artifact, Writer, require_descent
from realmctl.errors import ConfigError
from realmctl.pipeline import Stage, check_device, help_texts, reads, runtime, setting, source


class LateRank(Stage):
    """Rank the blocks for each query by MaxSim of their tokens, and write the ranking as a TREC run.

    With --ranking only the blocks of that ranking of rank are compared, such as the hits of dense retrieval: a second stage. Without it all are, which is
    exact and reads every vector. eval-run measures both.
    """

    makes = "ranking"
    headline = ("queries", "hits", "without_hits")

    blocks: Artifact = reads("blocks", help="Blocks that were embedded.")
    late_index: Artifact = reads("late-index", help="Their vectors.")
    ranking: Artifact | None = reads(
        "ranking", help="Ranking of blocks whose hits are ranked anew.", explicit_only=True, default=None
    )
    queries: Path = source("Queries: a BEIR folder or its queries.jsonl, a table of id and text, or a question set.")
    qrels: Path | None = source(
        "Judgements, or a BEIR folder. Only the queries that they judge are ranked.", default=None
    )
    top: int = setting("Number of blocks in the ranking of a query.", default=100, at_least=1)
    device: str = runtime(help_texts.DEVICE, default="auto", check=check_device)

    def check(self) -> None:
        require_descent(self.late_index, self.blocks)
        if self.ranking is not None:
            require_descent(self.ranking, self.blocks)
            from realmctl.artifacts.description import RANKING, RankingDescription, read_description

            if read_description(self.ranking.file(RANKING), RankingDescription).unit != "block":
                raise ConfigError(
                    f"{self.ranking} ranks documents, and MaxSim compares blocks. Make it with --unit block."
                )

    def run(self, out: Writer) -> Mapping[str, object]:
        from realmctl.lab.late_interaction.late_index import write_ranking

        return write_ranking(self, out)
