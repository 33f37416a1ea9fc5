"""`realmctl serve`: ask a model and edit its blocks in a browser, or over a JSON API."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Literal

from realmctl.errors import require_package
from realmctl.pipeline import InWorkspace, Show, help_texts, reads, setting, source


class Serve(InWorkspace):
    """Serve a page and a JSON API on this machine: search, ask questions, see the evidence, edit blocks.

    Without a qa-model and without a pre-trained model it searches alone.

    It ends with Ctrl-C. --json prints the address as one JSON object as soon as it listens.

    An edit writes the next version of blocks, embeddings and index into the workspace, and is served once the rebuild has finished.
    """

    computes = True

    qa_model: Path | None = reads(
        "qa-model", help="Default: <workspace>/qa-model, if it exists.", explicit_only=True, default=None
    )
    model: Path | None = reads(
        "model",
        help="Pre-trained model, for [MASK] and for edits. Default: <workspace>/model, if it exists.",
        explicit_only=True,
        default=None,
    )
    closed_book: Path | None = reads(
        "qa-model",
        help="qa-model fine-tuned with --retrieval none, whose answers are shown beside.",
        explicit_only=True,
        default=None,
        advanced=True,
    )
    retriever: Path | None = reads(
        "retriever",
        help="Retriever to search with, where there is neither a qa-model nor a model. Default: <workspace>/retriever, if <workspace>/index "
        "exists, else BM25.",
        explicit_only=True,
        default=None,
    )
    blocks: Path | None = reads(
        "blocks",
        help="Default: the newest version of <workspace>/blocks that has an index.",
        explicit_only=True,
        default=None,
    )
    host: str = setting("Address to listen at.", default="127.0.0.1")
    port: int = setting("Port to listen at; 0 means a free one.", default=8000, at_least=0, at_most=65535)
    name: tuple[str, ...] = setting(
        "Name or address by which browsers reach this machine, beside localhost. Repeatable.", default=(), advanced=True
    )
    allow_edits: bool = setting("Accept edits of blocks from those who have the token.", default=False)
    token_file: Path | None = source(
        "File whose first line is the token. Default: a new token, printed on stderr.", default=None, advanced=True
    )
    mcp: Literal["stdio", "http"] | None = setting(
        "Offer search, read_block and ask to agents (Model Context Protocol). http: at /mcp beside the API. stdio: on standard input and output, "
        "without page and API.",
        default=None,
    )
    files: Path | None = source(
        "Folder that the documents were read from. Hits then have the file: address of their file in it.", default=None
    )
    queue: int = setting("Requests that may wait; further ones get 503.", default=64, at_least=1, advanced=True)

    rerank: str | None = source(help_texts.RERANK, default=None, hub=True)
    rerank_depth: int | None = setting(help_texts.RERANK_DEPTH, default=None, at_least=1, used_with="rerank")
    rerank_fused: bool = setting(help_texts.RERANK_FUSED, default=False, used_with="rerank")

    def run(self, show: Show) -> None:
        for package in ("fastapi", "uvicorn"):
            require_package(package, "serve", "realmctl serve")
        if self.mcp:
            require_package("mcp", "serve", "realmctl serve --mcp")
        from realmctl.extras.serve.web.server import Serving

        models = {"qa-model": self.qa_model, "model": self.model}
        models = {kind: given or _if_made(self.workspace / kind) for kind, given in models.items()}
        searching = self.retriever or (
            _if_made(self.workspace / "retriever") if _if_made(self.workspace / "index") else None
        )
        later = [self.workspace / kind for kind, path in models.items() if path is None]
        if len(later) == len(models) and searching is None:
            later.append(self.workspace / "index")

        def announce(address: str) -> None:
            show({"address": address}, None)  # people read it on stderr
            sys.stdout.flush()

        Serving(
            qa_model=models["qa-model"],
            model=models["model"],
            closed_book=self.closed_book,
            retriever=searching,
            blocks=self.blocks or self.workspace / "blocks",
            embeddings=self.workspace / "embeddings",
            indexes=self.workspace / "index",
            later=tuple(later),
            host=self.host,
            port=self.port,
            names=self.name,
            allow_edits=self.allow_edits,
            token_file=self.token_file,
            most_waiting=self.queue,
            files=self.files,
            rerank=self.rerank,
            rerank_depth=self.rerank_depth,
            rerank_fused=self.rerank_fused,
            mcp=self.mcp,
            announce=announce,
        ).run()


def _if_made(series: Path) -> Path | None:
    return series if series.is_dir() else None
