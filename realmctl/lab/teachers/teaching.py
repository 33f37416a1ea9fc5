"""A retriever learns a teacher's scores of its own hits, within minutes, and is kept where it finds more of the questions that a language model wrote."""

from __future__ import annotations

import json
import math
import random
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from realmctl import log
from realmctl.artifacts import Artifact, open_artifact
from realmctl.artifacts.hashing import digest, read_sealed, write_sealed
from realmctl.artifacts.series import make_newest
from realmctl.corpus.corpus import Corpus
from realmctl.errors import InputError
from realmctl.extras.ir.ranking.beir import is_beir, qrels_file
from realmctl.extras.ir.ranking.qrels import read_qrels
from realmctl.extras.ir.ranking.queries import read_queries
from realmctl.extras.ir.ranking.trec import trec_name
from realmctl.lab.teachers.cutting import words_of
from realmctl.models.inputs import Collator
from realmctl.models.retriever import Retriever
from realmctl.pipeline.discovery import own_stages
from realmctl.pipeline.sources import localise
from realmctl.retrieval.search.reranking import Pair, Reranking
from realmctl.shortcuts.shipped import default_encoder, search_command
from realmctl.tokens.tokenizer import Tokenizer
from realmctl.training.budget import FEWEST_STEPS, TooFewSteps
from realmctl.training.evaluation.cloze_recall import ClozePassages, Gain, gain
from realmctl.training.evaluation.held_out import left_out, questions_of
from realmctl.training.evaluation.on_cloze import AMONG

if TYPE_CHECKING:
    from realmctl.lab.teachers.options import TeacherOptions

DEPTH, NEGATIVES = 10, 6
"""Hits of a question that the teacher reads, and those of them that are no answer and that the student learns from."""
BATCH, MOST_STEPS = 16, 5000
SHARES = {"train": 0.4, "read": 0.3, "learn": 0.3}
"""Shares of the time: the teacher is trained, it reads, and the student learns. A teacher that is there leaves its share to the other two."""
TRIED, FEWEST_QUESTIONS, MOST_QUESTIONS = 24, 32, 20_000
PAIR_OF_BLOCK = 1.4
"""Seconds of a pair for one of a block: a pair is a little longer."""


def teach(found: Mapping[str, Any], settings: TeacherOptions) -> dict[str, Any]:
    """Return what `adapt` found, with a student of the teacher in place of its retriever where one gains.

    found: what `adapt` returns. Numbers of questions and of steps are decided by time, and kept in the workspace, so that a second run finds all made.
    Where so few steps fit that no gain could be shown, nothing is learnt, and what `adapt` made stays.
    """
    try:
        return _taught(found, settings)
    except TooFewSteps as error:
        told = {"name": settings.teacher, "steps": 0, "kept": False, "too_few": str(error)}
        return {**found, "minutes": settings.minutes, "teacher": told}


