"""Messages and mailboxes: what is a document, what is its text, and what hostile mail cannot do."""

from __future__ import annotations

import gzip
import mailbox
from email.message import EmailMessage

import pytest

from realmctl.corpus.corpus_file import CorpusFile
from realmctl.corpus.document import Document, Dropped, Found, SkippedPage
from realmctl.corpus.formats.detect import FORMATS as PLAIN
from realmctl.corpus.formats.detect import format_of
from realmctl.corpus.reading import documents
from realmctl.corpus.settings import CorpusSettings
from realmctl.extras.documents import mail
from realmctl.extras.documents.formats import FORMATS


def found(path) -> list[Found]:
    file = CorpusFile(path, CorpusSettings(), path.name)
    assert format_of(file) is FORMATS["mail"]
    return [*format_of(file).read(file)]


def message(text: str = "The engine runs.\n", subject: str = "Engine", **headers: str) -> EmailMessage:
    made = EmailMessage()
    made["From"], made["Date"], made["Subject"] = "Ada <ada@example.org>", "Sat, 3 Oct 2020 10:00:00 +0000", subject
    for name, value in headers.items():
        made[name.replace("_", "-")] = value
    made.set_content(text)
    return made


def only(path) -> Document:
    (document,) = found(path)
    assert isinstance(document, Document)
    return document


TOLD = "Ada <ada@example.org>, Sat, 03 Oct 2020 10:00:00 +0000"


def test_a_message_is_a_document_titled_by_its_subject(tmp_path):
    (tmp_path / "17.eml").write_bytes(message(subject="Über die Maschine", text="Sie läuft.\n").as_bytes())
    document = only(tmp_path / "17.eml")
    assert (document.id, document.title, document.text) == ("17.eml", "Über die Maschine", f"{TOLD}\n\nSie läuft.")
    (tmp_path / "1601719200.M1P2.host").write_bytes(message().as_bytes())
    assert only(tmp_path / "1601719200.M1P2.host").title == "Engine", "a file of a Maildir is told by its headers"


def test_the_plain_text_is_read_and_no_attachment(tmp_path):
    made = message()
    made.add_alternative("<p>The <b>engine</b> runs.", subtype="html")
    made.add_attachment("a secret\n", filename="notes.txt")
    made.add_attachment(b"\x00\x01" * 99, maintype="image", subtype="png", filename="a.png")
    (tmp_path / "a.eml").write_bytes(made.as_bytes())
    assert only(tmp_path / "a.eml").text == f"{TOLD}\n\nThe engine runs."


def test_a_message_in_html_alone_is_read_as_a_page(tmp_path):
    pytest.importorskip("selectolax")
    made = message()
    made.set_content("<style>p {}</style><ul><li>The <b>engine</b><li>runs</ul>", subtype="html")
    (tmp_path / "a.eml").write_bytes(made.as_bytes())
    assert only(tmp_path / "a.eml").text == f"{TOLD}\n\n- The engine\n- runs"


def test_a_mailbox_has_a_document_for_each_message(tmp_path):
    box = mailbox.mbox(tmp_path / "list.mbox")
    box.add(mailbox.mboxMessage(message(text="From here on it runs.\n\nFrom the start.\n", subject="One")))
    box.add(mailbox.mboxMessage(message(text="\n", subject="Two")))
    box.add(mailbox.mboxMessage(message(subject="Three")))
    box.flush()
    one, two, three = found(tmp_path / "list.mbox")
    assert isinstance(one, Document) and isinstance(three, Document)
    assert (one.id, one.title, one.where) == ("list.mbox-1", "One", f"{tmp_path}/list.mbox:1")
    assert one.text == f"{TOLD}\n\nFrom here on it runs.\n\nFrom the start."
    assert two == Dropped("list.mbox-2", "empty")
    assert (three.id, three.text) == ("list.mbox-3", f"{TOLD}\n\nThe engine runs.")
    with gzip.open(tmp_path / "archive.txt.gz", "wb") as packed:
        packed.write((tmp_path / "list.mbox").read_bytes().replace(b"\n", b"\r\n"))
    assert [each.id for each in found(tmp_path / "archive.txt.gz")] == [f"archive.txt.gz-{n}" for n in (1, 2, 3)]


def test_a_text_that_looks_like_mail_in_part_is_plain_text(tmp_path):
    for text in (
        "From Monday on, trains of 1999\nrun again.\n",
        "To: all\nSubject: tests\n\nA memo.\n",
        "Note: a\nDate: b\nFrom: c\nTo: d\nand so on.\n",
    ):
        (tmp_path / "a.txt").write_text(text)
        assert format_of(CorpusFile(tmp_path / "a.txt", CorpusSettings(), "a.txt")) is PLAIN["text"], text


@pytest.mark.parametrize(
    ("charset", "encoding"), [("iso-8859-1", "8bit"), ("koi8-r", "base64"), ("utf-8", "quoted-printable")]
)
def test_a_text_is_decoded_by_its_charset(tmp_path, charset, encoding):
    text = "Привет" if charset == "koi8-r" else "größer"
    made = message()
    made.set_content(text, charset=charset, cte=encoding)
    (tmp_path / "a.eml").write_bytes(made.as_bytes())
    assert only(tmp_path / "a.eml").text.endswith(text)


