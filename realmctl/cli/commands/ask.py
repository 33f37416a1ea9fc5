"""`realmctl ask`: answer one question."""

from __future__ import annotations

from realmctl.pipeline import Show, extended
from realmctl.retrieval.answering.settings import AskSettings


@extended("ask")
class Ask(AskSettings):
    """Answer a question. Each answer comes with its block and the retrieval probability p(z|x) of that block.

    With --without, the question is answered again without some blocks, and the probability of the former answer is printed before and after.
    """

    computes = True

    def run(self, show: Show) -> None:
        asked = self.answer()
        show(asked.record(), lambda _: str(asked))
