"""Training of an encoder: `mlm-init`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from realmctl.artifacts import Artifact
from realmctl.errors import ConfigError
from realmctl.pipeline import help_texts, reads, setting, source
from realmctl.training.names import RANDOM, head_names
from realmctl.training.settings.base import Optimizer, TrainSettings

if TYPE_CHECKING:
    from realmctl.corpus.corpus import Corpus
    from realmctl.tokens.tokenizer import Tokenizer
    from realmctl.training.mlm import Examples


class MlmSettings(TrainSettings):
    """Masked language modelling, on blocks. Rooms add options to `mlm-init` by subclasses (`realmctl.options.mlm-init`)."""

    blocks: Artifact = reads("blocks", help="Blocks to train on.")
    bert: str = source(
        "BERT to start from: a folder, a hub id, or scratch:SIZE, where SIZE is tiny, mini, small, medium, base or such as L2-H128-A4.",
        default="scratch:tiny",
        literals=("scratch:",),
        hub=True,
    )
    head_init: str = setting(
        "Masked-language-model head at the start. random: random numbers where the BERT has none. ridge: fitted to the states of visible wordpieces.",
        default=RANDOM,
        choices=head_names,
        advanced=True,
    )
    steps: int = setting("Training steps. 0 keeps the head of --head-init.", default=10_000, at_least=0)
    layer_decay: float = setting(help_texts.LAYER_DECAY, default=1.0, above=0, at_most=1, advanced=True)
    optimizer: Optimizer = setting(help_texts.OPTIMIZER, default="adamw", advanced=True)
    mask_rate: float = setting("Share of the wordpieces that are hidden.", default=0.15, above=0, below=1)
    length: int = setting(
        "Longest example in wordpieces, [CLS] and [SEP] included.",
        default=128,
        at_least=3,
        at_most=512,
    )
    dropout: float | None = setting(
        "Dropout, from 0 to below 1, which later stages take too. Default: the loaded BERT's own, and 0.1 from scratch.",
        default=None,
        at_least=0,
        below=1,
        advanced=True,
    )

    def check(self) -> None:
        if self.steps == 0 and self.head_init == RANDOM:
            raise ConfigError("--steps 0 changes nothing. Add --head-init ridge, which fits a head, or take steps.")

    def examples(self, corpus: Corpus, words: Tokenizer) -> Examples | None:
        """Return the examples to train on; None for the blocks with BERT's masks."""
        return None
