"""The commands in the order in which people use them: the groups of `realmctl --help` and of the reference's pages."""

from __future__ import annotations

from collections.abc import Mapping

GROUPS: Mapping[str, tuple[str, ...]] = {
    "First look": ("demo", "index-docs", "adapt", "doctor"),
    "Documents and spans": ("chunk", "revise", "tag"),
    "Encoders and retrievers": (
        "import",
        "mlm-init",
        "condenser-init",
        "retromae-init",
        "ict-init",
        "spider-init",
        "generate-queries",
        "mine-negatives",
        "dpr-finetune",
        "export",
    ),
    "Index and search": ("embed", "build-index", "search", "rank", "eval-run", "collect", "eval-beir", "eval-cloze"),
    "Pre-training": ("pretrain", "refresh", "eval-utility", "fill-mask"),
    "Questions and answers": ("split", "finetune", "eval-em", "score", "ask", "serve", "report"),
    "Baselines": ("lm-init", "lm-finetune", "build-datastore", "eval-knn-lm"),
    "Runs and artifacts": ("run", "schema", "plan", "ls", "show", "compare", "pin", "verify", "gc"),
}
OTHERS = "More commands"


def group_of(command: str) -> str:
    """Return the group of a command; OTHERS for one that no group names, such as a new stage."""
    return next((group for group, names in GROUPS.items() if command in names), OTHERS)


def place_of(command: str) -> tuple[int, int]:
    """Return a key that sorts commands in order of use; those that no group names come last."""
    for place, names in enumerate(GROUPS.values()):
        if command in names:
            return place, names.index(command)
    return len(GROUPS), 0
