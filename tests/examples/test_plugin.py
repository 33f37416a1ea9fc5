"""The plug-in of docs/extending.md, installed as anybody installs it: its stage, its searcher and its type of index."""

from __future__ import annotations

import importlib
import itertools
import json
import mailbox
import math
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from email.message import EmailMessage
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import realmctl
from realmctl import registry
from realmctl.artifacts import Writer, open_artifact
from realmctl.corpus.corpus import Corpus
from realmctl.errors import ConfigError
from realmctl.index.index_type import open_index
from realmctl.retrieval.answering.qa_model import QaModel
from realmctl.spans.query import Query
from realmctl.spans.tagged_queries import TaggedQueries
from realmctl.tokens.tokenizer import Tokenizer
from realmctl.training.refresh.kinds import refresh_of
from stages.chunk import Chunk
from stages.eval_em import EvalEm
from tests.fixtures.chain import FINETUNING, FIRST, LAST, TOWNS, Chain, pretrain
from tests.fixtures.index import brute_force

ROOT = Path(__file__).resolve().parents[2]
PLUGIN = ROOT / "examples" / "plugin"
FILES = sorted(path for path in PLUGIN.rglob("*") if path.suffix in (".py", ".toml"))
PAGE = ROOT / "docs" / "extending.md"
QUOTED = ("best_block.py", "ever_rarer.py", "count_wordpieces.py")
"""Files that stand on the page as they are."""
Run = Callable[..., "subprocess.CompletedProcess[str]"]

BROKEN = {
    "broken-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n",
    "broken-1.0.dist-info/entry_points.txt": "[realmctl.stages]\nshatter = broken_plugin:Shatter\nchunk = chunk:Chunk\nask = ask:Ask\n"
    "[realmctl.searchers]\nbm25 = broken_plugin:Searcher\ncrack = broken_plugin:Searcher\n",
    "broken_plugin.py": "raise ValueError('it is broken')\n",
    "ask.py": "from realmctl.pipeline import Stage\nclass Ask(Stage):\n    'Ask.'\n    makes = 'answers'\n",
    "chunk.py": "from realmctl.pipeline import Stage\nclass Chunk(Stage):\n    'Cut.'\n    makes = 'blocks'\n",
}


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Path:
    """The folder that pip installed the plug-in into."""
    target = tmp_path_factory.mktemp("installed")
    pip = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-index", "--no-deps"]
    subprocess.run([*pip, "--no-build-isolation", "--target", target, PLUGIN], check=True)
    return target


