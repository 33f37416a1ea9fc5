"""`realmctl cut-queries`: pieces of sentences as queries of their blocks, where nobody wrote questions."""

from __future__ import annotations

from collections.abc import Mapping

from realmctl.artifacts import Artifact, Writer
from realmctl.pipeline import Stage, reads, setting
from realmctl.pipeline.values import LARGEST_INT


class CutQueries(Stage):
    """Cut pieces of sentences out of blocks, as queries that these blocks answer: training data where there are no questions.

    The result is a folder in BEIR's layout, as generate-queries makes one of questions that a language model wrote. The sentences that
    eval-cloze measures with, by its seeds 0 and 1, are left out.
    """

    makes = "queries"
    headline = ("queries",)

    blocks: Artifact = reads("blocks", help="Blocks to cut from.")
    sample: int = setting("Blocks that give a query, drawn at random; copies give one.", default=5000, at_least=1)
    words: int = setting("Words of a query.", default=10, at_least=2, at_most=100)
    sentences: int = setting("Sentences that eval-cloze measures with.", default=1000, at_least=0, advanced=True)
    held_out: Artifact | None = reads(
        "queries",
        help="Questions of generate-queries whose documents give no query.",
        explicit_only=True,
        default=None,
    )
    seed: int = setting("Seed of the draws.", default=0, at_least=0, at_most=LARGEST_INT)

    def run(self, out: Writer) -> Mapping[str, int]:
        from realmctl.lab.teachers.cutting import write_queries

        return write_queries(self, out)
