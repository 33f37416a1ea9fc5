"""The state of a server: models over the served version, the worker, edits, and counts.

The served version is one reference that is replaced as a whole. A batch reads it once, so a reply is never of two versions.
"""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from realmctl.errors import (
    AccessError,
    ConfigError,
    InputError,
    LockedError,
    RealmctlError,
    ResourceError,
    at_the_end,
)
from realmctl.extras.serve.files import Files
from realmctl.extras.serve.latency import Latencies
from realmctl.extras.serve.messages import (
    Ask,
    AskReply,
    BlockReply,
    DocumentReply,
    EditReply,
    Fill,
    FillReply,
    LeaveOut,
    LeaveOutReply,
    NewDocument,
    NewText,
    Search,
    SearchReply,
    ServedBlockReply,
    StatusReply,
    described,
)
from realmctl.extras.serve.models import Models
from realmctl.extras.serve.vectors import (
    EmbeddingsRequest,
    RerankReply,
    RerankRequest,
    Side,
    TextEncoder,
    Vectors,
    reranked,
)
from realmctl.extras.serve.versions import Versions
from realmctl.extras.serve.worker import Argument, QueueFull, Reply, Worker
from realmctl.log import say, warn

Filters = tuple[str, ...]
SHOWN_BLOCKS = 200
"""Blocks of a document that are shown at once."""
SECONDS_BETWEEN_LOOKS = 5.0
"""How often a server looks whether another run has made newer versions."""


class UnknownBlock(InputError):
    """The served version has no block with this id."""


