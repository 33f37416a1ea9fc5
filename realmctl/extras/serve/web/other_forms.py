"""Embeddings and relevances below /v1, in the forms of other services, for their clients."""

from __future__ import annotations

from fastapi import APIRouter

from realmctl.execution.batches import batched
from realmctl.extras.serve.vectors import (
    TEXTS_AT_ONCE,
    EmbeddingsReply,
    EmbeddingsRequest,
    ModelsReply,
    OtherErrorReply,
    RerankReply,
    RerankRequest,
    ServedModel,
    embeddings_reply,
)
from realmctl.extras.serve.web.api import Errors, Served, reply_of

router = APIRouter(prefix="/v1")
ERRORS: Errors = {code: {"model": OtherErrorReply} for code in (400, 404, 413, 422, 503)}


@router.get("/models")
async def models(served: Served) -> ModelsReply:
    """The names that `model` may have."""
    return ModelsReply(data=[ServedModel(id=name) for name in served.model_names()])


@router.post("/embeddings", responses=ERRORS)
async def embeddings(message: EmbeddingsRequest, served: Served) -> EmbeddingsReply:
    """Vectors of texts, in the form of OpenAI."""
    side = served.side_of(message)
    found = [
        await reply_of(served.embed(part, side, message.dimensions)) for part in batched(message.texts, TEXTS_AT_ONCE)
    ]
    return embeddings_reply(message, found)


@router.post("/rerank", responses=ERRORS)
async def rerank(message: RerankRequest, served: Served) -> RerankReply:
    """Texts by their relevance for a query, in the form of Jina, Cohere and vLLM."""
    return await reply_of(served.rerank(message))
