"""Steps of training from a DistilBERT, a Qwen3 and a Gemma: losses and gradients are those of a plain script of transformers.

The script pads decoders on the left, pools by itself, and knows nothing of realmctl's batches but the tokens of each row.
Legend: B queries, C blocks of the batch, N candidates, D width.
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from transformers import AutoModel

from realmctl.artifacts import Artifact
from realmctl.corpus.corpus import Corpus
from realmctl.extras.hub.imports.importing import ImportExtras, import_checkpoint
from realmctl.imports.encoder_retriever import EncoderSettings
from realmctl.lab.dpr.objective import Labelled, LabelledObjective
from realmctl.lab.dpr.settings import DprSettings
from realmctl.models.inputs import Collator, TokenBatch
from realmctl.models.retriever import Retriever
from realmctl.retrieval.search.candidates import titles_and_bodies
from realmctl.tokens.tokenizer import Tokenizer
from realmctl.training.ict import InverseClozeObjective
from realmctl.training.realm import RealmObjective
from realmctl.training.refresh.index_in_use import IndexInUse
from stages.build_index import BuildIndex
from stages.chunk import Chunk
from stages.embed import Embed
from stages.ict_init import IctInit
from stages.pretrain import Pretrain
from tests.fixtures import kinds
from tests.fixtures.language_models import make_gpt2

SCALE = 20.0
POOLINGS = {"distilbert": "mean", "qwen3": "lasttoken", "gemma3_text": "mean"}
every = pytest.mark.parametrize("made", POOLINGS, indirect=True)
TEXT = "ada wrote notes on the engine . charles met ada in london . the engine was never built in 1843 ."


@pytest.fixture(scope="module")
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Blocks, retriever and index of an encoder."""
    model_type, folder = request.param, tmp_path_factory.mktemp(request.param)
    encoder = kinds.plain(model_type, folder / "plain")
    settings = EncoderSettings(pooling=POOLINGS[model_type], normalize=True, scale=SCALE)
    retriever = import_checkpoint(str(encoder), folder, ImportExtras(encoder=settings))["retriever"]
    rows = [
        {"id": str(n), "title": text.split()[0], "text": f"{TEXT} {text.capitalize()} . It was {text} ."}
        for n, text in enumerate(kinds.texts(6, seed=5, longest=8))
    ]
    documents = folder / "documents.jsonl"
    documents.write_text("".join(json.dumps(row) + "\n" for row in rows))
    blocks = Chunk(
        corpus=(documents,), tokenizer=str(retriever.path / "tokenizer"), max_wordpieces=200, workers=1
    ).make(folder / "blocks")
    embeddings = Embed(blocks=blocks, retriever=retriever, precision="fp32").make(folder / "embeddings")
    index = BuildIndex(embeddings=embeddings, type="exact").make(folder / "index")
    return SimpleNamespace(model_type=model_type, blocks=blocks, retriever=retriever, index=index, folder=folder)


class Script:
    """An encoder of transformers, and nothing else."""

    def __init__(self, made: Any) -> None:
        self.model = AutoModel.from_pretrained(made.retriever.path / "block", dtype=torch.float32).eval()
        self.left, self.pooling = made.model_type != "distilbert", POOLINGS[made.model_type]

    def vectors(self, packed: TokenBatch) -> Tensor:
        rows = [ids[: int(length)] for ids, length in zip(packed.ids_BL, packed.lengths_B, strict=True)]
        longest = max(map(len, rows))
        sides = [(longest - len(row), 0) if self.left else (0, longest - len(row)) for row in rows]
        ids = torch.stack([F.pad(row, side) for row, side in zip(rows, sides, strict=True)])
        mask = torch.stack([F.pad(torch.ones_like(row), side) for row, side in zip(rows, sides, strict=True)])
        state_BLH = self.model(input_ids=ids, attention_mask=mask).last_hidden_state
        if self.pooling == "lasttoken":
            pooled_BH = state_BLH[:, -1]
        else:
            pooled_BH = torch.where(mask[..., None] > 0, state_BLH, 0).sum(1) / mask.sum(1, keepdim=True)
        return F.normalize(pooled_BH, dim=-1) * SCALE**0.5

    def compare(self, loss: Tensor, found: Tensor, retriever: Retriever) -> None:
        """Compare the losses, and the gradients of all weights, with what `found` gives in the retriever, as shares of the largest number of all."""
        assert float(found.detach()) == pytest.approx(float(loss.detach()), abs=1e-5)
        loss.backward()
        found.backward()
        ours, compared = dict(retriever.query_tower.bert.named_parameters()), 0
        grads = [weight.grad for weight in self.model.parameters() if weight.grad is not None]
        scale = max(1.0, *(float(grad.abs().max()) for grad in grads))
        for name, weight in self.model.named_parameters():
            if weight.grad is not None:
                torch.testing.assert_close(ours[name].grad / scale, weight.grad / scale, atol=1e-5, rtol=0)
                compared += bool(weight.grad.any())
        assert compared > 9


