"""`rerank`, and `--rerank` of rank and search, beside the order that a cross-encoder's scores give by hand."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import realmctl
from realmctl.artifacts import Artifact
from realmctl.corpus.corpus import Corpus
from realmctl.errors import ConfigError, MismatchError
from realmctl.extras.ir.rank import Rank
from realmctl.extras.ir.ranking.trec import read_run
from realmctl.extras.ir.rerank import Rerank
from realmctl.extras.rerank.cross_encoder import CrossEncoder
from realmctl.lab.dpr.mine_negatives import MineNegatives
from realmctl.questions.questions import read_questions
from realmctl.retrieval.search.reranking import Pair, Reranking
from tests.fixtures.blocks import make_blocks
from tests.fixtures.chain import Chain

pytest.importorskip("ir_measures")


@pytest.fixture(autouse=True)
def in_float32(monkeypatch):
    """In bfloat16, which `auto` takes where a processor has it, a question's vector moves with its batch, and nearly equal hits change places."""
    monkeypatch.setattr("realmctl.models.precision.bf16_is_faster", lambda device: False)


@pytest.fixture
def command(request):
    """The real command; the name of its fixture is that of the package here."""
    return request.getfixturevalue("realmctl")


@pytest.fixture(scope="module")
def inputs(chain: Chain):
    return {"blocks": chain.blocks, "retriever": chain.retriever, "index": chain.index}


@pytest.fixture(scope="module")
def ranking(chain: Chain, inputs, tmp_path_factory) -> Artifact:
    return Rank(queries=chain.questions, top=12, precision="fp32", **inputs).make(
        tmp_path_factory.mktemp("reranked") / "ranking"
    )


@pytest.fixture(scope="module")
def qrels(chain: Chain, tmp_path_factory):
    """Relevant is each block of the person; by block and by document."""
    owner = {block.title: block for block in Corpus(chain.blocks)}
    lines = []
    for question in read_questions(chain.questions):
        block = owner[question.question.split("was ")[1].removesuffix(" born?")]
        lines += [
            f"{question.id} 0 {block.id.replace(' ', '%20')} 1",
            f"{question.id} 0 {block.document.replace(' ', '%20')} 1",
        ]
    file = tmp_path_factory.mktemp("judged") / "qrels"
    file.write_text("\n".join(lines) + "\n")
    return file


def ranked(artifact: Artifact) -> dict[str, list[str]]:
    return {query: sorted(found, key=lambda name: -found[name]) for query, found in read_run(artifact.file("run.trec"))}


@pytest.fixture(scope="module")
def by_hand(chain: Chain, cross_encoder):
    """Sorts the first blocks of a question by the scores of pairs, one at a time."""
    model = CrossEncoder.open(cross_encoder, "cpu")
    texts = {question.id: question.question for question in read_questions(chain.questions)}
    blocks = {block.id: block for block in Corpus(chain.blocks)}

    def order(query: str, names: list[str], depth: int) -> list[str]:
        def score(name: str) -> float:
            return -float(model.scores([Pair(texts[query], blocks[name].title, blocks[name].text)])[0])

        return [*sorted(names[:depth], key=score), *names[depth:]]

    return order


def test_a_ranking_goes_in_and_one_comes_out(chain: Chain, ranking, by_hand, cross_encoder, qrels, tmp_path):
    made = Rerank(ranking=ranking, blocks=chain.blocks, model=str(cross_encoder), depth=5, qrels=qrels).make(
        tmp_path / "r"
    )
    before, after = ranked(ranking), ranked(made)
    assert after == {query: by_hand(query, names, 5) for query, names in before.items()} != before
    assert made.metrics["queries"] == len(before) and made.metrics["reranked"] == 5 * len(before)
    assert made.file("queries.jsonl").read_bytes() == ranking.file("queries.jsonl").read_bytes()
    told = json.loads(made.file("ranking.json").read_text())
    assert told.pop("search") == json.loads(ranking.file("ranking.json").read_text())["search"]
    assert told == {"unit": "block", "reranked": 5, "reranker": "encoder", "rerank_fused": False}
    relevant = {line.split()[0]: line.split()[2] for line in qrels.read_text().splitlines()[::2]}
    for key, runs in (("nDCG@10 before", before), ("nDCG@10", after)):
        places = [
            names[:10].index(relevant[query]) if relevant[query] in names[:10] else None
            for query, names in runs.items()
        ]
        ideal = 1 + 1 / np.log2(3)  # the document is relevant too, and no block
        assert made.metrics[key] == pytest.approx(
            np.mean([0 if at is None else 1 / np.log2(at + 2) / ideal for at in places]), abs=1e-6
        )


