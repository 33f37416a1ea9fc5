"""Time the conversion of a dump into 288-wordpiece blocks by realmctl and by published tools, on one core.

    python benchmarks/dump_to_blocks.py DUMP TOKENIZER_FOLDER [--repeats 5]

Peers: WikiExtractor (AGPL: it is only measured here, never part of realmctl), NLTK's Punkt, Hugging Face
tokenizers; mwparserfromhell for a word count. Install them and realmctl in a separate environment:
`pip install realmctl wikiextractor nltk mwparserfromhell`; missing tools are skipped. Punkt's English data is a
download, so Punkt is trained on the corpus itself (not timed). Each part is run by realmctl and by the peer in turn,
timed in CPU seconds. Everything is loaded beforehand, and the peer's tokenizer is called once for each document.
"""

from __future__ import annotations

import argparse
import bz2
import gzip
import importlib.util
import json
import os
import re
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

os.environ["TOKENIZERS_PARALLELISM"] = "false"

from realmctl.artifacts.records import RecordWriter
from realmctl.corpus import sentences
from realmctl.corpus.blocks import BlockPacker
from realmctl.corpus.blocks_file import record_of
from realmctl.corpus.document import Document
from realmctl.corpus.settings import ChunkSettings
from realmctl.corpus.wiki import dump, wikitext
from realmctl.inputs import streams
from realmctl.tokens.tokenizer import Tokenizer

RESIDUE = {
    "[[": r"\[\[",
    "{{": r"\{\{",
    "''": "''",
    "<tag>": r"</?(?:ref|sub|sup|div|br|span|small|math|li|p|i|b|nowiki)\b[^<>]*>",
    "Category:": r"\bCategory:",
    "thumb|": r"\bthumb\|",
    "entity": r"&(?:[a-z]+|#\d+);",
    "()": r"\(\s*[,;]*\s*\)",
    "(,": r"\(\s*[,;]",
    " ,": r"\w ,(?=\s)",
    "|": r"\|",
    "attr=": r"\b(?:style|class|align|width|colspan|rowspan)\s*=",
    "bullet": r"(?m)^[*#:;]",
}
Pages = list[dump.Page]


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


def compare(
    name: str,
    megabytes: float,
    ours: Callable[[], Any],
    peer: Callable[[], Any] | None,
    repeats: int,
    prepare: Callable[[], Any] = lambda: None,
) -> None:
    """Run both in turn, with `prepare`, which is not timed, before ours.

    Print medians, ranges, and the median ratio of neighbouring runs.
    """
    times: list[tuple[float, float]] = []
    for _ in range(repeats):
        prepare()
        mine = timed(ours)[0]
        times.append((mine, timed(peer)[0] if peer else 0.0))
    own, other = ([pair[i] for pair in times] for i in (0, 1))
    line = f"{name:34} ours {megabytes / statistics.median(own):7.2f} MB/s ({min(own):.2f}-{max(own):.2f} s)"
    if peer:
        ratios = [b / a for a, b in times]
        line += f"   peer {megabytes / statistics.median(other):7.2f} MB/s ({min(other):.2f}-{max(other):.2f} s)"
        line += f"   ratio {statistics.median(ratios):5.2f} ({min(ratios):.2f}-{max(ratios):.2f})"
    print(line, flush=True)


def wikiextractor() -> Callable[[dump.Page], str] | None:
    if not importlib.util.find_spec("wikiextractor"):
        return None
    from wikiextractor.extract import Extractor

    def extract(page: dump.Page) -> str:
        return "\n".join(
            Extractor(page.id, "", "", page.title, []).clean_text(page.text, expand_templates=False, html_safe=False)
        )

    return extract


def punkt(texts: list[str]) -> Any:
    if not importlib.util.find_spec("nltk"):
        return None
    from nltk.tokenize.punkt import PunktSentenceTokenizer, PunktTrainer

    trainer = PunktTrainer()
    trainer.INCLUDE_ALL_COLLOCS = True
    trainer.train("\n".join(texts), finalize=True)
    return PunktSentenceTokenizer(trainer.get_params())


