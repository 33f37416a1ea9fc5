"""The settings of `tag`: which salient spans are found, and which of them are kept."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from realmctl.deviations import TagDeviation, explained
from realmctl.errors import ConfigError, InputError
from realmctl.pipeline import Settings, setting
from realmctl.registry import Registry

TAGGERS = Registry(
    "tagger",
    group="realmctl.taggers",
    core={
        "auto": "realmctl.spans.taggers:AutoTagger",
        "anchors": "realmctl.spans.taggers:AnchorTagger",
        "rules": "realmctl.spans.taggers:RuleTagger",
    },
)
"""The taggers without a model by name."""
MASKINGS = Registry(
    "masking",
    group="realmctl.maskings",
    core={
        "salient": "realmctl.spans.masking:Salient",
        "random-span": "realmctl.spans.masking:RandomSpan",
        "random-uniform": "realmctl.spans.masking:RandomUniform",
    },
)
WITH_MODEL = ("spacy", "hf")
NUMERIC_LABELS = frozenset({"CARDINAL", "ORDINAL", "PERCENT", "QUANTITY", "MONEY", "TIME"})
"""OntoNotes labels (spaCy's English pipelines) that are neither names nor dates. They are kept only if `labels` names them."""


def _check_tagger(flag: str, tagger: str) -> None:
    kind, _, model = tagger.partition(":")
    if kind not in (WITH_MODEL if model else TAGGERS.names()):
        raise ConfigError(f"{flag} {tagger}: use {', '.join(TAGGERS.names())}, spacy:NAME_OR_PATH or hf:NAME_OR_PATH.")


class TagSettings(Settings):
    """Which spans are found and kept."""

    tagger: str = setting(
        "Tagger that finds the names: anchors (links of a wiki dump), rules (capital letters, English), spacy:NAME_OR_PATH, or"
        " hf:NAME_OR_PATH (token classification). auto: anchors for a document that has links, or else rules.",
        default="auto",
        check=_check_tagger,
    )
    dates: bool = setting(
        "Find dates too, by the rules of the language of the blocks: en, ko, zh, ja, de, fr, es, ru, ar, he, it, pt, nl, pl, sv, cs, uk, tr, vi.",
        default=True,
    )
    labels: tuple[str, ...] = setting(
        "Labels of the spans to keep; repeat the option for several. Default: all but numbers and amounts.", default=()
    )
    max_masks: int = setting("Longest span, in wordpieces. Longer spans are dropped.", default=10, at_least=1)
    query_length: int = setting(
        "Longest query in wordpieces, [CLS] and [SEP] included. Spans beyond it are dropped.", default=96, at_least=3
    )
    official: tuple[TagDeviation, ...] = setting(explained(TagDeviation), default=())

    def wants(self, label: str) -> bool:
        """Return whether spans with this label are kept."""
        return label in self.labels if self.labels else label not in NUMERIC_LABELS


def find_spacy_model(model: str) -> Path:
    """Return the folder of a spaCy pipeline, given as a folder or as an installed package.

    Raises:
        InputError: there is no such pipeline.
    """
    if (Path(model) / "config.cfg").is_file():
        return Path(model)
    package = importlib.util.find_spec(model) if model.isidentifier() else None
    if package is None or package.origin is None:
        raise InputError(
            f"tagger spacy:{model}: no such pipeline is installed, and no such folder holds a config.cfg. "
            f"Install it (python -m spacy download {model}), name its folder, or use --tagger rules."
        )
    return Path(package.origin).parent