def test_rank_reranks_as_the_stage_does_and_says_so(chain: Chain, ranking, inputs, cross_encoder, qrels, tmp_path):
    given = {"queries": chain.questions, "top": 12, "rerank": str(cross_encoder), "rerank_depth": 5}
    made = Rank(**given, **inputs, qrels=qrels).make(tmp_path / "ranking")
    other = Rerank(ranking=ranking, blocks=chain.blocks, model=str(cross_encoder), depth=5, qrels=qrels).make(
        tmp_path / "r"
    )
    assert ranked(made) == ranked(other)
    assert (
        made.metrics["nDCG@10 before"] == other.metrics["nDCG@10 before"]
        and made.metrics["nDCG@10"] == other.metrics["nDCG@10"]
    )
    told = json.loads(made.file("ranking.json").read_text())
    assert told["reranked"] == 5 and (told["search"]["reranker"], told["search"]["rerank_depth"]) == ("encoder", 5)
    with pytest.raises(ConfigError, match="--rerank-depth needs --rerank"):
        Rank(queries=chain.questions, rerank_depth=5, **inputs)


def test_as_many_hits_are_read_as_is_said_however_few_are_wanted(
    chain: Chain, inputs, by_hand, cross_encoder, tmp_path
):
    """`--top 3` reranks fifty hits and keeps the best three, as `search` does."""
    given = {"queries": chain.questions, "rerank": str(cross_encoder), **inputs}
    many = ranked(Rank(queries=chain.questions, top=60, **inputs).make(tmp_path / "ranking"))
    few = ranked(Rank(top=3, **given).make(tmp_path / "ranking"))
    assert few == {query: by_hand(query, names, 50)[:3] for query, names in many.items()}
    assert any({*names} - {*many[query][:3]} for query, names in few.items())
    deeper = ranked(Rank(top=3, rerank_depth=7, **given).make(tmp_path / "ranking"))
    assert deeper == {query: by_hand(query, names, 7)[:3] for query, names in many.items()}
    made = Rank(top=3, rerank_depth=7, depth=5, **given).make(
        tmp_path / "ranking"
    )  # the user says how many are searched
    assert ranked(made) == {query: by_hand(query, names[:5], 5)[:3] for query, names in many.items()}


def test_a_document_has_the_best_score_of_its_blocks(chain: Chain, inputs, cross_encoder, tmp_path):
    model, corpus = CrossEncoder.open(cross_encoder, "cpu"), [*Corpus(chain.blocks)]
    texts = {question.id: question.question for question in read_questions(chain.questions)}
    documents = Rank(queries=chain.questions, top=8, unit="document", **inputs).make(tmp_path / "documents")
    made = Rerank(ranking=documents, blocks=chain.blocks, model=str(cross_encoder), depth=8).make(tmp_path / "r")
    for query, found in read_run(made.file("run.trec")):
        best = {
            name: max(
                model.scores([Pair(texts[query], one.title, one.text)])[0]
                for one in corpus
                if one.document == name.replace("%20", " ")
            )
            for name in found
        }
        assert [*found.values()] == pytest.approx([best[name] for name in found], abs=1e-5)
        assert [*found] == sorted(found, key=lambda name: -best[name])


def test_search_and_python_rerank_and_say_so(command, chain: Chain, by_hand, cross_encoder):
    [question] = [*read_questions(chain.questions)][:1]
    plain = realmctl.load_search(chain.folder, method="dense").search(question.question, k=9)
    expected = by_hand(question.id, [hit.block.id for hit in plain], 9)[:3]
    search = realmctl.load_search(chain.folder, method="dense", rerank=cross_encoder, rerank_depth=9)
    found = search.search(question.question, k=3)
    assert [hit.block.id for hit in found] == expected
    assert search.profile.told() == {"method": "dense", "reranker": "encoder", "rerank_depth": 9}
    assert [hit.score for hit in found] == sorted((hit.score for hit in found), reverse=True)
    code, out, err = command(
        "search",
        "--json",
        "-w",
        chain.folder,
        "--method",
        "dense",
        "-k",
        3,
        "--rerank",
        cross_encoder,
        "--rerank-depth",
        9,
        question.question,
    )
    assert code == 0, err
    told = json.loads(out)
    assert [hit["block"] for hit in told["results"][0]["hits"]] == expected and told["search"] == search.profile.told()


