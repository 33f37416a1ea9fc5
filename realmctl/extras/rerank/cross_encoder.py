"""A cross-encoder reads a question and a text together, and says how relevant the text is (Nogueira and Cho, arXiv:1901.04085).

It is a sequence-classification model, or a language model that answers yes or no, in Hugging Face's layout, as sentence-transformers'
CrossEncoder saves it. Legend: N pairs, L tokens of the longest pair of a batch, H hidden, C labels.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification

from realmctl.errors import InputError
from realmctl.extras.rerank.folder import ACTIVATIONS, CrossEncoderFolder, read_folder, refused
from realmctl.extras.rerank.yes_no import Around, YesNo, around_of
from realmctl.models.encoder import cls_state
from realmctl.models.families.known import FAMILIES
from realmctl.models.foreign_model import open_foreign
from realmctl.models.inputs import TokenBatch
from realmctl.models.precision import pick_device
from realmctl.models.weights import require_finite_scores
from realmctl.retrieval.search.reranking import Pair, Reranker

ACTIVATIONS_ON_CPU, WITHOUT_PADDING = 2**18, 4
"""Floats of one hidden state of a batch, and how many times as many are faster where no padding is computed (benchmarks/rerank.md)."""
TOKENS_ON_ACCELERATOR = 2**15
PAIRS_AT_ONCE = 4096
"""Pairs whose tokens are held in memory together, of which those of like length are read together."""
SCALED_LOGITS = ("final_logit_softcapping", "logit_scale", "logits_scaling")
"""Fields of config.json by which a language model changes its logits."""
WITH_CLASSIFIER = ("roberta", "xlm-roberta", "camembert")
"""Types whose `classifier` reads the state of the first token. BERT's reads the pooler's output."""


class Classifier(nn.Module):
    """A sequence-classification model of transformers, run by the families' fast path where its type has one."""

    def __init__(self, net: Any) -> None:
        super().__init__()
        self.net = net
        self.takes_segments = "token_type_ids" in inspect.signature(net.forward).parameters
        self.is_known = (
            net.config.model_type in ("bert", *WITH_CLASSIFIER) and net.config.model_type in FAMILIES.names()
        )

    def forward(self, packed: TokenBatch) -> Tensor:
        """The logits of a batch, [N, C]."""
        if not self.is_known:
            inputs = {"input_ids": packed.ids_BL, "attention_mask": packed.mask_BL.long()}
            if self.takes_segments:
                inputs["token_type_ids"] = packed.segments_BL
            logits_NC: Tensor = self.net(**inputs).logits
            return logits_NC
        state_NH = cls_state(self.net.base_model, packed)
        if self.net.config.model_type == "bert":
            pooled_NH = self.net.dropout(torch.tanh(self.net.bert.pooler.dense(state_NH)))
            logits_NC = self.net.classifier(pooled_NH)
        else:
            logits_NC = self.net.classifier(state_NH[:, None])
        return logits_NC


