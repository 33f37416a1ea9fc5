"""The numbers of reference.py, computed by realmctl from the same checkpoints, taken in by `realmctl import`."""

from __future__ import annotations

import json
from contextlib import redirect_stdout
from functools import cached_property
from io import StringIO
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from realmctl.artifacts import Artifact, open_artifact
from realmctl.cli import app
from realmctl.models.bert.files import load_masked_lm
from realmctl.models.inputs import Collator, TokenBatch, block_token_mask
from realmctl.models.marginal import token_marginal
from realmctl.models.reader import Reader
from realmctl.models.retriever import Retriever
from realmctl.models.span_head import LOWEST, SpanReader, reader_loss, retrieval_loss
from realmctl.questions.questions import Question
from realmctl.retrieval.answering.extractive import ExtractiveAnswerer
from realmctl.retrieval.answering.qa_model import QaModel
from realmctl.tokens.frame import Frame
from realmctl.training.finetune import FinetuneObjective
from realmctl.training.settings.finetune import FinetuneSettings
from tests.parity.reference_case import CANDIDATES, CLS, MASK, PAD, SEP

Numbers = dict[str, Tensor]
LENGTH = 512
"""No input of the cases is cut, but by the reader's own length."""


class Ours:
    """`folder`: what reference.py wrote. `workspace`: where to import it."""

    def __init__(self, folder: Path, workspace: Path) -> None:
        self.folder, self.workspace = folder, workspace
        case = json.loads((folder / "case.json").read_text())
        self.inputs, self.read_there, self.made_by = case["inputs"], case["read"], case["made_by"]
        self.config = json.loads((folder / "openqa" / "config.json").read_text())
        self.collator = Collator(Frame.bert(CLS, SEP), PAD, MASK)
        self.number = {word: number for number, word in enumerate(self.inputs["words"])}
        self.bodies = [self.ids(text) for text in self.inputs["bodies"]]
        self.titles = [self.ids(text) for text in self.inputs["titles"]]
        self.read: list[str] = []

    def ids(self, text: str) -> list[int]:
        return [self.number[word] for word in text.split()]

    def imported(self, name: str, *options: str) -> dict[str, Artifact]:
        """What `realmctl import-realm` makes of a checkpoint, by kind."""
        out = self.workspace / name
        arguments = ["import-realm", str(self.folder / name), "-w", str(out), "--workers", "1", "--quiet", *options]
        with redirect_stdout(StringIO()):
            code = app.build("import-realm")(arguments, standalone_mode=False)
        if code:
            raise SystemExit(code)
        return {path.name: open_artifact(path) for path in out.iterdir()}

    @torch.no_grad()
    def numbers(self) -> Numbers:
        """Every number of reference.py, under the same name. Fills `read` with the answers."""
        parts = {
            "embedder": self.embedder(),
            "scorer": (scores := self.scorer()),
            "encoder": self.encoder(scores["relevance"]),
            "reader": self.reader(),
        }
        return {f"{name}/{what}": it for name, part in parts.items() for what, it in part.items()} | self.open_qa()

    @cached_property
    def queries(self) -> TokenBatch:
        return self.collator.query([query["ids"] for query in self.inputs["queries"]], LENGTH)

    @cached_property
    def candidates(self) -> list[int]:
        return [number for query in self.inputs["queries"] for number in (-1, *query["candidates"])]

    def of(self, texts: list[list[int]], numbers: list[int]) -> list[list[int]]:
        return [texts[number] if number >= 0 else [] for number in numbers]

    def blocks(self, numbers: list[int]) -> TokenBatch:
        return self.collator.block(self.of(self.titles, numbers), self.of(self.bodies, numbers), LENGTH)

    def embedder(self) -> Numbers:
        retriever = Retriever.load(self.imported("embedder")["retriever"].path)
        everything = self.blocks([-1, *range(len(self.bodies))])
        return {"queries": retriever.embed_queries(self.queries), "blocks": retriever.embed_blocks(everything)}

    def scorer(self) -> Numbers:
        retriever = Retriever.load(self.imported("scorer")["retriever"].path)
        query_BD = retriever.embed_queries(self.queries)
        block_BND = retriever.embed_blocks(self.blocks(self.candidates)).unflatten(0, (-1, CANDIDATES))
        return {"relevance": retriever.score(query_BD, block_BND), "query": query_BD, "candidate": block_BND}

    def encoder(self, score_BN: Tensor) -> Numbers:
        reader = Reader(load_masked_lm(self.imported("encoder")["encoder"].path)[0]).eval()
        queries = self.inputs["queries"]
        asked = [query["ids"] for query in queries for _ in range(CANDIDATES)]
        joint = self.collator.joint(asked, self.of(self.bodies, self.candidates), LENGTH, LENGTH)
        everywhere_RL = torch.arange(joint.ids_BL.shape[1]).minimum(joint.lengths_B[:, None] - 1)
        logits_RLV = reader.logits(joint, everywhere_RL, 1)[:, 0]
        real_RL = joint.mask_BL.clone()
        real_RL[:, ::3] = False
        position_BM, target_BM, mask_BM = (self.masks(name) for name in ("places", "targets", None))
        log_prob_BNM = reader.mlm_log_prob(joint, position_BM, target_BM, CANDIDATES)
        loss, _ = token_marginal(score_BN, log_prob_BNM, mask_BM.bool())
        return {"logits": logits_RLV[real_RL], "loss": loss}

    def masks(self, name: str | None) -> Tensor:
        rows = [query[name] if name else [1] * len(query["places"]) for query in self.inputs["queries"]]
        width = max(map(len, rows))
        return torch.tensor([row + [0] * (width - len(row)) for row in rows])

    def reader(self) -> Numbers:
        reader = SpanReader.load(self.imported("reader")["span-reader"].path)
        count, width = self.config["reader_beam_size"], self.config["max_span_width"]
        packed, begin_K = self.collator.reader(
            [self.ids(self.inputs["questions"][0])] * count, self.bodies[:count], LENGTH
        )
        score_KS, (start_S, end_S) = reader.span_scores(packed, block_token_mask(packed, begin_K), width)
        relevance = torch.linspace(-1, 1, self.config["searcher_beam_size"])
        total_KS = score_KS + relevance[:count, None]
        gold = int(begin_K[0])
        correct_KS = torch.zeros_like(total_KS, dtype=torch.bool)
        for row, first in enumerate((gold, gold + 1)):
            correct_KS[row] = (start_S == first) & (end_S == first + 1)
        block, span = divmod(int(total_KS.argmax()), len(start_S))
        return {
            "logits": score_KS.masked_fill(score_KS == LOWEST, 0.0),
            "retriever_loss": retrieval_loss(relevance[None], torch.arange(len(relevance))[None] < 2)[0],
            "reader_loss": reader_loss(total_KS[None], correct_KS[None])[0],
            "block": torch.tensor(block),
            "start": start_S[span, None],
            "end": end_S[span, None],
        }

    def open_qa(self) -> Numbers:
        """With the pre-trained embedder and the titles at hand, so that `import` checks rows of the index as well."""
        titles = self.workspace / "titles.txt"
        titles.write_text("".join(f"{title}\n" for title in self.inputs["titles"]))
        embedder = self.workspace / "embedder" / "retriever"
        made = self.imported("openqa", "--titles", str(titles), "--retriever", str(embedder))
        answerer = QaModel.open(made["qa-model"], blocks=made["blocks"], device="cpu", precision="fp32").answerer
        assert isinstance(answerer, ExtractiveAnswerer)
        numbers: Numbers = {}
        for number, question in enumerate(self.inputs["questions"]):
            found = self.answered(answerer, question) | self.losses(answerer, question, self.inputs["answers"][number])
            numbers |= {f"openqa/{number}/{name}": it for name, it in found.items()}
        return numbers

    def answered(self, answerer: ExtractiveAnswerer, question: str) -> Numbers:
        """The span read, in the places of the reader's input; its text goes to `read`."""
        tokens = answerer.tokens([question])
        hits = answerer.searcher.search(tokens, self.config["reader_beam_size"])
        [answer] = answerer.answer(tokens, hits, 1)[0]
        self.read.append(answer.text)
        assert answer.hit
        block = hits[0].index(answer.hit)
        first = len(self.inputs["bodies"][answer.hit.row][: answer.start].split()) + len(tokens[0]) + 2
        ids = self.ids(answer.text)
        return {
            "read": torch.tensor([hit.row for hit in hits[0]]),
            "ids": torch.tensor(ids),
            "block": torch.tensor(block),
            "start": torch.tensor([first]),
            "end": torch.tensor([first + len(ids) - 1]),
        }

    def losses(self, answerer: ExtractiveAnswerer, question: str, answers: list[str]) -> Numbers:
        """Both losses as `finetune` computes them."""
        beam, read = self.config["searcher_beam_size"], self.config["reader_beam_size"]
        settings = FinetuneSettings(
            blocks=answerer.searcher.corpus.artifact,
            questions=Path("questions.jsonl"),
            batch_size=1,
            retriever_beam=beam,
            reader_beam=read,
            reader_length=self.config["reader_seq_len"],
            span_width=self.config["max_span_width"],
        )
        asked = Question(id="0", question=question, answers=tuple(answers))
        tuning = FinetuneObjective(answerer.searcher, answerer.reader, [asked], settings)
        [part] = tuning.draw(0)
        answerer.searcher.learner.eval()
        retrieval_QK = answerer.searcher.scores(part.questions, part.rows_QK)
        span_QRS, correct_QRS = tuning._spans(part, torch.device("cpu"))
        return {
            "retrieved": torch.from_numpy(part.rows_QK[0]),
            "correct": part.correct_QK[0],
            "retriever_loss": retrieval_loss(retrieval_QK, part.correct_QK)[0],
            "reader_loss": reader_loss(span_QRS + retrieval_QK[:, :read, None], correct_QRS)[0],
        }


def deviations(theirs: Numbers, ours: Numbers) -> dict[str, float]:
    """For each number the largest distance as a share of the largest value; infinite where whole numbers differ.

    Raises KeyError when one side lacks a number.
    """
    if theirs.keys() != ours.keys():
        raise KeyError(f"only one side has {sorted(theirs.keys() ^ ours.keys())}")
    return {name: deviation(theirs[name], ours[name]) for name in theirs}


def deviation(theirs: Tensor, ours: Tensor) -> float:
    if theirs.shape != ours.shape:
        return float("inf")
    if not theirs.is_floating_point():
        return 0.0 if torch.equal(theirs.long(), ours.long()) else float("inf")
    far, size = (theirs - ours).abs().max(), theirs.abs().max()
    return float(far / size) if size else float(far)


def load(folder: Path) -> Any:
    from safetensors.torch import load_file

    return load_file(folder / "numbers.safetensors")
