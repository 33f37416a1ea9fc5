"""Mine the facts that differ between two dumps of the same articles: examples/changed/mine.py OLDER NEWER OUT.

OLDER and NEWER are files or folders in any format that `realmctl chunk` reads. Articles are paired by title. A fact has changed if a
sentence stands in both articles, each time once, and differs in one figure alone. Its question is the sentence itself, with a question word in the
figure's place. OUT gets:

older.jsonl, newer.jsonl  the articles that are drawn, as they were and as they are
edits.jsonl               the edits that lead from the one to the other
changed.jsonl             {"question", "old", "new", "document", "old_sentence", "new_sentence"}
unchanged.jsonl           {"question", "answer", "document", "sentence"}: figures in sentences that stand in both
train.jsonl               the same from further articles, which neither file asks about
asked.jsonl               with --questions: what people asked of the articles of changed.jsonl, where the answer sentence differs so; as changed.jsonl
counts.json               what was paired, cut out and found
"""

import argparse
import json
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from realmctl.corpus.document import Document, SkippedPage, cleaned
from realmctl.corpus.reading import documents
from realmctl.corpus.sentences import split
from realmctl.errors import InputError

SHORTEST_LINE, SHORTEST_FRAME, LONGEST_SENTENCE = 10, 8, 300
"""In words, words without the figure, and characters."""
ONE_IN = 3
"""One article in three serves training."""
MOST_QUESTIONS = 500
FIGURE = re.compile(r"(?<![\w.,:–-])\d+(?:[.,:–-]\d+)*(?:st|nd|rd|th)?(?![\w–-])")
NUMBERED = re.compile(r"\b(formula|codice)_\d+")
YEAR = re.compile(r"1\d\d\d|20\d\d")


@dataclass(frozen=True)
class Fact:
    """A figure in a sentence of an article, with its former value where it has changed."""

    document: str
    title: str
    sentence: str
    start: int
    end: int
    old: str = ""
    old_sentence: str = ""

    @property
    def figure(self) -> str:
        """The figure."""
        return self.sentence[self.start : self.end]

    @property
    def question(self) -> str:
        """The title, and the sentence with a question word in place of the figure."""
        before, after = self.sentence[: self.start], self.sentence[self.end :]
        if self.figure[-1].isalpha():
            word = "which"
        elif YEAR.fullmatch(self.figure):
            word = "which year"
        elif after.startswith("%"):
            word, after = "how many percent", after[1:]
        else:
            word = "how many" if re.match(r" [a-z]", after) else "which number"
        return f"{self.title}: {before}{word}{after.rstrip('.')}?"

    def record(self) -> dict[str, object]:
        """The line of changed.jsonl or of unchanged.jsonl."""
        if not self.old:
            return {
                "question": self.question,
                "answer": [self.figure],
                "document": self.document,
                "sentence": self.sentence,
            }
        return {
            "question": self.question,
            "old": self.old,
            "new": self.figure,
            "document": self.document,
            "old_sentence": self.old_sentence,
            "new_sentence": self.sentence,
        }


def articles(path: Path) -> dict[str, Document]:
    """Return the articles of a corpus by title, with the text that both dumps have alike. Of two with one title neither is kept."""
    found, twice = dict[str, Document](), set[str]()
    for page in map(cleaned, documents([path])):
        if isinstance(page, SkippedPage):
            continue
        if page.title in found:
            twice.add(page.title)
        found[page.title] = Document(page.id, page.title, prose(page.text))
    return {title: page for title, page in found.items() if title not in twice and page.text}


def prose(text: str) -> str:
    """Return the lines of ten words and more: only some extractors keep headings. Numbers of placeholders are left out."""
    lines = (line.strip() for line in NUMBERED.sub(r"\1", text).splitlines())
    return "\n".join(line for line in lines if line.count(" ") >= SHORTEST_LINE - 1 and not line.startswith("[["))


def sentences(text: str) -> Counter[str]:
    """Return the sentences of a text, with the number of times that each stands there."""
    return Counter(text[start:end] for start, end in split(text))


def by_frame(found: Iterable[str]) -> dict[str, str]:
    """Return the sentences by what is left without their figures: those of one figure and more whose frame is theirs alone."""
    frames, frame_of = Counter[str](), dict[str, str]()
    for sentence in found:
        frame = FIGURE.sub("#", sentence)
        frames[frame] += 1
        if frame != sentence and frame.count(" ") >= SHORTEST_FRAME and len(sentence) <= LONGEST_SENTENCE:
            frame_of[frame] = sentence
    return {frame: sentence for frame, sentence in frame_of.items() if frames[frame] == 1}


def changed_figures(older: Mapping[str, str], newer: Mapping[str, str], article: Document) -> Iterator[Fact]:
    """Yield the facts whose frame stands in both and that differ in one figure. A figure that is only written in another way has not changed."""
    for frame in sorted(older.keys() & newer.keys()):
        old_sentence, sentence = older[frame], newer[frame]
        pairs = zip(FIGURE.finditer(old_sentence), FIGURE.finditer(sentence), strict=True)
        differing = [(old.group(), new) for old, new in pairs if old.group() != new.group()]
        if len(differing) == 1:
            old, new = differing[0]
            if has_changed(old, new.group()) and sentence.count(new.group()) == 1:
                yield Fact(article.id, article.title, sentence, new.start(), new.end(), old, old_sentence)


