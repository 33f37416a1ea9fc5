"""The objectives of Condenser and coCondenser.

Condenser's loss is the cross-entropy of the head plus the cross-entropy of the last layer. Both are means over the masked
wordpieces of the whole batch. coCondenser adds the mean contrastive loss. All terms have weight 1.
coCondenser's batch may be computed in chunks by the gradient cache.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from realmctl.artifacts import Writer
from realmctl.artifacts.description import EncoderDescription, describe_encoder
from realmctl.corpus.corpus import Corpus
from realmctl.errors import InputError
from realmctl.execution import processes
from realmctl.execution.batches import batched
from realmctl.lab.bottleneck.condenser_model import Condenser, contrastive_loss
from realmctl.lab.bottleneck.masked_passages import MaskedPassages, SpanPairs, WholeWordMasking
from realmctl.lab.bottleneck.settings import CondenserSettings
from realmctl.lab.bottleneck.start import retriever_of_one_encoder, save_start, starting_masked_lm
from realmctl.log import say, warn
from realmctl.models.encoder import masked_loss
from realmctl.models.inputs import Collator, QueryBatch
from realmctl.models.precision import seed_everything, to_device
from realmctl.models.retriever import Retriever
from realmctl.spans.query import Query
from realmctl.tokens.tokenizer import Tokenizer
from realmctl.training.data.draws import SharedDraws, Stream, generator
from realmctl.training.data.order import DataOrder
from realmctl.training.data.own_blocks import rows_by_document
from realmctl.training.data_parallel import all_gather
from realmctl.training.gradient_cache import CachedGradient, contrasted, prepared
from realmctl.training.loop import train
from realmctl.training.objective import Objective, Sums


@dataclass(frozen=True)
class CondenserMicroBatch:
    """Masked inputs.

    masks_in_batch: Number of masks in the whole batch of all processes. document_C: int64, the document that each span of that batch is
    from; empty without a contrast.
    """

    batch: QueryBatch
    masks_in_batch: int
    document_C: Tensor
    cached: CachedGradient | None = None


class CondenserObjective(Objective[CondenserMicroBatch]):
    """Trains a Condenser on masked passages, or on pairs of spans (coCondenser).

    Each process takes its part of the batch, and each span is compared with the spans of all processes. A span's vector is its [CLS]
    state; of a retriever whose block tower is on the same BERT, its embedding. A document may be in a batch twice, where a pass over the
    documents ends, or as a copy. Its other pair is then left out of the span's softmax. The public code counts it as negative.

    Raises:
        InputError: Fewer than two documents have two blocks.
        ConfigError: The batch cannot be divided among the processes.
    """

    def __init__(
        self,
        model: Condenser,
        examples: MaskedPassages,
        settings: CondenserSettings,
        retriever: Retriever | None = None,
    ) -> None:
        if settings.contrastive and (not isinstance(examples, SpanPairs) or len(examples) < 2):
            raise InputError(
                f"{examples.corpus.artifact} has {len(examples)} documents of two blocks or more, and a contrast needs at least 2. "
                "If the documents are passages, use --group-by title or --group-by source. Or chunk longer documents, use a smaller "
                "--max-wordpieces, or leave --contrastive out."
            )
        self.modules = nn.ModuleDict({"model": model} | ({"retriever": retriever} if retriever else {}))
        self.tower = retriever.block_tower if retriever else None
        self.model, self.examples, self.settings = model, examples, settings
        self.names = examples.names if isinstance(examples, SpanPairs) else np.empty(0, dtype=np.int64)
        self.order = DataOrder(len(examples), min(settings.batch_size, len(examples)), settings.seed)
        self.own = processes.share(self.order.batch_size, "examples")
        self.draws = SharedDraws(self._whole_batch)

    def _whole_batch(self, step: int) -> list[Query]:
        rng = generator(self.settings.seed, Stream.MLM_MASKS, step)
        return [query for number in self.order.batch(step) for query in self.examples.draw_all(int(number), rng)]

    def draw(self, step: int) -> Sequence[CondenserMicroBatch]:
        """Return this process's micro-batches."""
        drawn = self.draws.of(step)
        masks = sum(query.hidden for query in drawn)
        each = len(drawn) // self.order.batch_size  # 2 spans of a document, or 1 passage
        own = drawn[self.own.start * each : self.own.stop * each]
        batches = map(self.examples.batch, batched(own, self.settings.micro_batch))
        document_C = np.repeat(self.names[self.order.batch(step)], each) if self.settings.contrastive else self.names
        parts = [CondenserMicroBatch(batch, masks, torch.from_numpy(document_C)) for batch in batches]
        if not self.settings.contrastive:
            return parts
        device = next(self.model.parameters()).device
        return prepared(parts, self._embed, partial(_contrast_all, torch.from_numpy(document_C)), device)

    def loss(self, part: CondenserMicroBatch) -> tuple[Tensor | None, Sums]:
        """Return the micro-batch's share of the loss, and the metrics. Without a contrast a batch without masks has no loss."""
        device = next(self.model.parameters()).device
        if part.cached is not None:
            part.cached.restore_random_state(device)
        late_BLH, head_BLH = self.model(part.batch.packed.to(device))
        positions = to_device(part.batch.place_M, device)
        targets = to_device(part.batch.target_M, device)
        scale, count = 1 / max(1, part.masks_in_batch), len(targets)
        head_loss = masked_loss(self.model.mlm, head_BLH, positions, targets)
        sums: dict[str, tuple[float | Tensor, float]] = {"head_loss": (head_loss.detach(), float(count))}
        loss = head_loss * scale
        late_loss = masked_loss(self.model.mlm, late_BLH, positions, targets)  # the public code has it by default too
        sums["late_loss"] = (late_loss.detach(), float(count))
        loss = loss + late_loss * scale
        if self.settings.contrastive:
            contrast, accuracy = contrasted(
                part, [self._vectors(late_BLH, part)], partial(_contrast_all, part.document_C)
            )
            fraction = part.cached.fraction if part.cached else 1.0
            sums["contrastive_loss"] = (contrast.detach(), fraction)
            sums["accuracy"] = (accuracy * fraction, fraction)
            loss = loss + contrast / processes.world_size()
        return (loss if part.masks_in_batch or self.settings.contrastive else None), sums

    def _vectors(self, late_BLH: Tensor, part: CondenserMicroBatch) -> Tensor:
        """The vectors of spans that are compared, [S, H]."""
        if self.tower is None:
            return late_BLH[:, 0]
        return self.tower.project(self.tower.pool_states(late_BLH, part.batch.packed.to(late_BLH.device)))

    def _embed(self, part: CondenserMicroBatch) -> list[Tensor]:
        device = next(self.model.parameters()).device
        return [self._vectors(self.model(part.batch.packed.to(device))[0], part)]