@pytest.mark.parametrize("charset", ["unknown-8bit", "utf-8", "x-nowhere"])
def test_a_charset_that_is_wrong_or_unknown_loses_no_word(tmp_path, charset):
    head = f"From: a\nDate: b\nSubject: =?{charset}?q?gr=F6=DFer?=\nContent-Type: text/plain; charset={charset}\n\n"
    (tmp_path / "a.eml").write_bytes(head.encode() + "größer".encode("cp1252"))
    assert only(tmp_path / "a.eml").text == "a, b\n\ngrößer"


HEAD = b"From: a\nDate: b\nSubject: c\n"


@pytest.mark.parametrize(
    "data",
    [
        b"".join(b'Content-Type: multipart/mixed; boundary="b%d"\n\n--b%d\n' % (n, n) for n in range(2000)),
        b'Content-Type: multipart/mixed; boundary="b"\n\n' + b"--b\n\nx\n" * 20_000,
        b"\n" * (2**20 + 2),
    ],
    ids=["nested", "parts", "lines"],
)
def test_hostile_mail_is_set_aside(tmp_path, data):
    (tmp_path / "a.eml").write_bytes(HEAD + data)
    (skipped,) = found(tmp_path / "a.eml")
    assert isinstance(skipped, SkippedPage) and skipped.where == str(tmp_path / "a.eml")


def test_a_message_that_is_too_long_or_takes_too_long_is_set_aside_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(mail, "MAX_MESSAGE_BYTES", 2**20)
    begin = b"From a@b Thu Jan  1 00:00:00 1970\n"
    first, last = HEAD + b"\n" + b"a" * 2**21 + b"\n\n", HEAD + b"\nIt runs.\n"
    (tmp_path / "a.mbox").write_bytes(begin + first + begin + last)
    skipped, kept = found(tmp_path / "a.mbox")
    assert isinstance(skipped, SkippedPage) and isinstance(kept, Document) and kept.text == "a, b\n\nIt runs."
    monkeypatch.setattr(mail, "PAGE_SECONDS", 0.05)
    slow = b"Content-Disposition: inline\nContent-Type: text/plain; " + b"a=b; " * 100_000 + b"\n\nIt runs.\n"
    (tmp_path / "b.eml").write_bytes(HEAD + slow)
    (skipped,) = found(tmp_path / "b.eml")
    assert isinstance(skipped, SkippedPage)


def test_a_message_says_who_wrote_it_to_whom_and_when(tmp_path):
    head = "From: Ada <a@e.org>\nTo: ben@e.org\nSubject: Lamp\nDate: {}\nMessage-ID: <1@e>\n\nThe lamp is old.\n"
    (tmp_path / "a.eml").write_text(head.format("Wed, 1 May 2024 10:30:00 +0200"))
    (tmp_path / "b.eml").write_text(head.format("some day"))
    first, second = map(only, (tmp_path / "a.eml", tmp_path / "b.eml"))
    sent = {"from": "Ada <a@e.org>", "to": "ben@e.org"}
    assert first.fields == {**sent, "date": "2024-05-01T10:30:00+02:00"} and second.fields == sent


FLOWED = """From: a@example.org
Subject: Flow
Content-Type: text/plain; charset=utf-8; format=flowed{more}

The larch costs five crowns in a year,{blank}
which is not much,{blank}
and stands.
A hard end.
> An older{blank}
> text.
>> Deeper.
 From here.
--{blank}
Ann
"""
JOINED = [
    "The larch costs five crowns in a year, which is not much, and stands.",
    "A hard end.",
    "> An older text.",
    ">> Deeper.",
    "From here.",
    "-- ",
    "Ann",
]


@pytest.mark.parametrize(
    ("more", "blank"), [("", " "), ("; delsp=no", " "), ("; DelSp=yes", "  "), ("; delsp=yes", " ")]
)
def test_lines_that_flow_are_one(tmp_path, more, blank):
    text = FLOWED.format(more=more, blank=blank).replace("--  ", "-- ")
    (tmp_path / "a.eml").write_text(text, encoding="utf-8")
    [found] = documents([tmp_path / "a.eml"], CorpusSettings())
    assert [line.rstrip() for line in found.text.split("\n")[2:]] == [line.rstrip() for line in JOINED]


def test_a_long_line_without_its_blank_goes_on_within_the_word(tmp_path):
    text = f"From: a\nTo: b\nSubject: c\nContent-Type: text/plain; format=flowed; delsp=yes\n\nhttps://example.org/{'x' * 50} \nyyy\n"
    (tmp_path / "a.eml").write_text(text, encoding="utf-8")
    [found] = documents([tmp_path / "a.eml"], CorpusSettings())
    assert f"https://example.org/{'x' * 50}yyy" in found.text
