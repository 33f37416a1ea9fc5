"""Write a tower with its head as one ONNX graph: token ids in, embeddings out; and the same with int8 weights (extra `hub`).

onnx/embedding.onnx        input_ids, attention_mask, int64 [B, L] -> sentence_embedding, float32 [B, D]; token_type_ids too, where
                           the encoder has segments
onnx/embedding_int8.onnx   the weights of its products in int8, activations quantised as they come
"""

from __future__ import annotations

import inspect
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from realmctl.models.bert.modules import BertModel, Encoder
from realmctl.models.retriever import Tower
from realmctl.models.towers.pooled_bert import PooledBert
from realmctl.models.towers.sentence_tower import SentenceTower

FULL, SMALL = "embedding.onnx", "embedding_int8.onnx"
SAMPLED_TEXTS, SAMPLED_LENGTH = 32, 24


class Graph(nn.Module):
    """A tower over padded rows, as other programs lay them out. B rows, L tokens, H hidden, D width."""

    def __init__(self, tower: PooledBert, bert: Any) -> None:
        super().__init__()
        self.tower, self.bert = tower, bert

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor | None = None) -> Tensor:
        tower = self.tower
        segments = {} if token_type_ids is None else {"token_type_ids": token_type_ids}
        state_BLH = self.bert(input_ids, attention_mask=attention_mask, **segments).last_hidden_state
        if tower.pooling in ("cls", "pooler"):
            pooled_BH = tower.bert.pooler(state_BLH) if tower.pooling == "pooler" else state_BLH[:, 0]
        else:
            pooled_BH = torch.cat([pool(state_BLH, attention_mask.bool()) for pool in tower.poolings], -1)
        if isinstance(tower, Tower):
            embedding_BD: Tensor = tower.norm(tower.projection(pooled_BH))
        else:
            assert isinstance(tower, SentenceTower)
            embedding_BD = tower.head(pooled_BH) * tower.scale.sqrt()
        return embedding_BD


def write_onnx(tower: PooledBert, folder: Path) -> float:
    """Write both graphs into `folder`/onnx. Return the least cosine between their embeddings of random wordpieces."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    (folder / "onnx").mkdir()
    full, small = folder / "onnx" / FULL, folder / "onnx" / SMALL
    bert = _over_padded_rows(tower.bert)
    words = int(tower.bert.config.vocab_size)
    ids_BL = torch.from_numpy(np.random.default_rng(0).integers(0, words, (SAMPLED_TEXTS, SAMPLED_LENGTH)))
    example = {"input_ids": ids_BL, "attention_mask": torch.ones_like(ids_BL)}
    if "token_type_ids" in inspect.signature(bert.forward).parameters:
        example["token_type_ids"] = torch.zeros_like(ids_BL)
    with _quiet(), torch.inference_mode(False), torch.no_grad():
        program = torch.onnx.export(
            Graph(tower, bert).eval(),
            tuple(example.values()),
            input_names=[*example],
            output_names=["sentence_embedding"],
            dynamic_shapes={name: {0: "batch", 1: "tokens"} for name in example},
            dynamo=True,
            verbose=False,
        )
        assert program is not None
        program.save(str(full))
        _forget_weight_shapes(full)
        # A scale for each column: with one for each matrix, the mean cosine of a MiniLM on man pages was .947 and not .994.
        quantize_dynamic(full, small, weight_type=QuantType.QInt8, per_channel=True)
    arrays = {name: tensor.numpy() for name, tensor in example.items()}
    ours, theirs = embed(full, arrays), embed(small, arrays)
    norms = np.linalg.norm(ours, axis=1) * np.linalg.norm(theirs, axis=1)
    return float(((ours * theirs).sum(axis=1) / norms).min())


def _forget_weight_shapes(path: Path) -> None:
    """Remove the shapes that a graph states of its weights beside the weights themselves.

    The quantiser of onnxruntime 1.20 to 1.23 turns the weight of a Gemm over, and then compares it with the shape that was stated before.
    """
    import onnx

    model = onnx.load(path, load_external_data=False)
    weights = {tensor.name for tensor in model.graph.initializer}
    stated = [value for value in model.graph.value_info if value.name not in weights]
    del model.graph.value_info[:]
    model.graph.value_info.extend(stated)
    onnx.save(model, path)


def _over_padded_rows(bert: Encoder) -> Any:
    """Return the module of transformers with the weights of an encoder, whose forward pass reads padded rows."""
    if not isinstance(bert, BertModel):
        return bert
    from transformers import AutoConfig, AutoModel

    padded = AutoModel.from_config(AutoConfig.for_model(**bert.config.to_dict()), add_pooling_layer=False)
    padded.load_state_dict({name: tensor for name, tensor in bert.state_dict().items() if "pooler" not in name})
    return padded.eval()


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the warnings of torch's exporter and the quantiser, which are for those who write exporters."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


def embed(path: Path, inputs: dict[str, NDArray[np.int64]]) -> NDArray[np.float32]:
    """Return what onnxruntime computes, float32 [B, D]."""
    from onnxruntime import InferenceSession

    [found] = InferenceSession(path, providers=["CPUExecutionProvider"]).run(["sentence_embedding"], inputs)
    return np.asarray(found, np.float32)
