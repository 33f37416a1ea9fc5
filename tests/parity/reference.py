"""What transformers 4.57.6, the last with REALM, computes: random checkpoints of every class, and their numbers.

Runs in an environment of its own (`make parity`) and imports nothing of realmctl. Writes into FOLDER a folder for each
class as the hub has it, case.json (the inputs, the answers read, what made them) and numbers.safetensors.
Usage: python reference.py SIZE FOLDER
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import reference_case as case
import torch
import transformers
from safetensors.torch import save_file
from torch import Tensor, nn
from transformers import PreTrainedModel, RealmConfig
from transformers.models.deprecated.realm import modeling_realm as realm
from transformers.models.deprecated.realm.retrieval_realm import RealmRetriever

Numbers = dict[str, Tensor]


def filled(module: PreTrainedModel) -> PreTrainedModel:
    """Weights large enough that every path shows, and what differs between texts more than what they share."""
    spread = 0.8 / module.config.hidden_size**0.5
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            parameter.normal_(0.0, 1.0 if "word_embeddings" in name else spread / (1 + 3 * name.endswith("bias")))
            if "norm" in name.lower() and name.endswith("weight"):
                parameter.add_(1.0)
    return module.eval()


class Reference:
    """The five classes over one world. `ids` of texts are looked up word by word, as wordpiece does for known words."""

    def __init__(self, size: case.Size, folder: Path) -> None:
        self.size, self.folder, self.inputs = size, folder, case.inputs(size)
        self.config = RealmConfig(**case.config(size))
        self.number = {word: number for number, word in enumerate(self.inputs["words"])}
        self.bodies = [self.ids(text) for text in self.inputs["bodies"]]
        self.titles = [self.ids(text) for text in self.inputs["titles"]]
        self.numbers: Numbers = {}
        self.read: list[str] = []

    def ids(self, text: str) -> list[int]:
        return [self.number[word] for word in text.split()]

    def write(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        with torch.no_grad():
            embedder = self.embedder()
            self.scorer()
            self.encoder()
            self.reader()
            self.open_qa(embedder)
        made_by = {"seed": case.SEED, "torch": torch.__version__, "transformers": transformers.__version__}
        whole = {"made_by": made_by, "inputs": self.inputs, "read": self.read}
        (self.folder / "case.json").write_text(json.dumps(whole, indent=1) + "\n")
        save_file(
            {name: tensor.contiguous() for name, tensor in self.numbers.items()}, self.folder / "numbers.safetensors"
        )

    def save(self, model: PreTrainedModel, name: str) -> None:
        model.save_pretrained(
            self.folder / name, safe_serialization=name in ("embedder", "encoder")
        )  # others share tensors
        (self.folder / name / "vocab.txt").write_text("".join(f"{word}\n" for word in self.inputs["words"]))

    def keep(self, name: str, **numbers: Tensor) -> None:
        self.numbers |= {f"{name}/{what}": number.detach().clone() for what, number in numbers.items()}

    def queries(self) -> dict[str, Tensor]:
        return rows([query["ids"] for query in self.inputs["queries"]])

    def blocks(self, numbers: list[int]) -> dict[str, Tensor]:
        """Block inputs; -1 is the null document."""
        nothing: list[int] = []
        return rows(
            [self.titles[n] if n >= 0 else nothing for n in numbers],
            [self.bodies[n] if n >= 0 else nothing for n in numbers],
        )

    def candidates(self) -> list[int]:
        return [number for query in self.inputs["queries"] for number in (-1, *query["candidates"])]

    def by_query(self, packed: dict[str, Tensor], prefix: str = "") -> dict[str, Tensor]:
        return {prefix + name: part.view(-1, case.CANDIDATES, part.shape[1]) for name, part in packed.items()}

    def embedder(self) -> PreTrainedModel:
        model = filled(realm.RealmEmbedder(self.config))
        self.save(model, "embedder")
        self.keep(
            "embedder",
            queries=model(**self.queries()).projected_score,
            blocks=model(**self.blocks([-1, *range(len(self.bodies))])).projected_score,
        )
        return model

    def scorer(self) -> None:
        model = filled(realm.RealmScorer(self.config))
        self.save(model, "scorer")
        packed = self.queries()
        found = model(**packed, **self.by_query(self.blocks(self.candidates()), "candidate_"))
        self.keep("scorer", relevance=found.relevance_score, query=found.query_score, candidate=found.candidate_score)

    def encoder(self) -> None:
        model = filled(realm.RealmKnowledgeAugEncoder(self.config))
        model.tie_weights()
        self.save(model, "encoder")
        queries = self.inputs["queries"]
        asked = [query["ids"] for query in queries for _ in range(case.CANDIDATES)]
        packed = rows(asked, [self.bodies[n] if n >= 0 else [] for n in self.candidates()])
        labels = torch.full((len(queries), packed["input_ids"].shape[1]), -100)
        for row, query in enumerate(queries):
            labels[row, query["places"]] = torch.tensor(query["targets"])
        score = self.numbers["scorer/relevance"]
        found = model(**self.by_query(packed), relevance_score=score, labels=labels, mlm_mask=labels >= 0)
        real = packed["attention_mask"].bool()
        real[:, ::3] = False  # two of three positions tell enough
        self.keep("encoder", logits=found.logits[real], loss=found.loss)

    def reader(self) -> None:
        model = filled(realm.RealmReader(self.config))
        self.save(model, "reader")
        found = Spans(model.qa_outputs)
        count = self.size.reader_beam
        packed = rows([self.ids(self.inputs["questions"][0])] * count, self.bodies[:count])
        in_block = packed["token_type_ids"].bool() & (packed["input_ids"] != case.SEP)
        first = int(in_block[0].nonzero()[0])
        gold = torch.tensor([[first], [first + 1], *[[-1]] * (count - 2)])
        relevance = torch.linspace(-1, 1, self.size.searcher_beam)
        holds = torch.arange(self.size.searcher_beam) < 2
        output = model(
            **packed,
            relevance_score=relevance,
            block_mask=in_block,
            start_positions=gold,
            end_positions=gold + (gold >= 0),
            has_answers=holds,
        )
        self.keep("reader", logits=found.last.masked_fill(found.last < -1e30, 0.0))
        self.keep("reader", **outcome(output))

    def open_qa(self, embedder: PreTrainedModel) -> None:
        """The index is the pre-trained embedder's; the embedder inside has learnt since."""
        records = np.array([text.encode() for text in self.inputs["bodies"]], dtype=object)
        model = filled(realm.RealmForOpenQA(self.config))
        model.block_emb.copy_(self.numbers["embedder/blocks"][1:])
        moved = {
            name: 0.9 * tensor + 0.1 * model.embedder.state_dict()[name]
            for name, tensor in embedder.state_dict().items()
        }
        model.embedder.load_state_dict(moved)
        self.save(model, "openqa")
        np.save(self.folder / "openqa" / "block_records.npy", records, allow_pickle=True)
        model.retriever = Recorder(RealmRetriever.from_pretrained(self.folder / "openqa"))
        for number, question in enumerate(self.inputs["questions"]):
            self.ask(model, number, question)

    def ask(self, model: Any, number: int, question: str) -> None:
        tokenizer = model.retriever.inner.tokenizer
        asked = tokenizer([question], return_tensors="pt")
        answers = [tokenizer(text, add_special_tokens=False).input_ids for text in self.inputs["answers"][number]]
        eval_output, ids = model.eval()(**asked, return_dict=False)
        self.keep(
            f"openqa/{number}",
            read=model.retriever.last,
            ids=ids,
            block=eval_output.block_idx,
            start=eval_output.start_pos,
            end=eval_output.end_pos,
        )
        self.read.append(tokenizer.decode(ids))
        output, _ = model.train()(**asked, answer_ids=answers, return_dict=False)  # dropout is 0
        self.keep(
            f"openqa/{number}",
            retrieved=model.retriever.last,
            correct=output.retriever_correct,
            retriever_loss=output.retriever_loss,
            reader_loss=output.reader_loss,
        )


