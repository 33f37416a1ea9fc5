"""Passages from records, and documents dealt out to ranges of rows."""

from hypothesis import given
from hypothesis import strategies as st

from realmctl.spans.passages import LinkAnchor, Passage, by_document, documents_beginning_in


def record(document: str, number: int = 0):
    return {
        "id": f"{document}-{number}",
        "document": document,
        "title": "T",
        "text": "One. Two.",
        "sentences": [[0, 4], [5, 9]],
        "anchors": [[5, 8, "Two (number)"]],
    }


def test_a_passage_is_read_from_a_block_record():
    passage = Passage.from_record(record("7"))
    assert (passage.id, passage.document, passage.title) == ("7-0", "7", "T")
    assert passage.sentence_texts() == ["One.", "Two."]
    assert passage.anchors == (LinkAnchor(5, 8, "Two (number)"),)


def test_runs_of_one_document():
    passages = [Passage.from_record(record(document)) for document in "aabca"]
    assert [[p.document for p in run] for run in by_document(passages)] == [["a", "a"], ["b"], ["c"], ["a"]]


@given(st.lists(st.integers(1, 5), max_size=8), st.integers(1, 7))
def test_every_document_is_dealt_once_and_whole(lengths, unit):
    records = [record(str(n), k) for n, length in enumerate(lengths) for k in range(length)]
    dealt, runs = [], []
    for start in range(0, len(records), unit):
        first, passages = documents_beginning_in(records, start, start + unit)
        assert [p.id for p in passages] == [r["id"] for r in records[first : first + len(passages)]]
        dealt += [p.id for p in passages]
        runs += [len(run) for run in by_document(passages)]
    assert dealt == [r["id"] for r in records]
    assert runs == lengths
