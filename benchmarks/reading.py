"""Measure how many workers of `chunk` the process that reads keeps busy, for each way in which a corpus can be stored.

    python benchmarks/reading.py DUMP [--copies 8] [--rounds 3]

DUMP, plain or compressed, is written again as plain XML, as bzip2 of several streams and as JSON lines, COPIES times under new ids. Each file is
read alone, and then chunked by two workers. Everything is CPU seconds, because other programs change them little.
"""

from __future__ import annotations

import argparse
import bz2
import json
import os
import re
import resource
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

from realmctl.corpus.document import Document, cleaned
from realmctl.corpus.reading import documents
from realmctl.inputs import streams
from realmctl.log import set_quiet
from stages.chunk import Chunk

PAGE = re.compile(rb"<page>.*?</page>", re.DOTALL)
NAMED = re.compile(rb"<title>([^<]*)</title>(.*?)<id>(\d+)</id>", re.DOTALL)
PAGES_PER_STREAM = 100


def main() -> None:
    """Write the files, measure each in turn, and print medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dump", type=Path)
    parser.add_argument("--copies", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    set_quiet(True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = write_files(folder, b"".join(streams.decompressed(given.dump)), given.copies)
        small = Chunk(corpus=(given.dump,), tokenizer="train:8000", workers=1).make(folder / "small")
        found: dict[str, list[tuple[float, float, float]]] = {what: [] for what in files}
        for number in range(given.rounds):
            for what, file in files.items():
                found[what].append(measured(file, small.path, folder / f"{what}-{number}"))
    print(f"{'':14}{'reading alone':>14}{'first process':>14}{'workers':>10}{'busy workers':>14}")
    for what, rounds in found.items():
        reading, first, workers = (statistics.median(column) for column in zip(*rounds, strict=True))
        busy = sorted(two / one for _, one, two in rounds)
        print(f"{what:14}{reading:12.2f} s{first:12.2f} s{workers:8.2f} s   {busy[0]:.1f} to {busy[-1]:.1f}")


def measured(file: Path, blocks: Path, out: Path) -> tuple[float, float, float]:
    """Return CPU seconds: of reading the file alone, and of `chunk` in its first process and in its two workers."""
    reading, _ = cpu_seconds(lambda: sum(1 for _ in documents([file])))
    chunk = Chunk(corpus=(file,), tokenizer=str(blocks), workers=2)
    return reading, *cpu_seconds(lambda: chunk.make(out))


def write_files(folder: Path, dump: bytes, copies: int) -> dict[str, Path]:
    """Write the pages of a dump `copies` times in each way. Return the files."""
    begin, end = dump.index(b"<page>"), dump.rindex(b"</page>") + len(b"</page>")
    pages = [again(page, copy) for copy in range(copies) for page in PAGE.findall(dump[begin:end])]
    files = {what: folder / f"{what}.data" for what in ("xml", "bzip2", "json-lines")}
    files["xml"].write_bytes(dump[:begin] + b"\n".join(pages) + dump[end:])
    parts = [
        dump[:begin],
        *(b"".join(pages[at : at + PAGES_PER_STREAM]) for at in range(0, len(pages), PAGES_PER_STREAM)),
    ]
    files["bzip2"].write_bytes(b"".join(bz2.compress(part) for part in (*parts, dump[end:])))
    with files["json-lines"].open("w", encoding="utf-8") as out:
        for page in map(cleaned, documents([files["xml"]])):
            if isinstance(page, Document):
                out.write(json.dumps({"id": page.id, "title": page.title, "text": page.text}) + "\n")
    return files


def again(page: bytes, copy: int) -> bytes:
    """Return a page under another title and id."""
    return NAMED.sub(rb"<title>\1 (copy %d)</title>\2<id>\g<3>%03d</id>" % (copy, copy), page, count=1)


def cpu_seconds(work: Callable[[], object]) -> tuple[float, float]:
    """Return the CPU seconds of this process, and of the processes that it started and that ended."""
    before = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    work()
    after = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    this, others = (b.ru_utime + b.ru_stime - a.ru_utime - a.ru_stime for a, b in zip(before, after, strict=True))
    return this, others


if __name__ == "__main__":
    main()
