"""What a run on documents changed, against what was searched before."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from realmctl.artifacts import Artifact, open_artifact, version_numbers
from realmctl.corpus.corpus import Corpus


def searched_before(workspace: Path) -> Artifact | None:
    """Return the blocks that a workspace's search takes now; None where there are none."""
    series = workspace / "blocks"
    return open_artifact(series) if version_numbers(series) else None


def changes(former: Artifact | None, blocks: Artifact) -> dict[str, int] | None:
    """Return how many documents are changed, removed and added in `blocks`; None where there was nothing before. A moved document is removed and added."""
    if former is None:
        return None
    if former.content == blocks.content:
        return {"changed": 0, "removed": 0, "added": 0}
    before, after = _documents(former), _documents(blocks)
    return {
        "changed": sum(before[name] != after[name] for name in before.keys() & after.keys()),
        "removed": len(before.keys() - after.keys()),
        "added": len(after.keys() - before.keys()),
    }


def _documents(blocks: Artifact) -> dict[str, bytes]:
    """{document: the uids of its blocks}."""
    found, corpus = defaultdict[str, bytearray](bytearray), Corpus(blocks)
    for uid, block in zip(corpus.uid, corpus, strict=True):
        found[block.document] += uid.tobytes()
    return {name: bytes(uids) for name, uids in found.items()}