def split_by_punkt(tokenizer: Any, text: str) -> list[tuple[int, int]]:
    """Split with Punkt, line by line, because our sentences never contain a line break."""
    spans, place = [], 0
    for line in text.split("\n"):
        spans += [(place + start, place + end) for start, end in tokenizer.span_tokenize(line)]
        place += len(line) + 1
    return spans


def peer_blocks(
    read: Callable[[], Pages],
    extract: Callable[[dump.Page], str],
    tokenizer: Any,
    wp: Tokenizer,
    out: Path,
) -> int:
    """Make blocks with the peers: extract, split, encode with offsets, pack greedily, write gzip."""
    blocks = 0
    with gzip.open(out / "peer.jsonl.gz", "wt", compresslevel=6, encoding="utf-8") as file:
        for page in read():
            text = extract(page)
            spans = split_by_punkt(tokenizer, text)
            sizes = [
                len(e.ids) for e in wp._plain.encode_batch([text[a:b] for a, b in spans], add_special_tokens=False)
            ]
            title = len(wp._plain.encode(page.title, add_special_tokens=False).ids)
            current: list[str] = []
            length = 0
            for (start, end), size in zip(spans, sizes, strict=True):
                if current and 3 + title + length + size > 288:
                    file.write(json.dumps({"title": page.title, "text": " ".join(current)}) + "\n")
                    blocks, current, length = blocks + 1, [], 0
                current.append(text[start:end])
                length += size
            if current:
                file.write(json.dumps({"title": page.title, "text": " ".join(current)}) + "\n")
                blocks += 1
    return blocks


def our_blocks(read: Callable[[], Pages], tokenizer: Tokenizer, out: Path) -> int:
    """Make blocks with the functions that `realmctl chunk` calls, in one process."""
    collator = BlockPacker(tokenizer, ChunkSettings())
    with RecordWriter(out / "ours.jsonl.zst") as file:
        for page in read():
            for block in collator.blocks(Document(page.id, page.title, *wikitext.prose(page.text))):
                file.write(record_of(block))
    return file.count


def halves(path: Path, folder: Path) -> tuple[Path, Path]:
    """Cut the dump into two dumps between pages, to time the second one after the first has filled the cache."""
    before, *pages = re.split(rb"(?=<page>)", b"".join(streams.decompressed(path)))
    middle, parts = len(pages) // 2, (folder / "first.xml.bz2", folder / "second.xml.bz2")
    parts[0].write_bytes(bz2.compress(b"".join([before, *pages[:middle], b"</mediawiki>"])))
    parts[1].write_bytes(bz2.compress(b"".join([before, *pages[middle:]])))
    return parts


_loaded: dict[Path, Tokenizer] = {}


def fresh(folder: Path) -> Tokenizer:
    """Return a loaded tokenizer with an empty cache. Loading is not timed on either side."""
    if folder not in _loaded:
        _loaded[folder] = Tokenizer.load(folder)
    _loaded[folder].clear_cache()
    return _loaded[folder]


def quality(name: str, text: str) -> None:
    counts = {mark: len(re.findall(pattern, text)) for mark, pattern in RESIDUE.items()}
    print(f"{name:22} {len(text.split()):8,} words   " + "  ".join(f"{mark} {count}" for mark, count in counts.items()))


