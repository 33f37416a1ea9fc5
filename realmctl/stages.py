"""The stages as Python classes: `realmctl.stages.Embed(blocks=..., retriever=...).make("w/embeddings")`.

A stage is a value: its arguments are the fields that are flags on the command line, and an input artifact may be an
artifact that another stage's `make` returned, or a path. `make` returns the committed artifact, or the version that
already has this recipe.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from realmctl.pipeline.discovery import own_stages

if TYPE_CHECKING:  # those of the core, for editors alone, which cannot discover; a test compares the list
    from stages.build_index import BuildIndex as BuildIndex
    from stages.chunk import Chunk as Chunk
    from stages.embed import Embed as Embed
    from stages.eval_cloze import EvalCloze as EvalCloze
    from stages.eval_em import EvalEm as EvalEm
    from stages.finetune import Finetune as Finetune
    from stages.ict_init import IctInit as IctInit
    from stages.mlm_init import MlmInit as MlmInit
    from stages.pretrain import Pretrain as Pretrain
    from stages.revise import Revise as Revise
    from stages.tag import Tag as Tag

if not TYPE_CHECKING:  # so that a type checker still reports a name that does not exist

    def __getattr__(name: str) -> object:
        """Import the stages at the first use of one, and keep them."""
        if name.startswith("_") and name != "__all__":
            raise AttributeError(name)
        found = {stage.__name__: stage for stage in own_stages().values()}
        globals().update(found, __all__=sorted(found))
        if name not in globals():
            raise AttributeError(f"there is no stage {name!r}; the stages are {', '.join(sorted(found))}")
        return globals()[name]


def __dir__() -> list[str]:
    return sorted(stage.__name__ for stage in own_stages().values())