def test_a_search_reads_no_more_hits_than_it_says_however_many_are_wanted(
    chain: Chain, ranking, inputs, cross_encoder, tmp_path, monkeypatch
):
    [question] = [*read_questions(chain.questions)][:1]
    search = realmctl.load_search(chain.folder, method="dense", rerank=cross_encoder, rerank_depth=3)
    read, real = [], search.reranking.model.scores
    monkeypatch.setattr(type(search.reranking.model), "scores", lambda _, pairs: read.append(len(pairs)) or real(pairs))
    many, few = search.search(question.question, k=10), search.search(question.question, k=5)
    assert read == [3, 3] and [hit.block.id for hit in few] == [hit.block.id for hit in many][:5]
    plain = realmctl.load_search(chain.folder, method="dense").search(question.question, k=10)
    assert [hit.block.id for hit in many[3:]] == [hit.block.id for hit in plain[3:]]
    again = Rerank(ranking=ranking, blocks=chain.blocks, model=str(cross_encoder), depth=3).make(tmp_path / "r")
    assert [hit.block.id for hit in many] == [*ranked(again)[question.id]][:10]
    assert sum(hit.probability for hit in many) == pytest.approx(1)


def test_a_fused_order_sums_up_reciprocal_ranks_by_every_door(
    command, chain: Chain, ranking, inputs, cross_encoder, qrels, tmp_path
):
    alone = Rerank(ranking=ranking, blocks=chain.blocks, model=str(cross_encoder), depth=7).make(tmp_path / "r")
    made = Rerank(ranking=ranking, blocks=chain.blocks, model=str(cross_encoder), depth=7, fused=True)
    made = made.make(tmp_path / "r")
    before, after, found = ranked(ranking), ranked(alone), ranked(made)
    for query, names in before.items():
        sums = {name: 1 / (61 + names.index(name)) + 1 / (61 + after[query].index(name)) for name in names[:7]}
        assert found[query] == [*sorted(sums, key=lambda name: -sums[name]), *names[7:]]
        scores = dict(read_run(made.file("run.trec")))[query]
        assert [scores[name] for name in sums] == pytest.approx([*sums.values()], abs=1e-6)
    assert found != after and found != before
    given = {"queries": chain.questions, "top": 12, "rerank": str(cross_encoder), "rerank_depth": 7}
    assert ranked(Rank(**given, **inputs, rerank_fused=True).make(tmp_path / "ranking")) == found
    [question] = [*read_questions(chain.questions)][:1]
    options = {"rerank": cross_encoder, "rerank_depth": 7, "rerank_fused": True}
    search = realmctl.load_search(chain.folder, method="dense", **options)
    hits = search.search(question.question, k=12)
    assert [hit.block.id.replace(" ", "%20") for hit in hits] == found[question.id]
    assert sum(hit.probability for hit in hits) == pytest.approx(1) and hits[0].probability < 0.5
    flags = ("--rerank", cross_encoder, "--rerank-depth", 7, "--rerank-fused", "--json")
    _, out, _ = command("search", "-w", chain.folder, "--method", "dense", "-k", 12, *flags, question.question)
    told = json.loads(out)
    assert [hit["block"].replace(" ", "%20") for hit in told["results"][0]["hits"]] == found[question.id]
    assert told["search"] == {"method": "dense", "reranker": "encoder", "rerank_depth": 7, "rerank_fused": True}
    code, _, err = command("search", "-w", chain.folder, "--rerank-fused", question.question)
    assert code == 2 and "--rerank-fused" in err and "--rerank" in err
    with pytest.raises(ConfigError, match="--rerank-fused needs --rerank"):
        realmctl.load_search(chain.folder, method="dense", rerank_fused=True)
    for depth in (0, -3, 2.5):
        with pytest.raises(ConfigError, match=f"rerank_depth is {depth}, and must be"):
            realmctl.load_search(chain.folder, method="dense", **options | {"rerank_depth": depth})
    described = {each.path.name: json.loads(each.file("ranking.json").read_text()) for each in (alone, made)}
    assert [one["rerank_fused"] for one in described.values()] == [False, True]
    assert all(
        one["search"] == json.loads(ranking.file("ranking.json").read_text())["search"] for one in described.values()
    )
    # what mines negatives of it asks the teacher again: ranks are no scores of a teacher
    mined = MineNegatives(
        ranking=made, cross_encoder=str(cross_encoder), blocks=chain.blocks, qrels=qrels, negatives=12
    ).make(tmp_path / "n")
    known = dict(read_run(alone.file("run.trec")))
    for record in map(json.loads, mined.file("train.jsonl").read_text(encoding="utf-8").splitlines()):
        for one in record["negative_passages"]:
            name = one["docid"].replace(" ", "%20")
            if name in after[record["query_id"]][:7]:
                assert one["score"] == pytest.approx(known[record["query_id"]][name], abs=1e-5)