def runner(folder: Path, *packages: Path) -> Run:
    """Runs the command line in `folder` with some packages installed."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (*packages, ROOT))), "OMP_NUM_THREADS": "1"}

    def run(*arguments: object, code: int = 0) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-P", "-m", "realmctl", *map(str, arguments)]
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
        assert done.returncode == code and "Traceback" not in done.stderr, done.stderr
        return done

    return run


@pytest.fixture
def plugged(installed, monkeypatch) -> Iterator[None]:
    """The plug-in in this process."""
    yield from on_the_path(installed, monkeypatch)


@pytest.fixture
def broken(tmp_path, monkeypatch) -> Iterator[None]:
    """A broken plug-in in this process."""
    for name, text in BROKEN.items():
        path = tmp_path / "broken" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    yield from on_the_path(tmp_path / "broken", monkeypatch)


def on_the_path(packages: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(str(packages))
    registry.points.cache_clear()
    yield
    monkeypatch.undo()
    registry.points.cache_clear()


def options(chain: Chain) -> list[object]:
    return ["--blocks", chain.blocks.path, "--questions", chain.questions]


def test_the_stage_is_offered_and_runs(installed, chain, tmp_path):
    run = runner(tmp_path, installed)
    text = run("--help").stdout
    assert "Stages of plug-ins" in text and "count-wordpieces" in text
    made = open_artifact(tmp_path / run("count-wordpieces", "--blocks", chain.blocks.path, "--top", 7).stdout.strip())
    ids = Corpus(chain.blocks)._bodies.values.tolist()
    names = Tokenizer.load(chain.blocks.path).tokenizer
    wanted = sorted(Counter(ids).items(), key=lambda item: (-item[1], item[0]))[:7]
    counts = json.loads(made.file("counts.json").read_text())
    assert list(counts.items()) == [(names.id_to_token(word), count) for word, count in wanted]
    assert made.metrics["wordpieces"] == len(ids) and made.manifest.stage == "count-wordpieces"
    run("count-wordpieces", "--blocks", chain.blocks.path, "--top", 0, code=2)
    file = tmp_path / "p.yaml"
    file.write_text(f"stages: {{counts: {{stage: count-wordpieces, blocks: {chain.blocks.path}, top: 7}}}}")
    assert open_artifact(tmp_path / run("run", file).stdout.strip()).content == made.content


def test_a_mail_archive_is_read_as_pythons_own_reader_reads_it(plugged, tmp_path):
    archive = mailbox.mbox(tmp_path / "mails")
    for number, text in enumerate(("The mill stood still.\nThe river froze.", "From here it is far."), 1):
        message = EmailMessage()
        message["Subject"], message["Message-ID"] = f"Mail {number}", f"<{number}@mill>"
        message.set_content(text)
        archive.add(message)
    html = EmailMessage()
    html.set_content("<p>No plain text.</p>", subtype="html")
    archive.add(html)
    archive.flush()
    made = Chunk(corpus=(tmp_path / "mails",), format="mbox", tokenizer="train:100", workers=1).make(
        tmp_path / "blocks"
    )
    mails = [mail for mail in archive if mail.get_content_type() == "text/plain"]
    expected = [(mail["message-id"], mail["subject"], " ".join(mail.get_payload().split())) for mail in mails]
    assert [(block.document, block.title, " ".join(block.text.split())) for block in Corpus(made)] == expected
    assert made.metrics["dropped"]["no plain text"] == 1
    with pytest.raises(ConfigError, match=r"'post'.*mbox"):
        Chunk(corpus=(tmp_path / "mails",), format="post")


def test_the_objective_draws_titles_and_trains_a_retriever(plugged, chain, tmp_path, monkeypatch):
    titles, stage = (importlib.import_module(f"realmctl_example.{name}") for name in ("titles", "stages.title_init"))
    plain, seen = titles.TitleObjective.examples, []
    monkeypatch.setattr(
        titles.TitleObjective, "examples", lambda self, step: seen.append(plain(self, step)) or seen[-1]
    )
    settings = stage.TitleInit(blocks=chain.blocks, encoder=chain.encoder, steps=2, batch_size=20, projection=8)
    made, corpus = settings.make(tmp_path / "retriever"), Corpus(chain.blocks)
    drawn = {tuple(example.query): [[*map(list, block)] for block in example.blocks] for example in seen[0]}
    assert drawn == {tuple(corpus.title(row)): [[[], corpus.tokens(row).tolist()]] for row in range(0, 40, 2)}
    assert realmctl.load_retriever(made.path).dimension == 8
    assert made.metrics["loss"] == pytest.approx(math.log(20), rel=0.5)


def test_an_index_of_a_plug_in_that_is_not_installed(chain, realmctl):
    code, _, err = realmctl("build-index", "--embeddings", chain.folder / "embeddings", "--type", "binary")
    assert code == 2 and "'binary' is not one of" in err


def test_the_index_is_built_measured_and_searched(plugged, chain, realmctl):
    of_type = ("build-index", "--embeddings", chain.folder / "embeddings", "--type", "binary")
    made = open_artifact(realmctl(*of_type, "--option", "rescored=40")[1].strip())
    vectors = np.load(made.file("vectors.npy"), allow_pickle=False)
    assert made.metrics["recall"] >= 0.95 and made.metrics["rows"] == len(vectors)
    assert (
        made.settings["option"] == ["rescored=40"] and json.loads(made.file("index.json").read_text())["rescored"] == 40
    )
    queries = np.random.default_rng(0).normal(size=(20, vectors.shape[1])).astype(np.float32)
    scores, ids = open_index(made.path).search(queries, len(vectors))
    wanted_scores, wanted_ids = brute_force(vectors, queries, len(vectors))
    np.testing.assert_allclose(scores, wanted_scores, rtol=1e-4, atol=1e-5)
    assert (ids == wanted_ids).mean() > 0.95


def test_the_options_of_the_index_are_checked(plugged, chain, realmctl):
    assert "binary" in realmctl("build-index", "--help")[1]
    of_type = ("build-index", "--embeddings", chain.folder / "embeddings", "--type", "binary")
    for option in ("rescored=0", "depth=3", "rescored"):
        code, _, err = realmctl(*of_type, "--option", option)
        assert code == 2 and option.partition("=")[0] in err


@pytest.mark.slow
def test_the_searcher_is_fine_tuned_evaluated_and_reopened(installed, plugged, chain, tmp_path, monkeypatch):
    run = runner(tmp_path, installed)
    settings = [part for name, value in FINETUNING.items() for part in (f"--{name.replace('_', '-')}", value)]
    start = ("--retrieval", "overlap", "--encoder", chain.encoder.path)
    qa_model = open_artifact(tmp_path / run("finetune", *options(chain), *start, *settings).stdout.strip())
    assert json.loads(qa_model.file("qa-model.json").read_text())["searcher"] == "overlap"
    searcher = QaModel.open(qa_model, blocks=chain.blocks, device="cpu").answerer.searcher
    tokens = searcher.tokens(["Where was Ada Lorn born?"])
    words = [{*searcher.corpus.title(row).tolist(), *searcher.corpus.tokens(row).tolist()} for row in range(40)]
    shared = [len(set(tokens[0].tolist()) & each) for each in words]
    wanted = sorted(range(40), key=lambda row: (-shared[row], row))[:5]
    assert [hit.row for hit in searcher.search(tokens, 5)[0]] == wanted
    assert searcher.learnt() == {} and searcher.scale.value != 1.0
    scores = open_artifact(tmp_path / run("eval-em", *options(chain), "--qa-model", qa_model.path).stdout.strip())
    alone = EvalEm(blocks=chain.blocks, questions=chain.questions, retrieval="overlap").make(tmp_path / "alone")
    assert "em" in scores.metrics and alone.metrics["recall@5"] == scores.metrics["recall@5"] > 0
    monkeypatch.setattr(registry, "points", lambda group: ())
    with pytest.raises(ConfigError, match="'overlap'"):
        QaModel.open(qa_model, blocks=chain.blocks)


@pytest.mark.usefixtures("broken")
def test_a_broken_plug_in_is_named_where_it_is_used_and_nowhere_else(chain, realmctl):
    def said(*arguments: object, code: int) -> str:
        found, _, err = realmctl(*arguments)
        assert found == code, err
        return err

    assert "shatter" in realmctl("--help")[1]
    refused = said("shatter", "--any", "thing", code=5)
    assert "the plug-in 'shatter' of the package broken 1.0 (broken_plugin:Shatter) cannot be imported" in refused
    assert "ValueError: it is broken" in refused
    assert "the stage 'chunk' is offered by realmctl and by broken 1.0" in said("chunk", "x", code=2)
    assert "the stage 'ask' is offered by realmctl and by broken 1.0" in said("ask", "Who?", code=2)
    clash = said("eval-em", *options(chain), "--retrieval", "bm25", code=2)
    assert "the searcher 'bm25' is offered by realmctl and by broken 1.0" in clash
    refused = said("eval-em", *options(chain), "--retrieval", "crack", code=5)
    assert "the plug-in 'crack' of the package broken 1.0" in refused
    said("tag", "--blocks", chain.blocks.path, "--dry-run", code=0)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_the_page_quotes_or_names_each_file_of_the_plug_in(path):
    page, name = PAGE.read_text(encoding="utf-8"), path.relative_to(PLUGIN).as_posix()
    if path.name in QUOTED:
        assert f"`{name}`\n\n```python\n{path.read_text(encoding='utf-8')}```\n" in page
    elif path.name != "__init__.py":
        assert f"{name.removeprefix('realmctl_example/')}`" in page


def test_the_loss_takes_the_likeliest_candidate_alone(plugged):
    """Against the definition, one query at a time."""
    loss_of = importlib.import_module("realmctl_example.best_block").BestBlock
    generator = torch.Generator().manual_seed(3)
    score, log_prob = torch.randn(4, 3, generator=generator), -torch.rand(4, 3, 2, generator=generator)
    hidden = torch.tensor([[True, True], [True, False], [True, True], [True, True]])
    present = torch.tensor([[True, True, True], [True, True, True], [True, False, True], [True, True, True]])
    expected = {True: 0.0, False: 0.0}
    for query in range(4):
        there = [candidate for candidate in range(3) if present[query, candidate]]
        prior = dict(zip(there, score[query, there].log_softmax(0).tolist(), strict=True))
        masks = [mask for mask in range(2) if hidden[query, mask]]
        terms = {z: [log_prob[query, z, mask].item() for mask in masks] for z in there}
        expected[False] -= max(prior[z] + sum(terms[z]) for z in there)
        expected[True] -= sum(max(prior[z] + terms[z][number] for z in there) for number in range(len(masks)))
    for per_token, wanted in expected.items():
        found = loss_of(SimpleNamespace(per_token=per_token))(score, log_prob, hidden, present, 2.0)
        assert found.item() == pytest.approx(wanted / 2, rel=1e-5)


@pytest.mark.slow
def test_pretraining_with_the_reader_and_the_loss(installed, chain, tmp_path):
    """The retriever learns to prefer blocks that have the hidden wordpieces; the reader writes nothing."""
    run = runner(tmp_path, installed)
    parts = [f"--{name}={getattr(chain, name).path}" for name in ("blocks", "spans", "retriever", "index")]
    settings = [
        "--steps",
        4,
        "--batch-size",
        6,
        "--candidates",
        4,
        "--lr",
        1e-3,
        "--refresh",
        "inline",
        "--refresh-every",
        2,
    ]
    made = run("pretrain", *parts, *settings, "--reader", "counting", "--retriever-loss", "best-block").stdout.strip()
    model = open_artifact(tmp_path / made)
    assert sorted(model.manifest.parts) == ["index", "retriever"]
    assert all(line["grad_norm"] > 0 for line in map(json.loads, model.file("metrics.jsonl").read_text().splitlines()))
    assert "'haste'" in run("pretrain", *parts, "--reader", "haste", code=2).stderr


def commands_of(page: str) -> list[list[str]]:
    """The commands of the first block of a page that begins with `realmctl`."""
    lines = re.search(r"```\n(realmctl .*?)```", page, re.DOTALL)
    assert lines
    return [line.split()[1:] for line in lines[1].splitlines()]


@pytest.fixture
def changed_realm(plugged, here, realmctl, monkeypatch):
    """A workspace in which the chain of the page ran, with few steps. Yields what was searched, hidden and cut."""
    people = [f"{first} {last}" for first in FIRST for last in LAST]
    with Path("wiki.jsonl").open("w", encoding="utf-8") as file:
        for number, name in enumerate(people):
            sentences = [f'{name} published "The {TOWNS[number % 7]} Letters {number}".', "The book started late."]
            sentences += [
                f"{name} was born in {TOWNS[part % 7]} and lived in it for {part} years." for part in range(40)
            ]
            file.write(json.dumps({"id": str(number), "title": name, "text": " ".join(sentences)}) + "\n")
    few = ["--steps", "6", "--batch-size", "4"]
    small = {
        "chunk": ["--tokenizer", "train:400", "--workers", "1"],
        "tag": ["--workers", "1", "--no-dates"],
        "ict-init": [*few, "--projection", "8"],
        "pretrain": [*few, "--candidates", "3", "--refresh-every", "1", "--lr", "1e-3"],
    }
    page = PAGE.read_text(encoding="utf-8")
    for command, *given in commands_of(page):
        code, _, err = realmctl(command, *given, *small.get(command, []))
        assert code == 0, err
    return open_artifact("artifacts/model")


def test_the_chain_of_the_page_takes_every_part(changed_realm):
    """Blocks overlap, quotations are tagged, snapshots are taken at 1, 2 and 4, and the loss is the plug-in's."""
    settings = changed_realm.settings
    assert (settings["masking"], settings["candidates_from"], settings["refresh"]) == (
        "past-tense",
        "bm25",
        "ever-rarer",
    )
    blocks = [*Corpus(open_artifact("artifacts/blocks"))]
    pairs = [(one, other) for one, other in itertools.pairwise(blocks) if one.document == other.document]
    assert pairs and all(one.sentence_texts()[-1] in other.sentence_texts() for one, other in pairs)
    assert all(len(block.wordpieces.body) for block in blocks) and len({block.uid for block in blocks}) == len(blocks)
    [told] = {
        label for record in TaggedQueries(open_artifact("artifacts/spans")).records for *_, label in record["spans"]
    }
    assert told == "QUOTED"
    swaps = [json.loads(line) for line in changed_realm.file("journal.jsonl").read_text().splitlines()]
    assert {swap["index_step"] for swap in swaps} <= {1, 2, 4}
    assert changed_realm.metrics["steps"] == 6