def contrast(script: Script, queries: TokenBatch, blocks: TokenBatch, name_C: list[int], each: int) -> Tensor:
    """Cross-entropy of each query over the blocks that are no other place of its own."""
    score_BC = script.vectors(queries) @ script.vectors(blocks).T
    total = torch.zeros(())
    for row in range(len(queries)):
        target = row * each
        kept = [place for place, name in enumerate(name_C) if place == target or name != name_C[target]]
        total -= score_BC[row, kept].log_softmax(0)[kept.index(target)]
    return total / len(queries)


@every
def test_a_step_of_ict_init(made: Any) -> None:
    settings = IctInit(blocks=made.blocks, retriever=made.retriever, batch_size=4, precision="fp32")
    retriever, words = Retriever.load(made.retriever.path, dropout=0.0), Tokenizer.load(made.blocks.path)
    objective = InverseClozeObjective(retriever, Corpus(made.blocks), Collator.of(words), settings)
    [part], script = objective.draw(0), Script(made)
    script.compare(
        contrast(script, part.queries, part.blocks, part.name_C.tolist(), 1), objective.loss(part)[0], retriever
    )


@every
def test_a_step_of_dpr_finetune(made: Any) -> None:
    words, corpus = Tokenizer.load(made.blocks.path), Corpus(made.blocks)
    passages = [(corpus.title(row), corpus.tokens(row)) for row in range(6)]
    questions = [
        Labelled(words.ids(text), (passages[n],), (passages[(n + 1) % 6], passages[(n + 2) % 6]))
        for n, text in enumerate(kinds.texts(6, seed=6, longest=9))
    ]
    settings = DprSettings(passages=Path("passages.json"), hard_negatives=1, batch_size=4)
    retriever = Retriever.load(made.retriever.path, dropout=0.0)
    objective = LabelledObjective(retriever, Collator.of(words), questions, settings)
    [part], script = objective.draw(0), Script(made)
    script.compare(
        contrast(script, part.queries, part.blocks, part.name_C.tolist(), 2), objective.loss(part)[0], retriever
    )


@every
def test_a_step_of_pretrain(made: Any) -> None:
    """A language model reads, which needs no mask. What it reads is taken as it is; the script has the retriever alone."""
    reader = made.folder / "gpt2"
    if not reader.exists():
        make_gpt2(reader, dropout=0.0)
    settings = Pretrain(
        blocks=made.blocks,
        retriever=made.retriever,
        index=made.index,
        reader_lm=str(reader),
        target="continuation",
        batch_size=3,
        candidates=4,
        precision="fp32",
        target_length=4,
    )
    retriever = Retriever.load(made.retriever.path, dropout=0.0)
    objective = RealmObjective(settings, retriever, IndexInUse(made.index, "cpu"))
    [part] = objective.draw(0)
    found, script = objective.step(part), Script(made)
    query_BD, score_BN = script.vectors(part.asked.packed), []
    for query_D, rows in zip(query_BD, part.rows_BN, strict=True):
        candidates = retriever.pack_blocks(objective.collator, *titles_and_bodies(objective.corpus, rows))
        score_BN.append(script.vectors(candidates) @ query_D)
    likelihood_BN = (found.log_prob_BNM * found.hidden_BM[:, None]).sum(2).detach()
    loss = -(torch.stack(score_BN).log_softmax(1) + likelihood_BN).logsumexp(1).mean()
    script.compare(loss, found.loss, retriever)


@every
def test_runs_of_the_stages_change_the_weights(made: Any, tmp_path: Path) -> None:
    """The weights of the encoder that was imported move, and the run ends in a retriever that embeds."""
    few = {"steps": 2, "batch_size": 3, "lr": 1e-3}
    trained = IctInit(blocks=made.blocks, retriever=made.retriever, **few).make(tmp_path / "trained")
    embeddings = Embed(blocks=made.blocks, retriever=trained).make(tmp_path / "embeddings")
    assert trained.content != made.retriever.content and embeddings.metrics["rows"] == len(Corpus(made.blocks))
    assert moved(made.retriever, trained) > 1e-6


def moved(before: Artifact, after: Artifact) -> float:
    one, other = (Retriever.load(each.path).query_tower.state_dict() for each in (before, after))
    return max(float((one[name] - other[name]).abs().max()) for name in one)


def test_a_frozen_dataclass_keeps_what_pooling_leaves_out() -> None:
    """A batch on another device, and one whose segments are replaced, leave out the same tokens of pooling."""
    ids = torch.ones(1, 4, dtype=torch.long)
    packed = TokenBatch(ids, ids.bool(), ids * 0, unpooled=2)
    for other in (packed.to("cpu"), dataclasses.replace(packed, segments_BL=ids)):
        assert other.pooled_BL.tolist() == [[False, False, True, True]]