@pytest.mark.parametrize("fused", [False, True])
def test_hits_behind_the_depth_follow_in_their_order_and_below(fused):
    class Silent:
        is_likelihood = False

    def sorted_again(scores, read):
        found = Reranking(Silent(), 9, "r", fused).sorted_again(
            *(np.array(each, np.float32) for each in (scores, read)), None
        )  # type: ignore[arg-type]
        return [each.tolist() for each in found]

    places, scores = sorted_again([9, 8, 7, 6.5], [0.1, 0.9])
    both = 1 / 61 + 1 / 62
    after = [both, both, 1 / 63, 1 / 64] if fused else [0.9, 0.1, -0.9, -1.4]
    assert places == ([0, 1, 2, 3] if fused else [1, 0, 2, 3]) and scores == pytest.approx(after)
    places, scores = sorted_again([9, 8, 7, 6.5], [0.1, 0.5, 0.9])
    assert places == ([0, 2, 1, 3] if fused else [2, 1, 0, 3])
    assert scores == pytest.approx(
        [1 / 61 + 1 / 63, 1 / 61 + 1 / 63, 2 / 62, 1 / 64] if fused else [0.9, 0.5, 0.1, -0.9]
    )
    places, scores = sorted_again([3, 2], [0.5, 0.5])
    assert places == [0, 1] and scores == pytest.approx([2 / 61, 2 / 62] if fused else [0.5, 0.5])
    assert sorted_again([], []) == [[], []]


def test_negatives_of_a_reranked_ranking_have_scores_of_one_kind(chain: Chain, ranking, cross_encoder, qrels, tmp_path):
    again = Rerank(ranking=ranking, blocks=chain.blocks, model=str(cross_encoder), depth=5).make(tmp_path / "r")
    mined = MineNegatives(ranking=again, blocks=chain.blocks, qrels=qrels, negatives=12).make(tmp_path / "n")
    first = {query: names[:5] for query, names in ranked(again).items()}
    for record in map(json.loads, mined.file("train.jsonl").read_text(encoding="utf-8").splitlines()):
        known = first[record["query_id"]]
        assert all(
            one["docid"].replace(" ", "%20") in known and 0 <= one["score"] <= 1 for one in record["negative_passages"]
        )
        for one in record["positive_passages"]:
            assert (one["score"] is not None) is (one["docid"].replace(" ", "%20") in known)


def test_the_reranker_scores_in_mining_what_it_has_not_read_yet(
    chain: Chain, ranking, cross_encoder, qrels, tmp_path, monkeypatch
):
    again = Rerank(ranking=ranking, blocks=chain.blocks, model=str(cross_encoder), depth=3).make(tmp_path / "r")
    read: list[Pair] = []
    plain = CrossEncoder.scores
    monkeypatch.setattr(CrossEncoder, "scores", lambda self, pairs: read.extend(pairs) or plain(self, pairs))
    given = {"blocks": chain.blocks, "qrels": qrels, "negatives": 12}
    mined = MineNegatives(ranking=again, cross_encoder=str(cross_encoder), **given).make(tmp_path / "n")
    known, model = dict(read_run(again.file("run.trec"))), CrossEncoder.open(cross_encoder, "cpu")
    first, unread = {query: names[:3] for query, names in ranked(again).items()}, 0
    for record in map(json.loads, mined.file("train.jsonl").read_text(encoding="utf-8").splitlines()):
        query = record["query_id"]
        for one in (*record["positive_passages"], *record["negative_passages"]):
            name = one["docid"].replace(" ", "%20")
            unread += name not in first[query]
            if name in first[query]:
                assert one["score"] == pytest.approx(known[query][name], abs=1e-6)
            pair = Pair(record["query"], one["title"], one["text"])
            assert one["score"] == pytest.approx(float(plain(model, [pair])[0]), abs=1e-5)
    assert len(read) == unread > 0
    whole = MineNegatives(ranking=ranking, cross_encoder=str(cross_encoder), **given)
    del read[:]
    whole.make(tmp_path / "w")
    assert len(read) > 3 * len(known)  # another ranking's scores are not the model's