def test_a_snapshot_is_taken_ever_more_rarely(plugged, chain, tmp_path):
    (tmp_path / "run").mkdir()
    stage = pretrain(chain, refresh="ever-rarer", refresh_every=3, refresh_device="elsewhere", device="cpu")
    rule = refresh_of(stage, Writer(tmp_path / "run", stage.origin()))
    assert type(rule).__name__ == "EverRarer"
    assert [step for step in range(1, 60) if rule.is_due(step, None)] == [3, 6, 12, 24, 48]


def test_past_tense_hides_whole_words_in_ed(plugged, chain):
    masking = importlib.import_module("realmctl_example.past_tense").PastTense
    words = Tokenizer.load(chain.blocks.path)
    hides = masking(words)
    [sentence] = words.tokens(["Ada Lorn worked for Brightwell and the firm started."])
    places = hides.places(sentence, (0, 1), 10, np.random.default_rng(0))
    hidden = words.text_of(sentence[places])
    assert "".join(hidden.split()) == "workedstarted"
    [other] = words.tokens(["Ada Lorn was born in Velford."])
    assert hides.places(other, (1, 99), 10, np.random.default_rng(0)).tolist() == [*range(1, len(other))]


def test_bm25_brings_the_blocks_that_share_words(plugged, chain):
    source = importlib.import_module("realmctl_example.from_bm25").FromBM25
    corpus = Corpus(chain.blocks)
    found = source(SimpleNamespace(blocks=chain.blocks), corpus, None)
    tokens = [np.asarray(corpus.tokens(row), dtype=np.int64) for row in (3, 17)]
    queries = [Query(each, each[:0], each[:0]) for each in tokens]
    assert found.nearest(queries, np.zeros((2, 1), np.float32), 4)[:, 0].tolist() == [3, 17]


def test_an_objective_with_a_reward_trains_in_place_of_realms(plugged, chain, tmp_path):
    plain, spread = (
        pretrain(chain, steps=2, dropout=0.0, objective=name).make(tmp_path / name) for name in ("realm", "spread")
    )
    first = [json.loads(artifact.file("metrics.jsonl").read_text().splitlines()[0]) for artifact in (plain, spread)]
    assert spread.kind == "model" and first[1]["entropy"] > 0
    assert first[1]["loss"] < first[0]["loss"]


@pytest.mark.parametrize(
    "option", ["--masking", "--candidates-from", "--refresh", "--reader", "--retriever-loss", "--objective"]
)
def test_an_unknown_name_lists_the_known_ones(plugged, chain, realmctl, option):
    parts = [f"--{name}={getattr(chain, name).path}" for name in ("blocks", "spans", "retriever", "index", "encoder")]
    code, _, err = realmctl("pretrain", *parts, option, "nonsense")
    assert code == 2 and "'nonsense' is not one of" in err