class CrossEncoder(Reranker):
    """Scores pairs as sentence-transformers' CrossEncoder does.

    With one label the score is the activation of its logit, which the folder names; by default the sigmoid. With two labels it is the softmax's
    share of the second, and with more, which are grades, their mean by the softmax. around: what a language model reads around a pair.
    """

    def __init__(
        self,
        net: Classifier | YesNo,
        tokenizer: Any,
        length: int,
        said: CrossEncoderFolder,
        device: str,
        around: Around | None = None,
    ) -> None:
        self.device, self.around = pick_device(device), around
        self.net, self.tokenizer, self.length, self.said = net.to(self.device).eval(), tokenizer, length, said
        self.has_segments = "token_type_ids" in tokenizer.model_input_names

    @classmethod
    def open(cls, folder: Path, device: str) -> Self:
        flag = f"reranker {folder}"
        said = read_folder(folder, flag)
        if not said.is_classifier:
            return cls._open_yes_no(folder, said, flag, device)
        tokenizer, net, longest = open_foreign(
            folder, AutoModelForSequenceClassification, "sequence-classification model", flag
        )
        _require_labels(net.config, flag)
        return cls(Classifier(net), tokenizer, min(said.max_length or longest, longest), said, device)

    @classmethod
    def _open_yes_no(cls, folder: Path, said: CrossEncoderFolder, flag: str, device: str) -> Self:
        tokenizer, net, longest = open_foreign(folder, AutoModelForCausalLM, "causal language model", flag)
        if odd := [name for name in SCALED_LOGITS if getattr(net.config, name, None)]:
            raise refused(flag, f"its config.json sets {odd[0]}, which is not computed here")
        tokens = said.yes, said.no
        is_qwen = said.yes is None
        if is_qwen:
            known = tokenizer.get_vocab()
            tokens = known.get("yes"), known.get("no")
            if net.config.model_type != "qwen3" or None in tokens:
                raise refused(flag, "it is a causal language model, and no LogitScore says by which tokens it answers")
        yes, no = tokens
        if yes is None or max(yes, no or 0) >= net.config.vocab_size:
            raise refused(flag, "its LogitScore names a token that its vocabulary does not have")
        around = around_of(folder, tokenizer, said.prompt, is_qwen, flag)
        length = min(said.max_length or longest, longest)
        if around and len(around.kept) >= length:
            raise refused(flag, f"its longest input of {length} tokens has no room for a question")
        return cls(YesNo(net, yes, no), tokenizer, length, said, device, around)

    def scores(self, pairs: Sequence[Pair]) -> NDArray[np.float32]:
        found = [np.empty(0, np.float32)]
        for start in range(0, len(pairs), PAIRS_AT_ONCE):
            found.append(self._scores(pairs[start : start + PAIRS_AT_ONCE]))
        return np.concatenate(found)

    @torch.inference_mode()
    def _scores(self, pairs: Sequence[Pair]) -> NDArray[np.float32]:
        encoded = self.encoded(pairs)
        score_N = np.empty(len(pairs), np.float32)
        for rows in self._batches([len(ids) for ids, _ in encoded]):
            logits_NC = self.net(packed([encoded[row] for row in rows], self.tokenizer.pad_token_id).to(self.device))
            require_finite_scores(logits_NC, "The cross-encoder")
            score_N[rows] = self.score(logits_NC.float()).cpu().numpy()
        return score_N

    def score(self, logits_NC: Tensor) -> Tensor:
        """The scores of these logits, float32 [N]."""
        if logits_NC.shape[1] == 1:
            return ACTIVATIONS[self.said.activation or "Sigmoid"](logits_NC[:, 0])
        grade_C = torch.arange(logits_NC.shape[1], dtype=logits_NC.dtype, device=logits_NC.device)
        return logits_NC.softmax(-1) @ grade_C

    def encoded(self, pairs: Sequence[Pair]) -> list[tuple[list[int], list[int]]]:
        """Tokens and segments of each pair, cut at the end of its longer text until it fits."""
        if not pairs:
            return []
        texts = [f"{pair.title} {pair.text}".strip() for pair in pairs]
        if self.around:
            return self._written(self.around, pairs, texts)
        questions = [self.said.prompt + pair.question for pair in pairs]
        made = self.tokenizer(questions, texts, truncation="longest_first", max_length=self.length)
        ids = made["input_ids"]
        segments = made["token_type_ids"] if self.has_segments else [[0] * len(each) for each in ids]
        return [*zip(ids, segments, strict=True)]

    def _written(
        self, around: Around, pairs: Sequence[Pair], texts: Sequence[str]
    ) -> list[tuple[list[int], list[int]]]:
        """As `encoded`, of the whole texts that a language model reads. A cut takes what stands before the end that each of them has."""
        whole = [around.filled(pair.question, text) for pair, text in zip(pairs, texts, strict=True)]
        rows = self.tokenizer(whole, add_special_tokens=False, verbose=False)["input_ids"]
        kept = [*around.kept]
        cut = [row if len(row) <= self.length else [*row[: self.length - len(kept)], *kept] for row in rows]
        return [(row, [0] * len(row)) for row in cut]

    def _batches(self, lengths: Sequence[int]) -> Iterator[list[int]]:
        """Rows of like length, the longest first, so that a lack of memory shows at once."""
        hidden = max(1, int(getattr(self.net.net.config, "hidden_size", 768)))
        larger = WITHOUT_PADDING if isinstance(self.net, Classifier) and self.net.is_known else 1
        most = larger * ACTIVATIONS_ON_CPU // hidden if self.device.type == "cpu" else TOKENS_ON_ACCELERATOR
        order = sorted(range(len(lengths)), key=lambda row: -lengths[row])
        while order:
            count = max(1, most // max(1, lengths[order[0]]))
            yield order[:count]
            order = order[count:]


def packed(rows: Sequence[tuple[Sequence[int], Sequence[int]]], pad: int) -> TokenBatch:
    """Lay out tokens and segments of pairs as a padded batch."""
    width = max(len(ids) for ids, _ in rows)
    ids_NL = np.full((len(rows), width), pad, np.int64)
    segments_NL = np.zeros((len(rows), width), np.int64)
    mask_NL = np.zeros((len(rows), width), np.bool_)
    for row, (ids, segments) in enumerate(rows):
        ids_NL[row, : len(ids)], segments_NL[row, : len(ids)], mask_NL[row, : len(ids)] = ids, segments, True
    return TokenBatch(torch.from_numpy(ids_NL), torch.from_numpy(mask_NL), torch.from_numpy(segments_NL))


def _require_labels(config: Any, flag: str) -> None:
    """Raise InputError for more than two labels with names, which are kinds and not grades."""
    names = [str(name) for _, name in sorted((config.id2label or {}).items())]
    if len(names) > 2 and not all(name == f"LABEL_{number}" or name.isdigit() for number, name in enumerate(names)):
        raise InputError(
            f"{flag}: its {len(names)} labels are {', '.join(names)[:80]}, which are no grades of relevance. Name a cross-encoder with one or two "
            "labels, or with grades."
        )