def has_changed(old: str, new: str) -> bool:
    """Whether two figures are other values, and not other ways to write or to round one, or a verse."""
    plain = [re.sub(r"[,.–-]", "", figure) for figure in (old, new)]
    apart = not any(a.startswith(b) or a.endswith(b) for a, b in (plain, plain[::-1]))
    return apart and ":" not in old + new and "–" not in old + new and "-" not in old + new


def same_figures(
    older: Mapping[str, int], newer: Mapping[str, str], article: Document, rng: random.Random
) -> Iterator[Fact]:
    """Yield a figure of each sentence that stands in both."""
    for sentence in sorted(newer.values()):
        figures = [figure for figure in FIGURE.finditer(sentence) if sentence.count(figure.group()) == 1]
        if older.get(sentence) == 1 and figures:
            figure = rng.choice(figures)
            yield Fact(article.id, article.title, sentence, figure.start(), figure.end())


def asked_facts(path: Path, facts: Mapping[str, Sequence[Fact]]) -> Iterator[dict[str, object]]:
    """Yield the questions of a file ({"text", "metadata": {"title", "answer_sentences"}}) whose answer sentence has changed."""
    for line in path.read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        told = record["metadata"].get("answer_sentences", ())
        for fact in facts.get(record["metadata"]["title"], ()):
            if fact.old_sentence in told:
                yield {**fact.record(), "question": record["text"]}


def write(path: Path, records: Iterable[Mapping[str, object]]) -> int:
    """Write a JSON object on each line. Return how many there are."""
    lines = [json.dumps(record, ensure_ascii=False) for record in records]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return len(lines)


def mine(
    older: Path, newer: Path, out: Path, most: int, longest: int, questions: Path | None, seed: int
) -> dict[str, int]:
    """Write the files of the module's description. Return the counts."""
    before, after = articles(older), articles(newer)
    shared = sorted(before.keys() & after.keys())
    counts, changed, same = Counter[str](), dict[str, list[Fact]](), dict[str, list[Fact]]()
    for title in shared:
        old, new = before[title], after[title]
        was, stands = sentences(old.text), sentences(new.text)
        counts["articles"] += 1
        counts["articles_changed"] += old.text != new.text
        counts["sentences"] += stands.total()
        counts["sentences_kept"] += (was & stands).total()
        lines, old_lines = Counter(new.text.splitlines()), Counter(old.text.splitlines())
        counts["paragraphs"] += lines.total()
        counts["paragraphs_kept"] += (lines & old_lines).total()
        new_frames = by_frame(stands.elements())
        article = Document(old.id, title, new.text)
        changed[title] = list(changed_figures(by_frame(was.elements()), new_frames, article))
        same[title] = list(same_figures(was, new_frames, article, random.Random(f"{seed} {title}")))
        counts["facts_changed"] += len(changed[title])
        counts["articles_with_changed_facts"] += bool(changed[title])

    holding = [
        title for title in shared if changed[title] and max(len(before[title].text), len(after[title].text)) <= longest
    ]
    drawn = sorted(random.Random(seed).sample(holding, min(most, len(holding)))) if most else shared
    training = set(drawn[::ONE_IN])
    out.mkdir(parents=True, exist_ok=True)
    for name, texts in (("older", before), ("newer", after)):
        write(out / f"{name}.jsonl", ({"id": before[t].id, "title": t, "text": texts[t].text} for t in drawn))
    write(
        out / "edits.jsonl",
        ({"op": "update", "id": before[t].id, "text": after[t].text} for t in drawn if before[t].text != after[t].text),
    )
    asking = [title for title in drawn if title not in training]
    counts["drawn"], counts["drawn_for_training"] = len(drawn), len(training)
    counts["changed"] = write(out / "changed.jsonl", (fact.record() for title in asking for fact in changed[title]))
    kept = [fact.record() for title in asking for fact in same[title]]
    counts["unchanged"] = write(
        out / "unchanged.jsonl", random.Random(seed).sample(kept, min(MOST_QUESTIONS, len(kept)))
    )
    counts["train"] = write(out / "train.jsonl", (fact.record() for title in sorted(training) for fact in same[title]))
    if questions:
        counts["asked"] = write(
            out / "asked.jsonl", asked_facts(questions, {title: changed[title] for title in asking})
        )
    (out / "counts.json").write_text(json.dumps(counts, indent=1) + "\n", encoding="utf-8")
    return counts


def main() -> None:
    """Run the command line: write the files, and print the counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("older", type=Path)
    parser.add_argument("newer", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument(
        "--articles",
        type=int,
        default=0,
        help="draw so many of the articles that hold a changed fact (default 0: take all articles)",
    )
    parser.add_argument(
        "--longest", type=int, default=20_000, help="characters of the longest of them (default 20,000)"
    )
    parser.add_argument("--questions", type=Path, help="questions that people asked, with the title of their article")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    try:
        counts = mine(given.older, given.newer, given.out, given.articles, given.longest, given.questions, given.seed)
    except (InputError, OSError) as error:
        raise SystemExit(f"mine: {error}") from None
    print(json.dumps(counts, indent=1))


if __name__ == "__main__":
    main()
