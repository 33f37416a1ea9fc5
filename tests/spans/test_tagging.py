"""Documents are dealt out to ranges of rows."""

from hypothesis import given, settings
from hypothesis import strategies as st

from realmctl.corpus.blocks import Block, PackedWordpieces
from realmctl.spans.taggers import by_document
from realmctl.spans.tagging import documents_beginning_in


def block_of(document: str, number: int = 0) -> Block:
    return Block(f"{document}-{number}", document, "T", "One. Two.", (), (), PackedWordpieces(b"", b"", ()))


class Blocks(list[Block]):
    """Blocks with the one method of a corpus that is needed."""

    def block(self, row: int) -> Block:
        return self[row]


def test_runs_of_one_document():
    blocks = [block_of(document) for document in "aabca"]
    assert [[p.document for p in run] for run in by_document(blocks)] == [["a", "a"], ["b"], ["c"], ["a"]]


@given(st.lists(st.integers(1, 5), max_size=8), st.integers(1, 7))
@settings(deadline=None)
def test_every_document_is_dealt_once_and_whole(lengths, unit):
    corpus = Blocks(block_of(str(n), k) for n, length in enumerate(lengths) for k in range(length))
    dealt, runs = [], []
    for start in range(0, len(corpus), unit):
        first, blocks = documents_beginning_in(corpus, start, start + unit)
        assert blocks == corpus[first : first + len(blocks)]
        dealt += [block.id for block in blocks]
        runs += [len(run) for run in by_document(blocks)]
    assert dealt == [block.id for block in corpus]
    assert runs == lengths
