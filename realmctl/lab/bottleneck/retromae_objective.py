"""The objective of RetroMAE and DupMAE.

The loss is the cross-entropy of all wordpieces that the decoder rebuilds, the mean over the batch, plus that of the encoder's masked
wordpieces, with weight 1 (Xiao et al., EMNLP 2022, section 3). DupMAE adds the mean loss of a bag of words with its weight.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from realmctl.artifacts import Writer
from realmctl.artifacts.description import EncoderDescription
from realmctl.corpus.corpus import Corpus
from realmctl.execution import processes
from realmctl.execution.batches import batched
from realmctl.lab.bottleneck.masked_passages import MaskedPassages, WholeWordMasking
from realmctl.lab.bottleneck.retromae_model import RetroMae, bag_of_words_loss
from realmctl.lab.bottleneck.settings import RetroMaeSettings
from realmctl.lab.bottleneck.start import retriever_of_one_encoder, save_start, starting_masked_lm
from realmctl.models.encoder import masked_loss
from realmctl.models.families.known import mlm_logits
from realmctl.models.inputs import Collator, QueryBatch, TokenBatch
from realmctl.models.precision import seed_everything, to_device
from realmctl.spans.query import Query
from realmctl.tokens.frame import AROUND_ONE
from realmctl.tokens.tokenizer import Tokenizer
from realmctl.training.data.draws import SharedDraws, Stream, generator
from realmctl.training.data.order import DataOrder
from realmctl.training.loop import train
from realmctl.training.objective import Objective, Sums

DECODER_MASK_RATE = 0.5
"""Share of the wordpieces that a position of the decoder may not read, as in the paper and its code."""
DECODER_SETS = 256
"""Random sets of a passage among which each position's is drawn (public code, pretrain/data.py)."""


@dataclass(frozen=True)
class RetroMaeMicroBatch:
    """Passages as the encoder and as the decoder reads them.

    visible_BLL: bool, what each position of the decoder may read. place_T, target_T: int64, places in the flattened [B * L] and
    wordpieces that the decoder rebuilds. masks_in_batch, tokens_in_batch, rows_in_batch: numbers in the whole batch of all processes.
    """

    masked: QueryBatch
    plain: TokenBatch
    visible_BLL: Tensor
    place_T: Tensor
    target_T: Tensor
    masks_in_batch: int
    tokens_in_batch: int
    rows_in_batch: int