def _taught(found: Mapping[str, Any], settings: TeacherOptions) -> dict[str, Any]:
    """The same. Raises TooFewSteps."""
    stages, where = own_stages(), settings.workspace / "teacher"
    made = {name: open_artifact(Path(path)) for name, path in found["made"].items()}
    seconds = 60 * settings.minutes / 2
    named = {"minutes": settings.minutes, "teacher": settings.teacher, "lm": getattr(settings, "lm", None)}
    contents = {name: made[name].content for name in ("blocks", "retriever")}
    plan = _Plan(settings.workspace / "teacher.json", {**contents, **named, "asked": str(settings.questions)})
    searched = {"blocks": made["blocks"], "retriever": made["retriever"], "index": made["index"]}
    encoder = settings.encoder or default_encoder([settings.documents], settings.language)
    is_trained = settings.teacher == "train"
    shares = {name: SHARES[name] / (1 if is_trained else 1 - SHARES["train"]) for name in ("read", "learn")}

    def count() -> int:
        each = DEPTH * _seconds_of_pair(None if is_trained else settings.teacher, made, stages)
        if questions is None and held_out is not None:
            each += held_out.manifest.seconds / max(1, held_out.metrics["queries"])
        return max(FEWEST_QUESTIONS, min(MOST_QUESTIONS, int(shares["read"] * seconds / each)))

    questions, held_out = settings.questions, settings.held_out(made["blocks"])
    assert held_out is not None, "--teacher needs --lm"
    if questions is None:
        written = settings.written(made["blocks"], plan.number("questions", count), held_out)
        assert written is not None
        questions, qrels = written.path, written.file("qrels/train.tsv")
    else:
        judged = block_judgements(questions, made["blocks"], held_out)
        kept = random.Random(0).sample(sorted(judged), min(len(judged), plan.number("questions", count)))
        qrels = where / "judged.tsv"
        rows = [f"{query}\t{name}\t1" for query in sorted(kept) for name in judged[query]]
        qrels.parent.mkdir(parents=True, exist_ok=True)
        qrels.write_text("\n".join(["query-id\tcorpus-id\tscore", *rows, ""]), encoding="utf-8")
    ranking = stages["rank"](queries=questions, qrels=qrels, top=DEPTH, **searched).make(where / "ranking")
    mining = {"blocks": made["blocks"], "qrels": qrels, "negatives": NEGATIVES, "positives": 1}
    teacher = settings.teacher
    if is_trained:
        mined = stages["mine-negatives"](ranking=ranking, **mining).make(where / "negatives")
        training = {
            "start": str(localise(encoder, (), True, "--encoder")),
            "passages": passages_without(
                mined.file("train.jsonl"), held_out, made["blocks"], where / "negatives.jsonl"
            ),
            "max_length": 256,
        }
        made["cross-encoder"] = _trained(
            stages["rerank-finetune"], training, plan, SHARES["train"] * seconds, where / "cross-encoder"
        )
        teacher = str(made["cross-encoder"].path)
    reread = stages["rerank"](ranking=ranking, blocks=made["blocks"], model=teacher, depth=DEPTH, qrels=qrels).make(
        where / "reranked"
    )
    told: dict[str, Any] = {
        "name": settings.teacher,
        "questions": reread.metrics["queries"],
        **{f"nDCG@10_{when}": value for when, value in zip(("before", "reranked"), found_by(reread), strict=True)},
        "steps": 0,
        "kept": False,
    }
    if ranks_worse(reread):
        make_newest(made["retriever"])
        paths = {name: str(artifact.path) for name, artifact in made.items()}
        return {**found, "minutes": settings.minutes, "teacher": told, "made": paths}
    scored = stages["mine-negatives"](ranking=reread, cross_encoder=teacher, **mining).make(where / "scored")
    learning = {
        "retriever": made["retriever"],
        "passages": passages_without(scored.file("train.jsonl"), held_out, made["blocks"], where / "scored.jsonl"),
        "loss": "kl",
        "hard_negatives": NEGATIVES - 2,
        "teacher_temperature": _spread(scored),
    }
    student = _trained(
        stages["dpr-finetune"], learning, plan, shares["learn"] * seconds, settings.workspace / "retriever"
    )
    asked = gain_on_questions(held_out, made["blocks"], student, made["retriever"])
    told |= {"question_gain": asked.mean, "question_gain_low": asked.low, "question_gain_high": asked.high}
    told |= {"steps": student.metrics["steps"], "kept": asked.shown}
    result = {**found, "minutes": settings.minutes, "teacher": told}
    paths = {name: str(artifact.path) for name, artifact in made.items()}
    if told["kept"]:
        embeddings = stages["embed"](blocks=made["blocks"], retriever=student).make(settings.workspace / "embeddings")
        index = stages["build-index"](embeddings=embeddings, type="exact").make(settings.workspace / "index")
        result["search"] = search_command(index, settings.workspace)
        paths |= {"retriever": str(student.path), "embeddings": str(embeddings.path), "index": str(index.path)}
    else:
        make_newest(made["retriever"])
    return {**result, "made": paths}