class Spans:
    """The span scores that a reader's head gave last, before the retrieval's are added in place."""

    def __init__(self, head: nn.Module) -> None:
        self.last = torch.empty(0)
        head.register_forward_hook(self._keep)

    def _keep(self, _module: nn.Module, _inputs: Any, output: tuple[Tensor, ...]) -> None:
        self.last = output[0].clone()


class Recorder:
    """A retriever that remembers which blocks it was asked for."""

    def __init__(self, inner: RealmRetriever) -> None:
        self.inner, self.last = inner, torch.empty(0)

    def __call__(self, ids: Tensor, *arguments: Any, **options: Any) -> Any:
        self.last = ids
        return self.inner(ids, *arguments, **options)


def outcome(output: Any) -> Numbers:
    return {
        "retriever_loss": output.retriever_loss,
        "reader_loss": output.reader_loss,
        "block": output.block_idx,
        "start": output.start_pos,
        "end": output.end_pos,
    }


def rows(firsts: list[list[int]], seconds: list[list[int]] | None = None) -> dict[str, Tensor]:
    """`[CLS] first [SEP]`, or `[CLS] first [SEP] second [SEP]`, padded to the longest."""
    ends = [[case.SEP]] * len(firsts) if seconds is None else [[case.SEP, *second, case.SEP] for second in seconds]
    whole = [[case.CLS, *first, *end] for first, end in zip(firsts, ends, strict=True)]
    place = torch.arange(max(map(len, whole)))
    length = torch.tensor([len(row) for row in whole])[:, None]
    start = torch.tensor([len(first) + 2 for first in firsts])[:, None]
    return {
        "input_ids": torch.tensor([row + [case.PAD] * (len(place) - len(row)) for row in whole]),
        "attention_mask": (place < length).long(),
        "token_type_ids": ((place >= start) & (place < length)).long(),
    }


if __name__ == "__main__":
    os.environ["TRUST_REMOTE_CODE"] = (
        "True"  # transformers unpickles the block records, which this script has just written
    )
    torch.set_num_threads(1)
    torch.manual_seed(case.SEED)
    Reference(case.SIZES[sys.argv[1]], Path(sys.argv[2])).write()