class Service:
    """Answers requests from one version of the blocks, and replaces it by edited ones.

    models, versions: as `open_models` returns them.
    edits_allowed: whether blocks may be edited.
    most_waiting: requests that may wait.
    files: the files of the documents, if their addresses are told.
    """

    def __init__(
        self, models: Models, versions: Versions, edits_allowed: bool, most_waiting: int, files: Files | None = None
    ) -> None:
        self._files = files
        self.models, self.versions, self.edits_allowed = models, versions, edits_allowed
        self.most_waiting, self.refused = most_waiting, 0
        self.latencies, self._worker, self._reader = Latencies(), Worker(most_waiting), Worker(most_waiting)
        self._editing, self._changing, self._start = threading.Lock(), threading.Lock(), time.monotonic()
        self._stopped, self._held = threading.Event(), versions.held()
        self._models_at_start, self._told = versions.models_now(), set[str]()
        self._folders = _spellings([*versions.folders(), Path(tempfile.gettempdir()), Path.cwd()])

    def ask(self, asked: Ask) -> Future[AskReply]:
        """Queue a question. Raises QueueFull."""
        return self._submit("ask", ("ask", asked.top), Models.ask, asked)

    def search(self, asked: Search, within: Filters = ()) -> Future[SearchReply]:
        """Queue a search. within: filters that hits pass beside that of the request. Raises QueueFull."""

        def found(models: Models, batch: Sequence[Search]) -> list[SearchReply]:
            replies = models.search(batch, within)
            for hit in (hit for reply in replies if self._files for hit in reply.hits):
                hit.file = self._file(hit.document)
            return replies

        def submit() -> Future[SearchReply]:
            kind = ("search", asked.method, asked.rerank, asked.top, asked.filter, *within)
            return self._submit("search", kind, found, asked)

        read = self.fields_read((*within, *([asked.filter] if asked.filter else ())))
        if read.done():
            return submit()
        reply = Future[SearchReply]()

        def copy(done: Future[SearchReply]) -> None:
            if error := done.exception():
                reply.set_exception(error)
            else:
                reply.set_result(done.result())

        def submitted(_: object) -> None:
            try:
                submit().add_done_callback(copy)
            except QueueFull as full:
                reply.set_exception(full)

        read.add_done_callback(submitted)
        return reply

    def fields_read(self, filters: Filters) -> Future[object]:
        """Read the fields that filters name, in a thread of its own: it takes seconds of a million documents. What is wrong with a filter is not told here.

        Raises QueueFull.
        """
        models, done = self.models, Future[object]()
        try:
            names = models.unread(filters)
        except ConfigError:
            names = set()
        if names:
            return self._reader.submit(
                "fields", lambda batch: [models.corpus.columns.of(each) for each in batch], names
            )
        done.set_result(None)
        return done

    def model_names(self) -> list[str]:
        """The names of the models that embed and rerank."""
        models = self.models
        of_encoder = TextEncoder.names() if models.searches and models.searches.encoder else []
        return [*of_encoder, *([models.reranking.name] if models.reranking else [])]

    def side_of(self, asked: EmbeddingsRequest) -> Side:
        """What the texts of a request are. Raises UnknownModel, and ConfigError for what this server cannot embed so."""
        encoder = self.models.encoder
        encoder.check_dimensions(asked.dimensions)
        return encoder.side(asked.model, asked.input_type)

    def embed(self, texts: Sequence[str], side: Side, dimensions: int | None) -> Future[Vectors]:
        """Queue texts to embed. Raises QueueFull."""

        def found(models: Models, batch: Sequence[Sequence[str]]) -> list[Vectors]:
            return [models.encoder.embed(each, side, dimensions) for each in batch]

        return self._submit("embeddings", ("embeddings", side, dimensions), found, texts)

    def rerank(self, asked: RerankRequest) -> Future[RerankReply]:
        """Queue texts to order. Raises QueueFull."""
        return self._submit(
            "rerank", "rerank", lambda models, batch: [reranked(each, models.reranking) for each in batch], asked
        )

    def fill(self, asked: Fill) -> Future[FillReply]:
        """Queue a sentence. Raises QueueFull."""
        return self._submit("fill", "fill", Models.fill, asked)

    def leave_out(self, asked: LeaveOut) -> Future[LeaveOutReply]:
        """Queue a question without some blocks. Raises QueueFull."""
        return self._submit("without", "without", Models.leave_out, asked)

    def _submit(
        self,
        name: str,
        kind: Hashable,
        compute: Callable[[Models, Sequence[Argument]], Sequence[Reply]],
        asked: Argument,
    ) -> Future[Reply]:
        start = time.perf_counter()
        try:
            reply = self._worker.submit(kind, lambda batch: compute(self.models, batch), asked)
        except QueueFull:
            self.refused += 1
            raise
        reply.add_done_callback(lambda _: self.latencies.add(name, time.perf_counter() - start))
        return reply

    def told(self, error: RealmctlError) -> str:
        """Return what a client reads of an error: nothing of it says in which folders of this machine the artifacts and temporary files lie."""
        text = str(error)
        for folder in self._folders:
            text = text.replace(f"{folder}{os.sep}", "")
        return text

    def retry_after(self) -> int:
        """Seconds after which a queue that is full now is probably empty."""
        return max(1, round(self.latencies.median("ask") or 1))

    def block(self, name: str, within: Filters = ()) -> ServedBlockReply:
        """Return a block that passes the filters `within`. Raises UnknownBlock."""
        models = self.models
        row = _row(models, name, within)
        block = models.corpus.block(row)
        return ServedBlockReply(
            **described(block),
            version=models.version.name,
            document_blocks=[models.corpus.block(each).id for each in models.rows_of_document(row)],
        )

    def document(self, name: str, within: Filters = ()) -> DocumentReply:
        """Return the document of a block that passes the filters `within`: its blocks, or of a long one those around the block. Raises UnknownBlock."""
        models = self.models
        row = _row(models, name, within)
        rows = models.rows_of_document(row)
        place = rows.index(row)
        first = max(0, min(place - SHOWN_BLOCKS // 2, len(rows) - SHOWN_BLOCKS))
        blocks = [models.corpus.block(each) for each in rows[first : first + SHOWN_BLOCKS]]
        return DocumentReply(
            version=models.version.name,
            document=blocks[0].document,
            title=blocks[0].title,
            file=self._file(blocks[0].document),
            count=len(rows),
            first=first + 1,
            blocks=[BlockReply(**described(each)) for each in blocks],
        )

    def _file(self, document: str | None) -> str | None:
        return self._files.address(document) if self._files else None

    def replace(self, name: str, new: NewText) -> Future[EditReply]:
        """Start an edit that replaces the text of a block. See `_start_edit` for what is raised."""
        return self._start_edit(new.version, lambda models: _edit_of_block(models, name, new.text))

    def remove(self, name: str, version: str | None) -> Future[EditReply]:
        """Start an edit that removes a block. See `_start_edit` for what is raised."""
        return self._start_edit(version, lambda models: _edit_of_block(models, name, None))

    def add(self, new: NewDocument) -> Future[EditReply]:
        """Start an edit that adds a document. See `_start_edit` for what is raised."""
        edit = {"op": "add", "id": new.id, "title": new.title, "text": new.text}
        return self._start_edit(new.version, lambda models: edit)

    def follow(self) -> bool:
        """Serve the newest blocks and index that fit the models, if another run has made them. Return whether it did.

        Meanwhile the former version is served. An edit in progress is not disturbed. What is damaged is not looked at again before
        something changes; where memory, handles or access are missing, the next look tries again.
        """
        if not self._changing.acquire(blocking=False):
            return False
        before = self._held
        try:
            held = self.versions.held()
            if held == before:
                return False
            self._held = held
            version = self.versions.newest()
            if version.same_as(self.models.version):
                return False
            self.models = self.models.over(version)
            say(f"serving {' with '.join(str(one) for one in (version.blocks, version.index) if one)} now")
            return True
        except Exception as error:
            if (known := at_the_end(error)) is None:
                raise
            if isinstance(known, (ResourceError, AccessError)):
                self._held = before
            self._tell_once(warn, f"{self.models.version.blocks} is still served: {known}")
            return False
        finally:
            self._changing.release()

    def newer_models(self) -> list[str]:
        """Return the models that other runs have made since the start, such as `qa-model v3`. They are served after a restart.

        Each is told once in the log, and so is why a series cannot be looked at.
        """
        try:
            now = self.versions.models_now()
        except (RealmctlError, OSError) as error:
            self._tell_once(warn, f"it is not known whether there are newer models: {at_the_end(error) or error}")
            return []
        newer = [series for series, version in now.items() if version != self._models_at_start.get(series)]
        names = [f"{Path(series).name} {now[series]}" for series in newer]
        for name in names:
            self._tell_once(say, f"{name} is newer than what is served. Stop and start `realmctl serve` to serve it.")
        return names

    def _tell_once(self, tell: Callable[[str], None], message: str) -> None:
        if message not in self._told:
            self._told.add(message)
            tell(message)

    def follow_always(self, seconds: float = SECONDS_BETWEEN_LOOKS) -> None:
        """Look for newer versions again and again, in a thread of its own, until `stop`."""

        def look() -> None:
            while not self._stopped.wait(seconds):
                self.follow()
                self.newer_models()

        threading.Thread(target=look, name="serve-follow", daemon=True).start()

    def _start_edit(self, version: str | None, edit_of: Callable[[Models], Mapping[str, Any]]) -> Future[EditReply]:
        """Make and serve the next version in a thread of its own. Meanwhile the former version is served.

        Raises:
            ConfigError: edits are not allowed.
            LockedError: another edit is being made, or the edit was made from another version.
            UnknownBlock: the block is not there.
        """
        if not self.edits_allowed:
            raise ConfigError("This server was started without --allow-edits.")
        if not self._editing.acquire(blocking=False):
            raise LockedError("Another edit is being made. Wait for it, look at the block again, and repeat the edit.")
        done = Future[EditReply]()
        try:
            self._require_newest(version)
            edit_of(self.models)  # whoever asks hears at once that the block is not there
            thread = threading.Thread(target=self._edit, args=(version, edit_of, done), name="serve-edit", daemon=True)
            thread.start()
        except BaseException:
            self._editing.release()
            raise
        return done

    def _require_newest(self, version: str | None) -> None:
        served = self.models.version.name
        if version not in (None, served):
            raise LockedError(f"The edit was made from {version}, and {served} is served now. Look at the block again.")
        self.versions.require_newest(self.models.version)

    def _edit(
        self, version: str | None, edit_of: Callable[[Models], Mapping[str, Any]], done: Future[EditReply]
    ) -> None:
        start = time.perf_counter()
        try:
            with self._changing:  # after a version of another run is opened
                self._require_newest(version)
                edit = edit_of(self.models)
                made = self.versions.edit(self.models.version, [edit])
                models = self.models.over(made.version)
                rows = [row for row, block in enumerate(models.corpus) if block.document == edit["id"]]
                self.models = models
            seconds = time.perf_counter() - start
            self.latencies.add("edit", seconds)
            reply = EditReply(
                version=made.version.name,
                embedded=made.embedded,
                taken_over=made.taken_over,
                document_blocks=[models.corpus.block(row).id for row in rows],
                seconds=round(seconds, 3),
            )
        except BaseException as error:
            self._editing.release()
            done.set_exception(error)
        else:
            self._editing.release()
            done.set_result(reply)

    def status(self, within: Filters = ()) -> StatusReply:
        """What is served, and how it goes; without examples of blocks where filters are set before all."""
        models = self.models
        index = models.version.index
        return StatusReply(
            version=models.version.name,
            blocks=len(models.corpus),
            index_type=None if index is None else str(index.settings.get("type", "unknown")),
            can_ask=models.qa is not None,
            can_fill=models.filler is not None,
            search_methods=models.searches.names if models.searches else [],
            reranker=models.searches.reranking.name if models.searches and models.searches.reranking else None,
            fields={**models.corpus.columns.types},
            newer_models=self.newer_models(),
            examples=models.examples() if not within else [],
            edits_allowed=self.edits_allowed,
            editing=self._editing.locked(),
            waiting=self._worker.waiting,
            queue=self.most_waiting,
            refused=self.refused,
            largest_batch=self._worker.largest_batch,
            uptime_seconds=round(time.monotonic() - self._start, 1),
            latency=self.latencies.summary(),
        )

    @property
    def is_working(self) -> bool:
        """Whether requests are computed."""
        return self._worker.is_working

    def stop(self) -> None:
        """Compute what waits, then end the worker."""
        self._stopped.set()
        self._reader.stop()
        self._worker.stop()


def _spellings(folders: Iterable[Path]) -> list[str]:
    """Return these folders as messages may write them, the longest first."""
    found = {str(each) for folder in folders for each in (folder, folder.absolute(), folder.resolve())}
    return sorted(found - {".", os.sep}, key=len, reverse=True)


def _row(models: Models, name: str, within: Filters = ()) -> int:
    if name not in models.row_of or (within and models.row_of[name] not in models.passing(within)):
        raise UnknownBlock(f"There is no block {name[:80]!r} in the version that is served. Name the id of a block.")
    return models.row_of[name]


def _edit_of_block(models: Models, name: str, text: str | None) -> dict[str, object]:
    """The edit of a document that replaces the text of one of its blocks, or removes the block."""
    changed = _row(models, name)
    rows = models.rows_of_document(changed)
    texts = [text if row == changed else models.corpus.block(row).text for row in rows]
    document, kept = models.corpus.block(changed).document, [each for each in texts if each is not None]
    if not kept:
        return {"op": "remove", "id": document}
    between = "\n" if any("\n" in models.corpus.block(row).text for row in rows) else " "
    return {"op": "update", "id": document, "text": between.join(kept)}
