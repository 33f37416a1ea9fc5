"""realmctl: retrieval-augmented language-model pre-training, from a Wikipedia dump to an EM score.

    import realmctl

    qa = realmctl.load("artifacts/qa-model")                  # any artifact, opened for use
    print(qa.answer("Who wrote it?").best.text)
    blocks = realmctl.open_artifact("artifacts/blocks")       # its manifest, lineage and files
    realmctl.stages.Tag(blocks=blocks).make("artifacts/spans")

Importing this package imports nothing heavy: each name is resolved at its first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from realmctl.version import __version__

if TYPE_CHECKING:
    from realmctl.api import stages
    from realmctl.api.loading import load
    from realmctl.artifacts import Artifact, open_artifact
    from realmctl.errors import RealmctlError

__all__ = ["Artifact", "RealmctlError", "__version__", "load", "open_artifact", "stages"]

_MODULES = {
    "Artifact": "realmctl.artifacts",
    "RealmctlError": "realmctl.errors",
    "load": "realmctl.api.loading",
    "open_artifact": "realmctl.artifacts",
    "stages": "realmctl.api.stages",
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
