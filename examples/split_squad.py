"""Turn question files in SQuAD's layout into a small open-domain task: a corpus, and questions by article.

    python examples/split_squad.py squad.json [more.json ...] OUT [--dev-every 3] [--test-every 0] [--few 128]

Writes OUT/paragraphs.jsonl ({"id", "title", "text"}, one paragraph a line), OUT/train.jsonl, OUT/dev.jsonl and OUT/test.jsonl
({"question", "answer": [...]}), and OUT/all.jsonl, which adds the part and the file of each question. The split is by article,
so that no paragraph serves two parts. OUT/train-dev.jsonl has the questions of train and dev, to train on once the settings
are chosen. OUT/articles-PART.json has the articles of one part, in SQuAD's layout. With --few N, OUT/train-N.jsonl has N of
the training questions, at equal distances.
"""

import argparse
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

Article = Mapping[str, Any]


def paragraph_records(articles: Iterable[Article]) -> Iterator[dict[str, str]]:
    """Yield a document for each paragraph, with the title of its article."""
    for article in articles:
        title = article["title"].replace("_", " ")
        for number, paragraph in enumerate(article["paragraphs"]):
            yield {"id": f"{article['title']}-{number}", "title": title, "text": paragraph["context"]}


def question_records(articles: Iterable[Article]) -> Iterator[dict[str, Any]]:
    """Yield the questions in NQ-open's format, with each answer once."""
    for article in articles:
        for paragraph in article["paragraphs"]:
            for asked in paragraph["qas"]:
                answers = list(dict.fromkeys(answer["text"] for answer in asked["answers"]))
                yield {"question": asked["question"], "answer": answers}


def parts_of(articles: Sequence[Article], dev_every: int, test_every: int) -> dict[str, list[Article]]:
    """Split articles: one in `dev_every` is dev; of the others one in `test_every` is test. 0 is none."""
    for_dev = {number for number in range(len(articles)) if dev_every and number % dev_every == 0}
    others = [article for number, article in enumerate(articles) if number not in for_dev]
    tested = {number for number in range(len(others)) if test_every and number % test_every == 0}
    return {
        "train": [article for number, article in enumerate(others) if number not in tested],
        "dev": [article for number, article in enumerate(articles) if number in for_dev],
        "test": [article for number, article in enumerate(others) if number in tested],
    }


def evenly_spaced(records: Sequence[dict[str, Any]], number: int) -> list[dict[str, Any]]:
    """Return `number` of the records at equal distances, or all of them if there are fewer."""
    chosen = min(number, len(records))
    return [records[place * len(records) // chosen] for place in range(chosen)]


def write_json_lines(path: Path, records: Iterable[Mapping[str, Any]]) -> None:
    """Write a JSON object on each line. The folder is created if it is missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = (json.dumps(record, ensure_ascii=False) + "\n" for record in records)
    path.write_text("".join(lines), encoding="utf-8")


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("questions", type=Path, nargs="+")
    parser.add_argument("out", type=Path)
    parser.add_argument("--dev-every", type=int, default=3, help="one article in N goes to dev (default 3; 0: none)")
    parser.add_argument(
        "--test-every", type=int, default=0, help="one of the other articles in N goes to test (default 0: none)"
    )
    parser.add_argument("--few", type=int, default=0, help="also write N of the training questions (default 0: none)")
    given = parser.parse_args()

    paragraphs: list[dict[str, str]] = []
    parts: dict[str, list[Article]] = {"train": [], "dev": [], "test": []}
    asked: dict[str, list[dict[str, Any]]] = {"train": [], "dev": [], "test": []}
    everything: list[dict[str, Any]] = []
    for path in given.questions:
        articles = json.loads(path.read_text(encoding="utf-8"))["data"]
        paragraphs += paragraph_records(articles)
        for part, chosen in parts_of(articles, given.dev_every, given.test_every).items():
            parts[part] += chosen
            records = list(question_records(chosen))
            asked[part] += records
            everything += [{**record, "part": part, "file": path.stem} for record in records]
    write_json_lines(given.out / "paragraphs.jsonl", paragraphs)
    for part, articles in parts.items():
        if articles:
            layout = json.dumps({"data": articles}, ensure_ascii=False)
            (given.out / f"articles-{part}.json").write_text(layout, encoding="utf-8")
    write_json_lines(given.out / "all.jsonl", everything)
    for part, records in asked.items():
        if records:
            write_json_lines(given.out / f"{part}.jsonl", records)
    write_json_lines(given.out / "train-dev.jsonl", asked["train"] + asked["dev"])
    if given.few > 0:
        write_json_lines(given.out / f"train-{given.few}.jsonl", evenly_spaced(asked["train"], given.few))


if __name__ == "__main__":
    main()
