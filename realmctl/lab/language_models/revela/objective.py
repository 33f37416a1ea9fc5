"""The objective of Revela: the loss of the next token of each block, where the blocks of a batch read each other as the retriever says.

A batch has neighbouring blocks of some documents, because what helps to predict a text stands near it (Cai et al. 2025, section 4.1).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from realmctl.artifacts import Writer, tokenizer_folder
from realmctl.corpus.corpus import Corpus
from realmctl.errors import InputError
from realmctl.lab.language_models.models.causal import require_causal
from realmctl.lab.language_models.models.files import load_language_model
from realmctl.lab.language_models.models.model import LanguageModel
from realmctl.lab.language_models.models.prompts import check_positions
from realmctl.lab.language_models.revela.attention import in_batch_logits, similarity
from realmctl.lab.language_models.revela.settings import RevelaSettings
from realmctl.models.inputs import Collator, TokenBatch
from realmctl.models.precision import seed_everything, to_device
from realmctl.models.retriever import Retriever
from realmctl.tokens.tokenizer import Tokenizer
from realmctl.training.data.draws import Stream, generator
from realmctl.training.data.order import DataOrder
from realmctl.training.data.own_blocks import rows_by_document
from realmctl.training.loop import train
from realmctl.training.objective import Objective, Sums
from realmctl.training.starts.retriever import whole_retriever


@dataclass(frozen=True)
class RevelaBatch:
    """Blocks that read each other.

    queries, blocks: The first half of each, and all of it, as the retriever reads them. ids_BL, mask_BL: int64, as the language model reads them.
    document_B: int64, the number of each block's document.
    """

    queries: TokenBatch
    blocks: TokenBatch
    ids_BL: Tensor
    mask_BL: Tensor
    document_B: Tensor


class RevelaObjective(Objective[RevelaBatch]):
    """Trains a retriever and, unless it is frozen, a language model.

    Raises:
        InputError: Fewer than two documents have two blocks.
    """

    def __init__(
        self, retriever: Retriever, model: LanguageModel, corpus: Corpus, collator: Collator, settings: RevelaSettings
    ) -> None:
        self.retriever, self.model, self.corpus, self.collator, self.settings = (
            retriever,
            model,
            corpus,
            collator,
            settings,
        )
        self.modules = nn.ModuleDict({"retriever": retriever})
        if settings.freeze_lm:
            model.eval().requires_grad_(False)
        else:
            self.modules["language-model"] = model
        self.documents = [rows for rows in rows_by_document(corpus, settings.group_by) if len(rows) > 1]
        if len(self.documents) < 2:
            raise InputError(
                f"{corpus.artifact} has {len(self.documents)} documents of two blocks or more, and revela-init needs at least 2. If the documents "
                "are passages, use --group-by title or --group-by source. Or chunk longer documents, or use a smaller --max-wordpieces."
            )
        count = math.ceil(settings.batch_size / settings.blocks_each)
        self.order = DataOrder(len(self.documents), min(count, len(self.documents)), settings.seed)

    def draw(self, step: int) -> Sequence[RevelaBatch]:
        rng = generator(self.settings.seed, Stream.QUERY_MASKS, step)
        rows, documents = list[int](), list[int]()
        for number in self.order.batch(step).tolist():
            own = self.documents[number]
            first = int(rng.integers(max(1, len(own) - self.settings.blocks_each + 1)))
            own = own[first : first + self.settings.blocks_each][: self.settings.batch_size - len(rows)]
            rows += own.tolist()
            documents += [number] * len(own)
        bodies = [self.corpus.tokens(row) for row in rows]
        halves = [body[: max(1, len(body) // 2)] for body in bodies]
        ids = [[self.model.special.start, *self._lm_ids(row)] for row in rows]
        return [
            RevelaBatch(
                self.retriever.pack_queries(self.collator, halves, self.retriever.block_length),
                self.retriever.pack_blocks(self.collator, [self.corpus.title(row) for row in rows], bodies),
                *self.model.padded(ids),
                torch.tensor(documents),
            )
        ]

    def _lm_ids(self, row: int) -> list[int]:
        return self.model.ids(self.corpus[row].text)[: self.settings.length - 1]

    def loss(self, part: RevelaBatch) -> tuple[Tensor, Sums]:
        """The mean cross-entropy of the next token; how often the likeliest one is right; how much of the reading falls on a block's own document."""
        device = next(self.retriever.parameters()).device
        self.model.to(device)
        similar_BB = similarity(
            self.retriever.embed_queries(part.queries.to(device)),
            self.retriever.embed_blocks(part.blocks.to(device)),
            self.settings.temperature,
        )
        ids_BL, mask_BL, document_B = (to_device(each, device) for each in (part.ids_BL, part.mask_BL, part.document_B))
        logits_BLV = in_batch_logits(self.model.net, ids_BL, mask_BL, similar_BB)[:, :-1].float()
        target_BL, counts_BL = ids_BL[:, 1:], mask_BL[:, 1:]
        loss_BL = F.cross_entropy(logits_BLV.transpose(1, 2), target_BL, reduction="none") * counts_BL
        right = ((logits_BLV.argmax(-1) == target_BL) * counts_BL).sum()
        same = (similar_BB.detach() * (document_B == document_B[:, None])).sum()
        sums: Sums = {"accuracy": (right, counts_BL.sum()), "same_document": (same, float(len(ids_BL)))}
        return loss_BL.sum() / counts_BL.sum(), sums


def train_revela(settings: RevelaSettings, out: Writer) -> dict[str, float]:
    """Train a retriever by a language model that reads with its help, and write the retriever. Returns metrics.

    Raises:
        InputError: The model is no causal one, its attention cannot be extended, or fewer than two documents have two blocks.
        MismatchError: The retriever has no block tower.
    """
    model = load_language_model(Path(settings.lm))
    if model.reads_source_apart:
        raise InputError(
            f"{settings.lm} reads a source apart from what it writes, as T5 does, and revela-init needs a causal model. Name one of GPT-2's kind."
        )
    require_causal(model)
    check_positions(model, settings.length, "--length")
    seed_everything(settings.seed)
    retriever, corpus = whole_retriever(settings.retriever), Corpus(settings.blocks)
    words = Tokenizer.load(tokenizer_folder(settings.retriever))
    objective = RevelaObjective(retriever, model, corpus, Collator.of(words), settings)
    try:
        metrics = train(objective, settings, out, "revela-init", chance=math.log(model.net.config.vocab_size))
    except NotImplementedError as error:
        raise InputError(
            f"{settings.lm}: the attention of a model of type {model.net.config.model_type} cannot be extended to a batch ({error}). Name "
            "another causal model, such as a GPT-2, a Llama or a Qwen3."
        ) from None
    retriever.cpu().save(out.path)
    out.copy_folder("tokenizer", tokenizer_folder(settings.retriever))
    return {**metrics, "documents": len(objective.documents)}
