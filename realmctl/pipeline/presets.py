"""`--preset`: named sets of settings, as in the papers and their official code.

A preset changes the defaults of the stages that it covers; a setting that is given explicitly wins. The manifest holds the
values, not the name of the preset. Lengths and sizes that follow from an input (the joint input of 384 wordpieces, dropout
0.1, the span head of 256) are not here. Neither are the steps of Condenser and coCondenser: their recipes count 8 passes over
the corpus, so --steps is 8 times the blocks (or documents) divided by the batch size. Rooms offer presets of their stages (`realmctl.presets`).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, get_args

from realmctl.deviations import (
    EvalDeviation,
    FinetuneDeviation,
    IctDeviation,
    PretrainDeviation,
    TagDeviation,
)
from realmctl.errors import ConfigError
from realmctl.pipeline import removed
from realmctl.registry import joined, object_at, object_misfit, offered, require_fit

Settings = Mapping[str, Any]

_CHUNK: Settings = {"max_wordpieces": 288, "long_sentences": "keep", "long_titles": "keep", "keep_lists": False}
_BERT: Settings = {"optimizer": "bert", "warmup": None}  # None: min(10000, steps / 10)
_EXACT: Settings = {"type": "exact"}
_ORQA: Settings = {
    **_BERT,
    "batch_size": 1,
    "lr": 1e-5,
    "retriever_beam": 5000,
    "reader_beam": 5,
    "reader_length": 320,
    "span_width": 10,
    "objective": "orqa",
    "official": get_args(FinetuneDeviation),
}
_PAPER: Mapping[
    str, Settings
] = {  # Guu et al. 2020, sections 3.4, 4.3 and appendix A; ICT: Lee et al. 2019, section 5.1
    "chunk": {"max_wordpieces": 288},
    "ict-init": {**_BERT, "steps": 100_000, "batch_size": 4096, "lr": 1e-4, "mask_rate": 0.9},
    "pretrain": {
        **_BERT,
        "steps": 200_000,
        "batch_size": 512,
        "lr": 3e-5,
        "candidates": 8,
        "null_document": True,
        "exclude_own": "block",
        "marginal": "sequence",
        "masking": "salient",
        "refresh": "background",
        "refresh_every": 500,
    },
    "finetune": {"objective": "paper", "reader_beam": 5},
    "eval-em": {"reader_beam": 5},
}
"""What the papers say, and no more. `realm` and `orqa-*` are the official code."""
_EVAL: Settings = {"scorer": "orqa", "reader_beam": 5, "official": get_args(EvalDeviation)}

PRESETS: Mapping[str, Mapping[str, Settings]] = {
    "paper": _PAPER,
    "ict": {
        "chunk": _CHUNK,
        "ict-init": {
            **_BERT,
            "steps": 100_000,
            "batch_size": 4096,
            "lr": 1e-4,
            "mask_rate": 0.9,
            "projection": 128,
            "query_length": 64,
            "pooling": "pooler",
            "towers": "shared",
            "projection_norm_eps": 1e-3,
            "official": get_args(IctDeviation),
        },
    },
    "realm": {
        "chunk": _CHUNK,
        "tag": {"query_length": 96, "max_masks": 10, "dates": True, "official": get_args(TagDeviation)},
        "embed": {"dtype": "float32"},
        "build-index": _EXACT,
        "pretrain": {
            **_BERT,
            "steps": 200_000,
            "batch_size": 512,
            "lr": 3e-5,
            "candidates": 8,
            "marginal": "token",
            "masking": "salient",
            "refresh": "background",
            "refresh_every": 500,
            "official": get_args(PretrainDeviation),
        },
    },
    "orqa-nq": {"build-index": _EXACT, "finetune": {**_ORQA, "steps": 300_000}, "eval-em": _EVAL},
    "orqa-wq": {"build-index": _EXACT, "finetune": {**_ORQA, "steps": 205_020}, "eval-em": _EVAL},
}


def is_of_the_paper(command: str, name: str, default: object) -> bool:
    """Return whether the default of a stage's setting is a value that the paper gives."""
    of_paper = _PAPER.get(command, {})
    return default is not None and name in of_paper and of_paper[name] == default


@cache
def presets() -> Mapping[str, Mapping[str, Settings]]:
    """{preset: {stage: settings}}: those of the core, then those of the rooms."""
    known = joined("realmctl.presets", dict[str, Any](PRESETS), offered("realmctl.presets"))
    return {name: _of_room(each) if isinstance(each, str) else each for name, each in known.items()}


def _of_room(where: str) -> Any:
    return require_fit(found := object_at(where), where, object_misfit(found, Mapping))


def names_for(command: str) -> list[str]:
    """Names of the presets that cover a stage."""
    return [name for name, stages in presets().items() if command in stages]


def settings_of(name: str, command: str) -> Settings:
    """The settings of a preset for a stage. Raises ConfigError for a preset that is unknown or does not cover the stage."""
    if name not in names_for(command):
        if told := removed.advice(command, f"--preset {name}"):
            raise ConfigError(told)
        fitting = ", ".join(names_for(command)) or "none"
        raise ConfigError(f"preset {name!r} does not cover {command}. Use one of: {fitting}.")
    return presets()[name][command]