def train_condenser(settings: CondenserSettings, out: Writer) -> dict[str, float]:
    """Train an encoder with a Condenser head, and write both; with a retriever, that too, as a part. Returns metrics."""
    retriever = retriever_of_one_encoder(settings.retriever, settings.blocks) if settings.retriever else None
    model, examples = _start(settings, retriever), _examples(settings, retriever)
    objective = CondenserObjective(model, examples, settings, retriever)
    others = max(1, 2 * objective.order.batch_size - 1) if settings.contrastive else 1
    chance = 2 * math.log(model.mlm.config.vocab_size) + math.log(others)
    metrics = train(objective, settings, out, "condenser-init", chance=chance)
    described = EncoderDescription(pooling="cls", skip_from=model.skip_from, head_layers=len(model.head))
    save_start(out, settings.blocks, model.cpu().mlm, described, retriever)
    model.save_head(out.path)
    return {"examples": len(examples), **metrics}


def _start(settings: CondenserSettings, retriever: Retriever | None) -> Condenser:
    mlm = starting_masked_lm(settings, retriever)
    folder = settings.trained_folder
    before = (describe_encoder(folder) if folder else None) or EncoderDescription(pooling="cls")
    seed_everything(settings.seed)  # the head is new, whatever the encoder
    skips = (settings.skip_from, before.skip_from, mlm.config.num_hidden_layers // 2)
    layers = (settings.head_layers, before.head_layers, 2)
    skip_from, head_layers = (next(each for each in given if each is not None) for given in (skips, layers))
    model = Condenser(mlm, skip_from=skip_from, head_layers=head_layers)
    if folder is not None:
        _load_head(model, folder, settings.contrastive)
    return model


def _load_head(model: Condenser, folder: Path, contrastive: bool) -> None:
    if model.load_head(folder):
        say(f"condenser-init: continuing with the Condenser head of {folder}")
        return
    advice = "Start coCondenser from an encoder that condenser-init made." if contrastive else "Use a long warm-up."
    warn(
        f"{folder} has no Condenser head, so a random head starts on a trained backbone. The authors of Condenser warn "
        f"that this can corrupt the backbone. {advice}"
    )


def _examples(settings: CondenserSettings, retriever: Retriever | None) -> MaskedPassages:
    words, corpus = Tokenizer.load(settings.blocks.path), Corpus(settings.blocks)
    masking = WholeWordMasking.of(words, settings.mask_rate)
    if not settings.contrastive:
        return MaskedPassages(corpus, Collator.of(words), masking, length=settings.length)
    documents, prefix = (
        rows_by_document(corpus, settings.group_by),
        retriever.layout.block_prefix.ids if retriever else (),
    )
    return SpanPairs(corpus, Collator.of(words), masking, documents, length=settings.length, prefix=prefix)


def _contrast_all(document_C: Tensor, vector_SH: Tensor) -> tuple[Tensor, Tensor]:
    """Loss and accuracy of this process's spans among those of all processes."""
    vector_CH = all_gather(vector_SH.float())
    return contrastive_loss(
        vector_SH, vector_CH, to_device(document_C, vector_CH.device), processes.rank() * len(vector_SH)
    )