def block_judgements(questions: Path, blocks: Artifact, held_out: Artifact | None = None) -> dict[str, list[str]]:
    """Return {query: ids of the blocks that answer it} of judged questions, a BEIR folder. A judged document is all of its blocks.

    held_out: questions that measure, whose documents answer nothing here.

    Raises InputError where so few questions have a text, and an answer among the blocks, that nothing could be learnt from them.
    """
    if not is_beir(questions):
        raise InputError(
            f"--questions {questions}: it is no folder in BEIR's layout, which has queries.jsonl, and judgements in qrels/train.tsv. Name such a folder."
        )
    asked = {trec_name(query.id) for query in read_queries(questions)}
    judged = read_qrels(qrels_file(questions, "train"))
    corpus = Corpus(blocks)
    spared = {corpus.block(row).document for row in left_out(held_out, corpus).tolist()}
    wanted = {trec_name(name) for of in judged.values() for name, grade in of.items() if grade > 0}
    held = defaultdict[str, list[str]](list)
    for block in corpus:
        for name in {trec_name(block.id), trec_name(block.document)} & wanted if block.document not in spared else ():
            held[name].append(block.id)
    answers = {
        query: [*dict.fromkeys(each for name, grade in of.items() if grade > 0 for each in held[trec_name(name)])]
        for query, of in judged.items()
    }
    found = {query: names for query, names in answers.items() if names and trec_name(query) in asked}
    if len(found) < FEWEST_QUESTIONS:
        raise InputError(
            f"--questions {questions}: {len(found)} of {len(judged)} judged queries have a text and an answer among the blocks of these documents"
            f"{' that teach, of which a part is left out to measure' if held_out else ''}, and {FEWEST_QUESTIONS} are needed. "
            f"Judgements name documents, such as {next(iter(corpus)).document!r}, or blocks."
        )
    return found


def passages_without(file: Path, held_out: Artifact, blocks: Artifact, kept: Path) -> Path:
    """Write training data without the passages of documents whose questions measure it to `kept`, and return that."""
    corpus = Corpus(blocks)
    spared = {corpus.block(row).id for row in left_out(held_out, corpus).tolist()}
    with file.open(encoding="utf-8") as lines, kept.open("w", encoding="utf-8") as out:
        for record in map(json.loads, lines):
            negatives = [one for one in record["negative_passages"] if one["docid"] not in spared]
            positives = [one for one in record["positive_passages"] if one["docid"] not in spared]
            if negatives and positives:
                record |= {"positive_passages": positives, "negative_passages": negatives}
                out.write(json.dumps(record, ensure_ascii=False) + "\n")
    return kept


def gain_on_questions(held_out: Artifact, blocks: Artifact, student: Artifact, start: Artifact) -> Gain:
    """What the student gains on questions of documents that no training saw, in the reciprocal rank of their blocks."""
    corpus, words = Corpus(blocks), Tokenizer.load(blocks.path)
    asked = ClozePassages.asked(corpus, words, questions_of(held_out, corpus), AMONG, 1)
    after, before = (asked.ranks(Retriever.load(each.path), Collator.of(words)) for each in (student, start))
    return gain(after, before)


class _Plan:
    """Numbers that the time decided, in a file of the workspace, by what they were decided for."""

    def __init__(self, path: Path, key: Mapping[str, Any]) -> None:
        self.path = path
        try:
            self.plans = read_sealed(path)
        except (OSError, ValueError):
            self.plans = {}
        self.held: dict[str, Any] = self.plans.setdefault(digest(key), {**key})

    def number(self, name: str, decide: Callable[[], int]) -> int:
        """Return the number that was decided, or decide it now."""
        if name not in self.held:
            self.held[name] = decide()
            write_sealed(self.path, self.plans)
        return int(self.held[name])


