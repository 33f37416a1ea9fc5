"""`realmctl adapt`: adapt a retriever to documents without labels, and make them searchable."""

from __future__ import annotations

from realmctl.pipeline import Show, extended
from realmctl.shortcuts.adapt_settings import AdaptSettings


@extended("adapt")
class Adapt(AdaptSettings):
    """Adapt a sentence encoder to documents without labels, and make them searchable. The encoder is kept where no gain is shown.

    The same as `import`, `chunk`, `ict-init`, `eval-cloze`, `embed` and `build-index`. It ends by saying what was gained and how to
    search. After an interruption the same command goes on; a second run finds everything made.
    """

    def run(self, show: Show) -> None:
        show(self.adapt(), self.told)
