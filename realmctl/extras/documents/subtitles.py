"""Read subtitles as what is said: SubRip (.srt), WebVTT (.vtt) and Advanced SubStation (.ass), without numbers, times and styles."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

from realmctl.corpus.corpus_file import CorpusFile
from realmctl.corpus.document import Document, Dropped, Found
from realmctl.corpus.formats.tagged import MAX_TEXT_FILE
from realmctl.inputs import streams

ENDINGS = frozenset({".srt", ".vtt", ".ass", ".ssa"})
CLOCK = r"(?:\d{1,3}:)?\d{1,2}:\d{2}[.,]\d{1,3}"
TIMES = re.compile(rf"\s*({CLOCK})\s*-->\s*({CLOCK})")
BEGINS = re.compile(
    rb"WEBVTT(?:[ \t\r\n]|\Z)|\d+[ \t]*\r?\n(?:\d{1,3}:)?\d{1,2}:\d{2}[.,]\d{1,3}[ \t]*-->|\[Script Info\]",
    re.IGNORECASE,
)
VOICE = re.compile(r"<v(?:\.[^\s<>]*)?\s+([^<>]+)>")
TAG = re.compile(r"</?[A-Za-z][^<>]*>|<\d[\d:.]*>|\{\\[^{}]*\}")
DIALOGUE = re.compile(r"Dialogue:\s*[^,]*,([^,]*),([^,]*)(?:,[^,]*){6},(.*)")
PAUSE = 3.0
"""Seconds without words, after which a new line begins."""
Cue = tuple[float, float, list[str]]
"""When it begins and ends, in seconds, and its lines."""


def is_subtitles(file: CorpusFile, start: bytes) -> bool:
    """Whether a file is of this format, by its ending or its first lines."""
    return BEGINS.match(start) is not None or (file.ending in ENDINGS and b"-->" in start)


def read_subtitles(file: CorpusFile) -> Iterator[Found]:
    """Yield the file as one document. A line goes on until another person speaks, or for PAUSE seconds nobody does."""
    text = streams.whole_text(file.path, MAX_TEXT_FILE).replace("\r\n", "\n").replace("\r", "\n")
    made, said, ended, who, last = list[str](), list[str](), 0.0, "", ""
    for begin, end, lines in _cues(text):
        for line in lines:
            speaker = VOICE.search(line)
            line = " ".join(html.unescape(TAG.sub("", line)).split())
            if not line or line == last:  # captions that roll show a line twice
                continue
            last, name = line, html.unescape(speaker[1]).strip() if speaker else who
            if begin - ended > PAUSE or name != who or line.startswith(("-", "\u2013", ">>")):
                made.append(" ".join(said))
                said = [f"{name}:"] if name and name != who else []
            said.append(line)
            who = name
        ended = end
    lines = [each for each in (*made, " ".join(said)) if each]
    if lines:
        yield Document(file.name, file.stem.replace("_", " "), "\n".join(lines), has_lines=True, where=str(file.path))
    else:
        yield Dropped(file.name, "empty")


def _cues(text: str) -> Iterator[Cue]:
    if "[script info]" in text[:1000].lower():
        for line in text.split("\n"):
            if found := DIALOGUE.fullmatch(line):
                yield _seconds(found[1]), _seconds(found[2]), re.split(r"\\[Nn]", found[3].replace(r"\h", " "))
        return
    for block in re.split(r"\n[ \t]*\n", text):
        lines = block.split("\n")
        at = next((number for number, line in enumerate(lines) if TIMES.match(line)), None)
        if at is not None:
            times = TIMES.match(lines[at])
            assert times is not None
            yield _seconds(times[1]), _seconds(times[2]), lines[at + 1 :]


def _seconds(clock: str) -> float:
    found = 0.0
    for part in clock.strip().replace(",", ".").split(":"):
        try:
            found = 60 * found + float(part)
        except ValueError:
            return 0.0
    return found
