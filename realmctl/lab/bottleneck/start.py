"""A masked language model that prepares a retriever: what it starts from, and what is kept of it."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

from realmctl.artifacts import Artifact, Writer, require_same_vocabulary, tokenizer_folder, writing
from realmctl.artifacts.description import ENCODER, EncoderDescription, Pooling, write_description
from realmctl.corpus.corpus import Corpus
from realmctl.errors import MismatchError
from realmctl.execution import processes
from realmctl.lab.bottleneck.settings import WarmEncoderSettings
from realmctl.log import say
from realmctl.models.bert.files import save_masked_lm
from realmctl.models.bert.modules import Encoder
from realmctl.models.families.known import family_of
from realmctl.models.inputs import Collator
from realmctl.models.retriever import Retriever
from realmctl.tokens.tokenizer import Tokenizer
from realmctl.training.starts.encoder import starting_bert
from realmctl.training.starts.fitted import fitted_head
from realmctl.training.starts.retriever import whole_retriever


def retriever_of_one_encoder(artifact: Artifact, blocks: Artifact) -> Retriever:
    """Load a retriever to start from. Raises MismatchError for one of two encoders, since one model is trained."""
    require_same_vocabulary(blocks, artifact)
    retriever = whole_retriever(artifact)
    if retriever.towers != "shared":
        raise MismatchError(
            f"{artifact} has an encoder for queries and another for blocks, and one is trained here. Use ict-init."
        )
    return retriever


def starting_masked_lm(settings: WarmEncoderSettings, retriever: Retriever | None) -> Encoder:
    """Return the encoder with its vocabulary layer; or the retriever's own encoder, with a layer that is fitted to its states."""
    if retriever is None:
        return starting_bert(settings.encoder, settings.bert, settings.blocks, settings.seed, head="trained")
    base = retriever.query_tower.bert
    mlm: Encoder = family_of(base).masked_lm(base.config)
    setattr(mlm, mlm.base_model_prefix, base)
    mlm.tie_weights()
    collator = Collator.of(Tokenizer.load(settings.blocks.path))
    decoded = fitted_head("ridge").fit(mlm, Corpus(settings.blocks), collator, settings, settings.length)
    say(f"a vocabulary layer was fitted to the retriever; it decodes {decoded:.0%} of visible wordpieces")
    return mlm


def save_start(
    out: Writer, blocks: Artifact, mlm: Encoder, described: EncoderDescription, retriever: Retriever | None
) -> None:
    """Write the encoder, its description and tokenizer; and the retriever on the same BERT, if there is one, as a part."""
    save_masked_lm(mlm, out.path)
    pooling = next((each for each in get_args(Pooling) if retriever and each == retriever.pooling), described.pooling)
    write_description(out.file(ENCODER), replace(described, pooling=pooling))
    out.copy_folder(".", tokenizer_folder(blocks))
    if retriever and processes.is_first():
        with writing(out.path / "retriever", replace(out.origin, kind="retriever")) as part:
            retriever.cpu().save(part.path)
            part.copy_folder("tokenizer", tokenizer_folder(blocks))
