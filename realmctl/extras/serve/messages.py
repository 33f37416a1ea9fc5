"""What the API reads and writes, as pydantic models. The OpenAPI document is made from them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from realmctl.corpus.blocks import Block

MOST_CHARACTERS = 4000
MOST_CHARACTERS_OF_A_BLOCK = 200_000
MOST_CHARACTERS_OF_A_LINE = 2**20
MOST_ANSWERS = 10
MOST_CANDIDATES = 32
MOST_BLOCKS_LEFT_OUT = 100


def with_words(text: str) -> str:
    """Return the text. Raises ValueError if it has no letter and no digit."""
    if not any(character.isalnum() for character in text):
        raise ValueError("there is no word in it")
    return text


def one_line(text: str) -> str:
    """Return the text. Raises ValueError if it has a line break, another character that cannot be printed, or outer spaces."""
    if not text.isprintable() or text != text.strip():
        raise ValueError("it has a line break, a character that cannot be printed, or a space at its begin or end")
    return text


Words = Annotated[str, Field(max_length=MOST_CHARACTERS), AfterValidator(with_words)]
BlockText = Annotated[str, Field(max_length=MOST_CHARACTERS_OF_A_BLOCK), AfterValidator(with_words)]
Name = Annotated[str, Field(min_length=1, max_length=MOST_CHARACTERS)]
NewId = Annotated[Name, AfterValidator(one_line)]


FilterText = Annotated[str, Field(max_length=MOST_CHARACTERS)]


class Message(BaseModel):
    """Base of what is read. An unknown field is an error, and so is a value of another type: true is no number."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Ask(Message):
    """A question. With `compare`, the reply also says what the weights answer without retrieval, which takes longer."""

    question: Words
    top: Annotated[int, Field(ge=1, le=MOST_ANSWERS)] = 3
    compare: bool = False


class Search(Message):
    """Words or a question, for which the best blocks are looked up and not read. `method`: one of the status's search_methods. `rerank`: false
    leaves out the server's reranker, which is faster. `filter`: which blocks may be found, by the fields of their documents, such as
    `date >= 2024 and source == "handbook"`.
    """

    query: Words
    top: Annotated[int, Field(ge=1, le=MOST_CANDIDATES)] = 5
    method: Annotated[str, Field(max_length=MOST_CHARACTERS)] | None = None
    rerank: bool = True
    filter: FilterText | None = None


class Fill(Message):
    """A sentence with one or more [MASK]. `candidates` counts the null document."""

    sentence: Words
    candidates: Annotated[int, Field(ge=2, le=MOST_CANDIDATES)] = 8


class LeaveOut(Message):
    """A question to answer again without some blocks, named by id, or by the id or title of their document."""

    question: Words
    without: Annotated[list[Name], Field(min_length=1, max_length=MOST_BLOCKS_LEFT_OUT)]
    top: Annotated[int, Field(ge=1, le=MOST_ANSWERS)] = 3


class NewText(Message):
    """The new text of a block. `version` is the version that the edit was made from; another one is refused with 409."""

    text: BlockText
    version: str | None = None


class NewDocument(Message):
    """A document to add. `version` as for a new text."""

    id: NewId
    title: Annotated[str, Field(max_length=MOST_CHARACTERS)] = ""
    text: BlockText
    version: str | None = None


class AnswerReply(BaseModel):
    """An answer. `start` and `end` are its character offsets in the text of its block; all three are null without one."""

    text: str
    score: float
    block: str | None = None
    start: int | None = None
    end: int | None = None


class MaskReply(BaseModel):
    """The likeliest wordpiece at one mask."""

    wordpiece: str
    probability: float


class BlockReply(BaseModel):
    """A block. `block` is its id and `document` that of its document; both are null for the null document. `section`: the headings around it. `page`: that
    of a PDF on which it begins. `fields`: what its document says of itself, such as a date.
    """

    block: str | None
    document: str | None
    title: str
    section: str = ""
    page: int | None = None
    fields: dict[str, str | int | float | list[str]] = {}
    text: str


