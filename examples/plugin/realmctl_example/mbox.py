"""The format `mbox`: a mail archive, in which each message is a document."""

from __future__ import annotations

import email
from collections.abc import Iterator
from email import policy

from realmctl.corpus.corpus_file import CorpusFile
from realmctl.corpus.document import Document, Dropped, Found
from realmctl.corpus.formats.format import Format
from realmctl.inputs import streams


def messages(file: CorpusFile) -> Iterator[tuple[int, str]]:
    """The messages of a file, each with the number of its first line. Compressed files are read as they are."""
    begun, lines = 1, list[str]()
    for number, line in streams.lines(file.path):
        if line.startswith("From ") and lines:
            yield begun, "\n".join(lines)
            begun, lines = number, []
        lines.append(line)
    if lines:
        yield begun, "\n".join(lines)


def read_mbox(file: CorpusFile) -> Iterator[Found]:
    """The subject is the title. A message without plain text is dropped, and counted by this reason."""
    for number, text in messages(file):
        message = email.message_from_string(text, policy=policy.default)
        identity, body = message["message-id"] or f"{file.name}:{number}", message.get_body(("plain",))
        if body is None:
            yield Dropped(identity, "no plain text")
        else:
            yield Document(identity, message["subject"] or "", body.get_content(), where=f"{file.path}:{number}")


MBOX = Format("mail archive (mbox)", read_mbox)