def test_in_mining_all_passages_of_a_question_have_likelihoods_of_one_scale(
    chain: Chain, ranking, cross_encoder, qrels, tmp_path, monkeypatch
):
    """A reader's ranking has the search's logits in its scores, and a passage that was not found has none of these."""
    monkeypatch.setattr(CrossEncoder, "is_likelihood", True)
    again = Rerank(ranking=ranking, blocks=chain.blocks, model=str(cross_encoder), depth=3).make(tmp_path / "r")
    given = {"blocks": chain.blocks, "qrels": qrels, "negatives": 3, "cross_encoder": str(cross_encoder)}
    mined = MineNegatives(ranking=again, **given).make(tmp_path / "n")
    summed, model = dict(read_run(again.file("run.trec"))), CrossEncoder.open(cross_encoder, "cpu")
    differs = 0
    for record in map(json.loads, mined.file("train.jsonl").read_text(encoding="utf-8").splitlines()):
        for one in (*record["positive_passages"], *record["negative_passages"]):
            alone = float(model.scores([Pair(record["query"], one["title"], one["text"])])[0])
            assert one["score"] == pytest.approx(alone, abs=1e-5)
            held = summed[record["query_id"]].get(one["docid"].replace(" ", "%20"), alone)
            differs += abs(held - alone) > 1e-3
    assert differs


def test_what_is_refused_and_what_is_told(chain: Chain, ranking, cross_encoder, qrels, tmp_path, capsys, monkeypatch):
    with pytest.raises(MismatchError):
        Rerank(
            ranking=ranking,
            blocks=make_blocks(tmp_path / "blocks", {"T": [["Another text."]]}),
            model=str(cross_encoder),
        ).make(tmp_path / "r")
    with pytest.raises(MismatchError, match="does not rerank"):
        Rerank(ranking=ranking, blocks=chain.blocks, model=str(chain.retriever.path)).make(tmp_path / "r")
    strange = tmp_path / "strange"
    strange.write_text("nobody 0 nothing 1\n")
    made = Rerank(ranking=ranking, blocks=chain.blocks, model=str(cross_encoder), qrels=strange).make(tmp_path / "r")
    assert "nDCG@10" not in made.metrics and "is not measured" in capsys.readouterr().err
    monkeypatch.setattr("realmctl.extras.ir.reranking.find_spec", lambda name: None)
    Rerank(ranking=ranking, blocks=chain.blocks, model=str(cross_encoder), qrels=qrels, depth=2).make(tmp_path / "r")
    assert "ir-measures is not installed" in capsys.readouterr().err


def test_a_killed_run_continues_and_reads_nothing_twice(chain: Chain, ranking, cross_encoder, tmp_path, monkeypatch):
    monkeypatch.setattr("realmctl.extras.ir.reranking.QUERIES_AT_ONCE", 6)
    given = {"ranking": ranking, "blocks": chain.blocks, "model": str(cross_encoder), "depth": 5}
    expected, plain, read = Rerank(**given).make(tmp_path / "whole"), CrossEncoder.scores, []

    def scores(self, pairs, fails=(2,)):
        read.append(len(pairs))
        if len(read) in fails:
            raise KeyboardInterrupt
        return plain(self, pairs)

    monkeypatch.setattr(CrossEncoder, "scores", scores)
    with pytest.raises(KeyboardInterrupt):
        Rerank(**given).make(tmp_path / "r")
    made = Rerank(**given).make(tmp_path / "r")
    assert read == [30, 30, 30, 30, 10] and made.metrics == expected.metrics
    assert made.file("run.trec").read_bytes() == expected.file("run.trec").read_bytes()


def test_a_second_run_in_the_workspace_finds_what_the_first_one_made(command, chain: Chain, cross_encoder):
    blocks = ("--blocks", chain.blocks.path)
    assert command("rank", "--queries", chain.questions, "--method", "bm25", *blocks)[0] == 0
    for model in (cross_encoder, cross_encoder):
        code, _, err = command("rerank", "--model", model, "--depth", 3, *blocks)
        assert code == 0, err
    assert "nothing to do" in err and sorted(path.name for path in Path("artifacts/ranking").glob("v*")) == ["v1", "v2"]
    code, _, err = command(
        "rerank", "--model", cross_encoder, "--depth", 3, "--ranking", "artifacts/ranking/v2", *blocks
    )
    assert code == 0 and "v3" in err, "a version that is named is taken"
