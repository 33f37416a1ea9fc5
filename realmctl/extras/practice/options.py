"""What reading practice adds to `mlm-init`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from realmctl.artifacts import Artifact, require_same_vocabulary
from realmctl.errors import ConfigError
from realmctl.pipeline import reads, setting
from realmctl.training.settings.encoder import MlmSettings

if TYPE_CHECKING:
    from realmctl.corpus.corpus import Corpus
    from realmctl.tokens.tokenizer import Tokenizer
    from realmctl.training.mlm import Examples


class PracticeOptions(MlmSettings):
    """Masked language modelling on sentences, each beside a block that restates it."""

    spans: Artifact | None = reads(
        "spans",
        help="Tagged sentences for copy pre-training: each is read with the block that restates it, and salient spans are hidden. Default: "
        "train on blocks alone.",
        explicit_only=True,
        default=None,
    )
    mask_rate: float = setting(
        "Share of the wordpieces that are hidden.", default=0.15, above=0, below=1, used_without="spans"
    )
    practice: Literal["steady", "curriculum"] = setting(
        "Kind of copy pre-training with --spans. steady: blocks that restate the sentence. curriculum: copies of the sentence "
        "first, then noisy copies, other blocks, random blocks and null documents.",
        default="steady",
        left_out_at="steady",
    )
    window: int = setting(
        "Window of a block in wordpieces.",
        default=64,
        at_least=8,
        left_out_at=64,
        used_with="practice=curriculum",
        advanced=True,
    )
    length: int = setting(
        "Longest example in wordpieces, [CLS] and [SEP] included.",
        default=128,
        at_least=3,
        at_most=512,
        used_without="spans",
    )

    def check(self) -> None:
        super().check()
        if self.practice == "curriculum" and self.spans is None:
            raise ConfigError("--practice curriculum needs --spans, the sentences to copy.")
        if self.spans:
            require_same_vocabulary(self.blocks, self.spans)

    def examples(self, corpus: Corpus, words: Tokenizer) -> Examples | None:
        if self.spans is None:
            return super().examples(corpus, words)
        from realmctl.extras.practice.reading_practice import practice_of

        return practice_of(self.spans, corpus, words, self.window if self.practice == "curriculum" else None)