def _trained(stage: Any, given: Mapping[str, Any], plan: _Plan, seconds: float, where: Path) -> Artifact:
    """The artifact of a training with as many steps as fit into the seconds. Raises TooFewSteps."""
    settings = {**given, "batch_size": BATCH, "lr": 2e-5, "optimizer": "adamw"}
    name, minutes = stage.command(), float(plan.held["minutes"])
    trial = cache(lambda: stage(**settings, steps=100).trial())
    fit = plan.number(
        f"{name} steps", lambda: max(0, min(MOST_STEPS, int((seconds - trial().before) / max(trial().each, 1e-9))))
    )
    if fit < FEWEST_STEPS:
        enough = plan.number(
            f"{name} minutes",
            lambda: math.ceil(minutes * (trial().before + FEWEST_STEPS * trial().each) / seconds),
        )
        raise TooFewSteps(f"adapt --teacher, {name}", fit, minutes, enough)
    log.say(f"adapt: {fit} steps of {stage.command()}")
    made: Artifact = stage(**settings, steps=fit, warmup=max(1, fit // 10)).make(where)
    return made


def _seconds_of_pair(teacher: str | None, made: Mapping[str, Artifact], stages: Mapping[str, Any]) -> float:
    """Seconds that a pair takes: some are scored; for a teacher that is not trained yet, some blocks are embedded."""
    if teacher is None:
        return PAIR_OF_BLOCK * max(
            1e-5, float(stages["embed"](blocks=made["blocks"], retriever=made["retriever"]).trial().each)
        )
    reranking, corpus = Reranking.of(teacher, DEPTH), Corpus(made["blocks"])
    assert reranking is not None
    step = max(1, len(corpus) // TRIED)
    pairs = [
        Pair(words_of(block.text, 0, 10), block.title, block.text)
        for block in (corpus.block(row) for row in range(0, len(corpus), step))
    ]
    reranking.model.scores(pairs[:1])
    begin = time.monotonic()
    reranking.model.scores(pairs)
    return max(1e-5, (time.monotonic() - begin) / len(pairs))


def _spread(scored: Artifact) -> float:
    """The temperature at which a teacher's scores of a question differ as logits do: a tenth of their mean spread, at most 1.

    Scores from 0 to 1 would else teach that all passages are alike.
    """
    spreads = []
    with scored.file("train.jsonl").open(encoding="utf-8") as lines:
        for record in map(json.loads, lines):
            scores = [
                one["score"]
                for name in ("positive_passages", "negative_passages")
                for one in record[name]
                if one["score"] is not None
            ]
            if len(scores) > 1:
                spreads.append(max(scores) - min(scores))
    return float(min(1.0, max(1e-3, round(float(np.mean(spreads)) / 10, 4)))) if spreads else 1.0


def ranks_worse(reread: Artifact) -> bool:
    """Whether a teacher puts the blocks of its questions lower than the retriever does. Nothing can be learnt of it then."""
    before, after = found_by(reread)
    return after < before


def found_by(reread: Artifact) -> tuple[float, float]:
    """nDCG@10 before and after a teacher read the hits: 0, where no hit at all answers its question."""
    return reread.metrics.get("nDCG@10 before", 0.0), reread.metrics.get("nDCG@10", 0.0)


def text_of(found: Mapping[str, Any]) -> str:
    """Say in plain words what the teacher changed."""
    told = found["teacher"]
    if "too_few" in told:
        return f"{told['too_few']} So nothing is learnt of a teacher, and the retriever stays as it was."
    read = (
        f"The teacher read {told['questions']} questions: their blocks have nDCG@10 {told['nDCG@10_before']:.3f} by the retriever and {told['nDCG@10_reranked']:.3f} by "
        "the teacher."
    )
    if not told["steps"]:
        return f"{read} So nothing is learnt of it, and the retriever stays as it was."
    change = "{question_gain:+.3f} [{question_gain_low:+.3f}, {question_gain_high:+.3f}] in the reciprocal rank of questions of documents left out".format(
        **told
    )
    if told["kept"]:
        return f"{read} The retriever learnt its scores in {told['steps']} steps and gained: {change}. It is kept."
    return f"{read} In {told['steps']} steps the retriever learnt its scores, and no gain is shown: {change}. It stays as it was."
