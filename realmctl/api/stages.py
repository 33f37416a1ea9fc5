"""The stages as Python classes: `realmctl.stages.Embed(blocks=..., retriever=...).make("w/embeddings")`.

A stage is a value: its arguments are the fields that are flags on the command line, and an input artifact may be an
artifact that another stage's `make` returned, or a path. `make` returns the committed artifact, or the version that
already has this recipe.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from realmctl.pipeline.discovery import own_stages

if TYPE_CHECKING:
    from stages.build_datastore import BuildDatastore
    from stages.build_index import BuildIndex
    from stages.chunk import Chunk
    from stages.condenser_init import CondenserInit
    from stages.dpr_finetune import DprFinetune
    from stages.embed import Embed
    from stages.eval_em import EvalEm
    from stages.eval_knn_lm import EvalKnnLm
    from stages.eval_run import EvalRun
    from stages.eval_utility import EvalUtility
    from stages.finetune import Finetune
    from stages.ict_init import IctInit
    from stages.lm_finetune import LmFinetune
    from stages.lm_init import LmInit
    from stages.mlm_init import MlmInit
    from stages.pretrain import Pretrain
    from stages.revise import Revise
    from stages.search import Search
    from stages.spider_init import SpiderInit
    from stages.tag import Tag

__all__ = [
    "BuildDatastore",
    "BuildIndex",
    "Chunk",
    "CondenserInit",
    "DprFinetune",
    "Embed",
    "EvalEm",
    "EvalKnnLm",
    "EvalRun",
    "EvalUtility",
    "Finetune",
    "IctInit",
    "LmFinetune",
    "LmInit",
    "MlmInit",
    "Pretrain",
    "Revise",
    "Search",
    "SpiderInit",
    "Tag",
]

if not TYPE_CHECKING:  # so that a type checker still reports a name that does not exist

    def __getattr__(name: str) -> object:
        """Import the stages at the first use of one, and keep them."""
        if name.startswith("_"):
            raise AttributeError(name)
        found = {stage.__name__: stage for stage in own_stages().values()}
        globals().update(found)
        if name not in found:
            raise AttributeError(f"there is no stage {name!r}; the stages are {', '.join(sorted(found))}")
        return found[name]


def __dir__() -> list[str]:
    return sorted(__all__)