def agreement(texts: list[str], tokenizer: Any) -> None:
    """Print the sentence boundaries inside lines that both find, as shares of Punkt's and of ours."""
    both = ours = theirs = 0
    for text in texts:
        mine, other = (
            {end for _, end in spans if text[end : end + 1] not in ("", "\n")}
            for spans in (sentences.split(text), split_by_punkt(tokenizer, text))
        )
        both, ours, theirs = both + len(mine & other), ours + len(mine), theirs + len(other)
    print(
        f"sentence boundaries: Punkt {theirs}, ours {ours}, both {both} = {both / theirs:.2%} of Punkt's, "
        f"{both / ours:.2%} of ours"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("dump", type=Path)
    parser.add_argument("tokenizer", type=Path)
    parser.add_argument("--repeats", type=int, default=5)
    args = parser.parse_args()

    def read(path: Path = args.dump) -> Pages:
        return [page for page in dump.pages(path) if page.namespace == 0 and not page.redirect]

    pages, extract = read(), wikiextractor()
    wiki_mb = sum(len(page.text.encode()) for page in pages) / 1e6
    texts = [wikitext.prose(page.text)[0] for page in pages]
    text_mb = sum(len(text.encode()) for text in texts) / 1e6
    trained, wp = punkt(texts), fresh(args.tokenizer)
    print(f"{len(pages)} articles, {wiki_mb:.2f} MB of wikitext, {text_mb:.2f} MB of text; {args.repeats} repeats\n")

    quality("ours", "\n".join(texts))
    if extract:
        quality("WikiExtractor", "\n".join(map(extract, pages)))
    if importlib.util.find_spec("mwparserfromhell"):
        import mwparserfromhell

        quality("mwparserfromhell", "\n".join(mwparserfromhell.parse(page.text).strip_code() for page in pages))
    if trained:
        agreement(texts, trained)
    same = sum(
        fresh(args.tokenizer).ids(text).tolist() == wp._plain.encode(text, add_special_tokens=False).ids
        for text in texts
    )
    print(f"wordpiece ids identical to Hugging Face's on {same} of {len(texts)} documents\n")

    lines = [text.replace("\n", " ") for text in texts]
    hf = wp._plain
    compare("decompress", wiki_mb, lambda: sum(map(len, streams.decompressed(args.dump))), None, args.repeats)
    compare("decompress + pages", wiki_mb, read, None, args.repeats)
    compare(
        "wikitext -> text",
        wiki_mb,
        lambda: [wikitext.prose(p.text) for p in pages],
        extract and (lambda: [extract(p) for p in pages]),
        args.repeats,
    )
    compare(
        "sentences",
        text_mb,
        lambda: [sentences.split(t) for t in texts],
        trained and (lambda: [split_by_punkt(trained, t) for t in texts]),
        args.repeats,
    )
    encode = lambda: [hf.encode(t, add_special_tokens=False) for t in lines]  # noqa: E731
    compare(
        "wordpiece, cold cache",
        text_mb,
        lambda: [w.ids(t) for w in [fresh(args.tokenizer)] for t in lines],
        encode,
        args.repeats,
    )
    compare("wordpiece, warm cache", text_mb, lambda: [wp.ids(t) for t in lines], encode, args.repeats)
    if extract and trained:
        with tempfile.TemporaryDirectory() as name:
            out, folder = Path(name), args.tokenizer

            def peer(pages: Callable[[], Pages]) -> Callable[[], int]:
                return lambda: peer_blocks(pages, extract, trained, wp, out)

            def kept() -> Pages:
                return pages

            plain = out / "dump.xml"
            plain.write_bytes(b"".join(streams.decompressed(args.dump)))
            rows = (
                ("dump.bz2 -> blocks, cold cache", read, fresh),
                ("dump.bz2 -> blocks, warm cache", read, _loaded.__getitem__),
                ("dump.xml -> blocks, cold cache", partial(read, plain), fresh),
                ("pages -> blocks, cold cache", kept, fresh),
                ("pages -> blocks, warm cache", kept, _loaded.__getitem__),
            )
            for name, source, tokenizer in rows:
                ours = partial(lambda source, tokenizer: our_blocks(source, tokenizer(folder), out), source, tokenizer)
                compare(name, wiki_mb, ours, peer(source), args.repeats)
            first, second = (partial(read, half) for half in halves(args.dump, out))
            compare(
                "second half.bz2, first half cached",
                sum(len(page.text.encode()) for page in second()) / 1e6,
                lambda: our_blocks(second, _loaded[folder], out),
                peer(second),
                args.repeats,
                prepare=lambda: our_blocks(first, fresh(folder), out),
            )


if __name__ == "__main__":
    main()