class RetroMaeObjective(Objective[RetroMaeMicroBatch]):
    """Trains a RetroMAE on masked windows of blocks.

    Raises:
        ConfigError: The batch cannot be divided among the processes.
    """

    def __init__(self, model: RetroMae, examples: MaskedPassages, settings: RetroMaeSettings) -> None:
        self.modules = nn.ModuleDict({"model": model})
        self.model, self.examples, self.settings = model, examples, settings
        self.order = DataOrder(len(examples), min(settings.batch_size, len(examples)), settings.seed)
        self.own = processes.share(self.order.batch_size, "examples")
        self.draws = SharedDraws(self._whole_batch)

    def _whole_batch(self, step: int) -> list[Query]:
        rng = generator(self.settings.seed, Stream.MLM_MASKS, step)
        return [self.examples.window(int(number), rng) for number in self.order.batch(step)]

    def draw(self, step: int) -> Sequence[RetroMaeMicroBatch]:
        """Return this process's micro-batches."""
        drawn = self.draws.of(step)
        counts = sum(query.hidden for query in drawn), sum(len(query.tokens) for query in drawn), len(drawn)
        rng = generator(self.settings.seed, Stream.DECODER_MASKS, step)
        seeds = rng.integers(2**32, size=len(drawn))
        own = list(zip(drawn, seeds.tolist(), strict=True))[self.own]
        return [self._micro_batch(part, *counts) for part in batched(own, self.settings.micro_batch)]

    def _micro_batch(self, own: Sequence[tuple[Query, int]], *counts: int) -> RetroMaeMicroBatch:
        masked = self.examples.batch([query for query, _ in own])
        texts = [_plain(query) for query, _ in own]
        plain = self.examples.collator.query(texts, self.examples.length)
        length = plain.ids_BL.shape[1]
        visible_BLL = np.zeros((len(own), length, length), dtype=np.bool_)
        visible_BLL[:, :, 0] = True  # also where there is padding, so that each position reads something
        for row, (text, (_, seed)) in enumerate(zip(texts, own, strict=True)):
            stop = len(text) + 2
            visible_BLL[row, :stop, :stop] = self.visible(text, np.random.default_rng(seed))
        place_T, target_T = _places(texts, length)
        return RetroMaeMicroBatch(masked, plain, torch.from_numpy(visible_BLL), place_T, target_T, *counts)

    def visible(self, text: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.bool_]:
        """What each position of `[CLS] text [SEP]` may read, bool [L, L]: a random set of the text, the two others, never itself."""
        length = len(text) + AROUND_ONE
        sets = min(length, DECODER_SETS)
        masking = replace(self.examples.masking, rate=DECODER_MASK_RATE, spared=None)
        visible_SL = np.ones((sets, length), dtype=np.bool_)
        if len(text):
            visible_SL[:, 1:-1] = ~masking.chosen(text, sets, rng)
        visible_LL = visible_SL[rng.integers(sets, size=length)]
        np.fill_diagonal(visible_LL, False)
        return visible_LL

    def loss(self, part: RetroMaeMicroBatch) -> tuple[Tensor | None, Sums]:
        """Return the micro-batch's share of the loss, and the metrics."""
        device, mlm = next(self.model.parameters()).device, self.model.mlm
        masked, plain = part.masked.packed.to(device), part.plain.to(device)
        last_BLH, decoded_BLH = self.model(masked, plain, to_device(part.visible_BLL, device))

        def places(place: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
            return to_device(place, device), to_device(target, device)

        decoder_loss = masked_loss(mlm, decoded_BLH, *places(part.place_T, part.target_T))
        encoder_loss = masked_loss(mlm, last_BLH, *places(part.masked.place_M, part.masked.target_M))
        loss = decoder_loss / max(1, part.tokens_in_batch) + encoder_loss / max(1, part.masks_in_batch)
        sums = {
            "decoder_loss": (decoder_loss.detach(), float(len(part.target_T))),
            "encoder_loss": (encoder_loss.detach(), float(len(part.masked.target_M))),
        }
        if self.settings.bag_of_words:
            collator = self.examples.collator
            special_BL = torch.isin(part.plain.ids_BL, torch.tensor(sorted(collator.frame.ids)))
            words_loss = bag_of_words_loss(mlm_logits(mlm, last_BLH), plain, to_device(special_BL, device))
            loss = loss + self.settings.bag_of_words * words_loss / part.rows_in_batch
            sums["bag_of_words_loss"] = (words_loss.detach(), float(len(plain)))
        return loss, sums


def _plain(query: Query) -> NDArray[np.int64]:
    """The text in which nothing is hidden."""
    text = query.tokens.copy()
    text[query.places] = query.targets
    return text


def _places(texts: Sequence[NDArray[np.int64]], length: int) -> tuple[Tensor, Tensor]:
    """Places of all wordpieces in the flattened rows of `[CLS] text [SEP]`, and the wordpieces."""
    places = [row * length + 1 + np.arange(len(text)) for row, text in enumerate(texts)]
    return torch.from_numpy(np.concatenate(places)), torch.from_numpy(np.concatenate(texts))


def train_retromae(settings: RetroMaeSettings, out: Writer) -> dict[str, float]:
    """Train an encoder with RetroMAE's decoder, and write the encoder; with a retriever, that too, as a part. Returns metrics."""
    retriever = retriever_of_one_encoder(settings.retriever, settings.blocks) if settings.retriever else None
    mlm = starting_masked_lm(settings, retriever)
    seed_everything(settings.seed)  # the decoder is new, whatever the encoder
    model = RetroMae(mlm, retriever.query_tower if retriever else None)
    words, corpus = Tokenizer.load(settings.blocks.path), Corpus(settings.blocks)
    masking = WholeWordMasking.of(words, settings.mask_rate)
    prefix = retriever.layout.block_prefix.ids if retriever else ()
    examples = MaskedPassages(corpus, Collator.of(words), masking, length=settings.length, prefix=prefix)
    objective = RetroMaeObjective(model, examples, settings)
    metrics = train(objective, settings, out, "retromae-init")
    save_start(out, settings.blocks, model.cpu().mlm, EncoderDescription(pooling="cls"), retriever)
    return metrics
