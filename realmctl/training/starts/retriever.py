"""The retriever that a training starts from: a given one, or a BERT with a projection, random or in closed form."""

from __future__ import annotations

from realmctl.artifacts import Artifact, Writer, require_same_vocabulary
from realmctl.corpus.corpus import Corpus
from realmctl.errors import MismatchError
from realmctl.models.inputs import Collator
from realmctl.models.precision import seed_everything
from realmctl.models.retriever import Retriever
from realmctl.tokens.tokenizer import Tokenizer
from realmctl.training.names import RANDOM
from realmctl.training.settings.retriever import RetrieverTrainingSettings
from realmctl.training.starts.encoder import starting_bert
from realmctl.training.starts.fitted import fitted_projection


def whole_retriever(artifact: Artifact) -> Retriever:
    """Load a retriever to train both of its sides. Raises MismatchError for one without a block tower."""
    retriever = Retriever.load(artifact.path)
    if retriever.block_tower is None:
        raise MismatchError(
            f"{artifact} has no block tower, so it cannot learn from passages. Name the retriever it was made from."
        )
    return retriever


def starting_retriever(settings: RetrieverTrainingSettings, out: Writer) -> tuple[Retriever, Corpus, Collator]:
    """Return the retriever that training starts from, with the blocks that it is trained on and their collator.

    out: The folder of the run, which keeps what a start in closed form has computed.
    """
    corpus, collator = Corpus(settings.blocks), Collator.of(Tokenizer.load(settings.blocks.path))
    if settings.retriever is not None:
        require_same_vocabulary(settings.blocks, settings.retriever)
        return whole_retriever(settings.retriever), corpus, collator
    seed_everything(settings.seed)  # the projection is new
    start = starting_bert(settings.encoder, settings.bert, settings.blocks, settings.seed)
    assert settings.query_length and settings.projection_norm_eps  # nothing is left open
    assert settings.pooling and settings.towers and settings.projection_head
    retriever = Retriever.from_bert(
        start.base_model,
        projection=settings.projection or start.base_model.config.hidden_size,
        query_length=settings.query_length,
        pooling=settings.pooling,
        towers=settings.towers,
        block_length=corpus.max_wordpieces,
        norm_eps=settings.projection_norm_eps,
        head=settings.projection_head,
    )
    if settings.projection_init not in (None, RANDOM):
        fitted_projection(settings.projection_init).fit(retriever, corpus, collator, settings, out)
    elif settings.scale is not None:
        retriever.start_projection(scale=settings.scale)
    return retriever, corpus, collator