def described(block: Block) -> dict[str, Any]:
    """What a `BlockReply` says of a block."""
    return {
        "block": block.id,
        "document": block.document,
        "title": block.title,
        "section": block.section,
        "page": block.page or None,
        "fields": block.fields,
        "text": block.text,
    }


class CandidateReply(BlockReply):
    """A block that was read, with p(z|x). `masks`: what it fills the masks with."""

    probability: float
    masks: list[MaskReply] = []


class HitReply(BlockReply):
    """A block that was found, and its score: an inner product of vectors, BM25, in hybrid search the weighted sum of both, each from 0 to 1, what a reranker says, or, where its order is fused with that of the search, the sum of 1 / (60 + rank) over both. `copies`: blocks of the same text. `file`: the address of the document's file, with `serve --files`. `marks`: where words of the query begin and end in the text, in characters."""

    score: float
    copies: list[str] = []
    file: str | None = None
    marks: list[tuple[int, int]] = []


class SearchReply(BaseModel):
    """The best blocks, best first. `search`: how they were searched. `nothing_close`: whether the query seems to be about what no block is about."""

    version: str
    search: dict[str, bool | str | int | float]
    nothing_close: bool = False
    hits: list[HitReply]


class ServedBlockReply(BlockReply):
    """A block of the served version. `document_blocks`: ids of all blocks of its document, in order."""

    version: str
    document_blocks: list[str]


class DocumentReply(BaseModel):
    """Blocks of a document in order: `blocks`, of which `first` is the number of the first one among all `count`."""

    version: str
    document: str
    title: str
    file: str | None = None
    count: int
    first: int
    blocks: list[BlockReply]


class WithoutRetrieval(BaseModel):
    """What the weights say without retrieval.

    `source` is "closed-book model" or "null document". `null_document` is p(null document|x), where the pre-trained model
    was asked.
    """

    source: str
    answers: list[AnswerReply]
    null_document: float | None = None


class AskReply(BaseModel):
    """Answers with their evidence. p(z|x) of the candidates is a softmax over the blocks read. `search`: what reranked, if anything did."""

    version: str
    search: dict[str, bool | str | int] = {}
    answers: list[AnswerReply]
    candidates: list[CandidateReply]
    without_retrieval: WithoutRetrieval | None = None


class FillReply(BaseModel):
    """The masks of a sentence, filled with retrieval, without it, and with each candidate; the null document comes first."""

    version: str
    with_retrieval: list[MaskReply]
    without_retrieval: list[MaskReply]
    candidates: list[CandidateReply]


class LeaveOutReply(BaseModel):
    """The answers without some blocks.

    `left_out`: ids of these blocks. `answer`: the best answer with them, and its probability among all spans read, with
    them and without them. `still_held_by`: ids of the blocks read afterwards that hold this answer.
    """

    version: str
    left_out: list[str]
    answer: str | None
    probability_before: float
    probability_after: float
    still_held_by: list[str]
    answers: list[AnswerReply]


class EditReply(BaseModel):
    """What an edit made: the version that is served now, what was embedded and taken over, and the document's blocks."""

    version: str
    embedded: int
    taken_over: int
    document_blocks: list[str]
    seconds: float


class Latency(BaseModel):
    """Requests of one kind since the start, and the latency of the latest 1000 in milliseconds, queueing included."""

    requests: int
    p50_ms: float | None
    p95_ms: float | None


class StatusReply(BaseModel):
    """What is served, and how it goes. `refused` counts requests that met a full queue. `examples`: what may be asked, filled or searched for.

    `search_methods`: the first is the default. `fields`: what filters may name, with its type. `newer_models`: what other runs have made since the start, and is served after a restart.
    """

    version: str
    blocks: int
    index_type: str | None
    can_ask: bool
    can_fill: bool
    search_methods: list[str]
    reranker: str | None
    fields: dict[str, str]
    newer_models: list[str]
    examples: list[str]
    edits_allowed: bool
    editing: bool
    waiting: int
    queue: int
    refused: int
    largest_batch: int
    uptime_seconds: float
    latency: dict[str, Latency]


class Health(BaseModel):
    """The server works."""

    status: Literal["ok"] = "ok"


class ErrorReply(BaseModel):
    """What happened and what to do, in one paragraph."""

    error: str
