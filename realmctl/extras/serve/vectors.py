"""Vectors of texts by the retriever that a server searches with, and relevances of texts by its reranker, in the forms of other services.

Embeddings are those of OpenAI's API (platform.openai.com/docs/api-reference/embeddings), relevances those of Jina, Cohere and vLLM.
N texts, D width.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field, StringConstraints, model_validator

from realmctl.errors import ConfigError, InputError, MismatchError
from realmctl.extras.serve.messages import MOST_CHARACTERS, MOST_CHARACTERS_OF_A_BLOCK, Message
from realmctl.models.retriever_settings import RetrieverSettings, read_settings
from realmctl.retrieval.embedding.embedding import embed_questions, embed_titles_and_bodies
from realmctl.retrieval.search.dense import DenseSearcher
from realmctl.retrieval.search.reranking import Pair, Reranking

RETRIEVER = "retriever"
"""The name of the served retriever as a model. With -query or -document behind it the name also says what the texts are."""
MOST_TEXTS = 2048
TEXTS_AT_ONCE = 32
"""Texts that are computed together; between them other requests get their turn."""
Side = Literal["query", "document"]
SIDES: Mapping[str, Side] = {
    "query": "query",
    "search_query": "query",
    "document": "document",
    "passage": "document",
    "search_document": "document",
}
"""{input_type: what a text is}, in the words of OpenAI-compatible servers, Cohere and NVIDIA."""
Text = Annotated[str, StringConstraints(min_length=1, max_length=MOST_CHARACTERS_OF_A_BLOCK)]


class UnknownModel(InputError):
    """This server has no model of this name."""


class EmbeddingsRequest(Message):
    """Texts whose vectors are wanted. `input_type`: query or document, where the model's name does not say it. `dimensions`: so many numbers of each vector,
    for an encoder that was trained for it (Matryoshka). `user` is ignored.
    """

    input: Text | Annotated[list[Text], Field(min_length=1, max_length=MOST_TEXTS)]
    model: Annotated[str, Field(max_length=MOST_CHARACTERS)] = RETRIEVER
    input_type: Literal["query", "search_query", "document", "passage", "search_document"] | None = None
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: Annotated[int, Field(ge=1)] | None = None
    user: Annotated[str, Field(max_length=MOST_CHARACTERS)] | None = None

    @model_validator(mode="before")
    @classmethod
    def _no_tokens(cls, given: Any) -> Any:
        found = given.get("input") if isinstance(given, dict) else None
        if isinstance(found, list) and any(isinstance(each, int | list) for each in found):
            raise ValueError(
                "input holds numbers of tokens, of a tokenizer that this server does not have. Send texts; LangChain's OpenAIEmbeddings does so with "
                "check_embedding_ctx_length=False"
            )
        return given

    @property
    def texts(self) -> list[str]:
        return [self.input] if isinstance(self.input, str) else self.input


class Embedding(BaseModel):
    """The vector of a text: numbers, or base64 of float32 in little-endian order."""

    object: Literal["embedding"] = "embedding"
    index: int
    embedding: list[float] | str


class Usage(BaseModel):
    """Wordpieces of the texts."""

    prompt_tokens: int
    total_tokens: int


class EmbeddingsReply(BaseModel):
    """The vectors of the texts, in their order."""

    object: Literal["list"] = "list"
    data: list[Embedding]
    model: str
    usage: Usage


class ServedModel(BaseModel):
    """A name that `model` may have."""

    id: str
    object: Literal["model"] = "model"
    created: int = 0
    owned_by: Literal["realmctl"] = "realmctl"


class ModelsReply(BaseModel):
    """The names that `model` may have."""

    object: Literal["list"] = "list"
    data: list[ServedModel]


class OtherError(BaseModel):
    """What happened and what to do, in one paragraph, and the status of the reply."""

    message: str
    type: Literal["invalid_request_error"] = "invalid_request_error"
    param: None = None
    code: str


class OtherErrorReply(BaseModel):
    """An error in the form of OpenAI."""

    error: OtherError


class TextDocument(Message):
    """A document of a rerank request."""

    text: Text


class RerankRequest(Message):
    """A query, and texts to order by their relevance for it. `top_n`: so many of the best; by default all. `return_documents`: whether the texts come back."""

    query: Annotated[str, StringConstraints(min_length=1, max_length=MOST_CHARACTERS)]
    documents: Annotated[list[Text | TextDocument], Field(min_length=1, max_length=MOST_TEXTS)]
    model: Annotated[str, Field(max_length=MOST_CHARACTERS)] | None = None
    top_n: Annotated[int, Field(ge=1)] | None = None
    return_documents: bool = False

    @property
    def texts(self) -> list[str]:
        return [each if isinstance(each, str) else each.text for each in self.documents]


class Relevance(BaseModel):
    """A text by its place in the request, and how relevant it is: a score of the reranker, comparable within one query."""

    index: int
    relevance_score: float
    document: TextDocument | None = None


class RerankReply(BaseModel):
    """The texts by falling relevance."""

    model: str
    results: list[Relevance]


@dataclass(frozen=True)
class Vectors:
    """Vectors by a retriever, float32 [N, D], and the number of wordpieces of the texts."""

    vectors: NDArray[np.float32]
    wordpieces: int


class TextEncoder:
    """Embeds texts with the retriever of a searcher: a query as a search does, a document as `embed` does a block without a title."""

    def __init__(self, dense: DenseSearcher) -> None:
        self._dense = dense
        self._settings: RetrieverSettings = read_settings(dense.made_of[0].path)

    def side(self, model: str, input_type: str | None) -> Side:
        """Return what texts are. Raises UnknownModel, and ConfigError where nothing says it or both say another thing."""
        name, _, said = model.partition("-")
        if name != RETRIEVER or said not in ("", "query", "document"):
            raise UnknownModel(f"There is no model {model[:80]!r} here. There are {', '.join(self.names())}.")
        by_name, by_type = SIDES.get(said), SIDES.get(input_type or "")
        if by_name and by_type and by_name != by_type:
            raise ConfigError(f"The model {model} is for a {by_name}, and input_type is {input_type}. Leave one out.")
        if found := by_name or by_type:
            return found
        layout = self._settings.layout
        if self._settings.towers != "shared" or layout.blocks != "joined" or layout.query_prefix != layout.block_prefix:
            raise ConfigError(
                f"This retriever embeds queries and documents in different ways. Say input_type query or document, or name {RETRIEVER}-query or "
                f"{RETRIEVER}-document as model."
            )
        return "query"

    @staticmethod
    def names() -> list[str]:
        """The names of its models."""
        return [RETRIEVER, f"{RETRIEVER}-query", f"{RETRIEVER}-document"]

    def check_dimensions(self, wanted: int | None) -> None:
        """Raise ConfigError unless vectors can be cut to so many numbers."""
        width, head = self._settings.projection, self._settings.head
        if wanted is None or wanted == width:
            return
        if wanted > width:
            raise ConfigError(f"dimensions is {wanted}, and the vectors have {width} numbers. Leave it out.")
        if not head or head[-1]["kind"] != "normalize":
            raise ConfigError(
                f"dimensions is {wanted}: the vectors of this retriever do not have one length, so a part of them cannot be compared. Leave it out."
            )

    def embed(self, texts: Sequence[str], side: Side, dimensions: int | None = None) -> Vectors:
        """Embed texts. A vector that is cut gets the length that it had."""
        dense = self._dense
        if side == "document" and self._settings.towers == "query-only":
            raise MismatchError("This server's retriever was fine-tuned and embeds queries alone.")
        tokens = dense.tokens(texts)
        if side == "query":
            found = embed_questions(
                dense.retriever, dense.collator, tokens, precision=dense.precision, batch_size=TEXTS_AT_ONCE
            )
        else:
            found = embed_titles_and_bodies(
                dense.retriever, dense.collator, dense.tokens([""] * len(texts)), tokens, precision=dense.precision
            )
        if dimensions is not None and dimensions < found.shape[1]:
            cut, lengths = found[:, :dimensions], np.linalg.norm(found, axis=1, keepdims=True)
            found = cut / np.maximum(np.linalg.norm(cut, axis=1, keepdims=True), 1e-12) * lengths
        return Vectors(found, sum(map(len, tokens)))


def embeddings_reply(asked: EmbeddingsRequest, found: Sequence[Vectors]) -> EmbeddingsReply:
    """Put the vectors of a request into the form of OpenAI."""
    rows = [row for part in found for row in part.vectors.astype("<f4")]
    as_text = asked.encoding_format == "base64"
    count = sum(part.wordpieces for part in found)
    return EmbeddingsReply(
        data=[
            Embedding(index=place, embedding=base64.b64encode(row.tobytes()).decode() if as_text else row.tolist())
            for place, row in enumerate(rows)
        ],
        model=asked.model,
        usage=Usage(prompt_tokens=count, total_tokens=count),
    )


def reranked(asked: RerankRequest, reranking: Reranking | None) -> RerankReply:
    """Order the texts of a request. Raises UnknownModel, and ConfigError without a reranker."""
    if reranking is None:
        raise ConfigError("This server has no reranker. Start it with --rerank.")
    if asked.model not in (None, reranking.name):
        raise UnknownModel(f"There is no reranker {str(asked.model)[:80]!r} here. There is {reranking.name}.")
    texts = asked.texts
    scores = reranking.model.scores([Pair(asked.query, "", text) for text in texts])
    best = np.argsort(-scores, kind="stable")[: asked.top_n].tolist()
    return RerankReply(
        model=reranking.name,
        results=[
            Relevance(
                index=place,
                relevance_score=float(scores[place]),
                document=TextDocument(text=texts[place]) if asked.return_documents else None,
            )
            for place in best
        ],
    )
