"""realmctl: retrieval-augmented language-model pre-training, from a Wikipedia dump to an EM score.

    import realmctl

    qa = realmctl.load_qa_model("artifacts/qa-model")         # an artifact, opened for use
    print(qa.ask("Who wrote it?").best.text)
    blocks = realmctl.open_artifact("artifacts/blocks")       # its manifest, lineage and files
    realmctl.stages.Tag(blocks=blocks).make("artifacts/spans")

Importing this package imports nothing heavy: each name is resolved at its first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from realmctl.version import __version__

if TYPE_CHECKING:
    from realmctl import stages
    from realmctl.artifacts import Artifact, open_artifact
    from realmctl.errors import RealmctlError
    from realmctl.loading import load, load_blocks, load_index, load_model, load_qa_model, load_retriever, load_search

__all__ = [
    "Artifact",
    "RealmctlError",
    "__version__",
    "load",
    "load_blocks",
    "load_index",
    "load_model",
    "load_qa_model",
    "load_retriever",
    "load_search",
    "open_artifact",
    "stages",
]

_MODULES = {
    "Artifact": "realmctl.artifacts",
    "RealmctlError": "realmctl.errors",
    "load": "realmctl.loading",
    "load_blocks": "realmctl.loading",
    "load_index": "realmctl.loading",
    "load_model": "realmctl.loading",
    "load_qa_model": "realmctl.loading",
    "load_retriever": "realmctl.loading",
    "load_search": "realmctl.loading",
    "open_artifact": "realmctl.artifacts",
    "stages": "realmctl.stages",
}

if not TYPE_CHECKING:  # so that a type checker still reports a name that does not exist

    def __getattr__(name: str) -> object:
        """Resolve a public name at its first use and keep it."""
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        module = import_module(_MODULES[name])
        value = module if name == "stages" else getattr(module, name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__} - {"TYPE_CHECKING", "import_module"})
