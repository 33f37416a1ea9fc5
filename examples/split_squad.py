"""Turn a question file in SQuAD's layout into a small open-domain task: a corpus, train and dev questions.

    python examples/split_squad.py squad.json OUT [--dev-every 3]

Writes OUT/paragraphs.jsonl ({"id", "title", "text"}, one paragraph a line), OUT/train.jsonl and OUT/dev.jsonl
({"question", "answer": [...]}). The split is by article, so that no paragraph serves both train and dev.
"""

import argparse
import json
from collections.abc import Iterable, Iterator, Mapping
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


def write_json_lines(path: Path, records: Iterable[Mapping[str, Any]]) -> None:
    """Write a JSON object on each line. The folder is created if it is missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = (json.dumps(record, ensure_ascii=False) + "\n" for record in records)
    path.write_text("".join(lines), encoding="utf-8")


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("questions", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--dev-every", type=int, default=3, help="one article in N goes to dev (default 3)")
    arguments = parser.parse_args()

    articles = json.loads(arguments.questions.read_text(encoding="utf-8"))["data"]
    dev = articles[:: arguments.dev_every]
    train = [article for number, article in enumerate(articles) if number % arguments.dev_every]
    write_json_lines(arguments.out / "paragraphs.jsonl", paragraph_records(articles))
    write_json_lines(arguments.out / "train.jsonl", question_records(train))
    write_json_lines(arguments.out / "dev.jsonl", question_records(dev))


if __name__ == "__main__":
    main()
