"""A new retriever: a BERT with a projection, random or in closed form."""

from __future__ import annotations

from realmctl.corpus.corpus import Corpus
from realmctl.models.inputs import Collator
from realmctl.models.precision import seed_everything
from realmctl.models.retriever import Retriever
from realmctl.tokens import wordpiece
from realmctl.training.settings import RetrieverSettings
from realmctl.training.starts.closed_form import start_with_pca
from realmctl.training.starts.encoder import starting_bert


def new_retriever(settings: RetrieverSettings) -> tuple[Retriever, Corpus, Collator]:
    """Return the retriever that training starts from, with the blocks that it is trained on and their collator."""
    seed_everything(settings.seed)  # the projection is always new
    start = starting_bert(settings.encoder, settings.bert, settings.blocks, settings.seed)
    corpus = Corpus(settings.blocks)
    retriever = Retriever.from_bert(
        start.bert,
        projection=settings.projection,
        query_length=settings.query_length,
        pooling=settings.pooling or "pooler",
        towers=settings.towers,
        block_length=corpus.max_wordpieces,
        norm_eps=settings.projection_norm_eps,
    )
    collator = Collator.of(wordpiece.load(settings.blocks.path))
    if settings.projection_init == "pca":
        start_with_pca(retriever, corpus, collator, settings)
    elif settings.scale is not None:
        retriever.start_projection(scale=settings.scale)
    return retriever, corpus, collator
