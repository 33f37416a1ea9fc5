"""Typical mistakes of users, each through the real command: one paragraph, the documented exit code, never a traceback.

`{name}` in a command is the series of that name in a finished chain. Nothing may be left behind.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.fixtures.messages import one_paragraph

USAGE, INPUT, MISMATCH, RESOURCE = 2, 3, 4, 5

MISTAKES = [
    # The command line
    ("chunks corpus.jsonl", USAGE, "No such command 'chunks'"),
    ("chunk", USAGE, "Missing argument"),
    ("chunk corpus.jsonl --tokeniser x", USAGE, "No such option"),
    ("chunk corpus.jsonl --max-wordpieces ten", USAGE, "Invalid value for '--max-wordpieces'"),
    ("chunk corpus.jsonl --max-wordpieces 0", USAGE, "--max-wordpieces"),
    ("chunk corpus.jsonl --workers -1", USAGE, "--workers -1"),
    ("chunk corpus.jsonl --tokenizer train:0", USAGE, "train:0"),
    ("chunk corpus.jsonl --tokenizer train:many", USAGE, "train:many"),
    ("chunk corpus.jsonl -o corpus.jsonl/x", USAGE, "corpus.jsonl/x"),
    ("ask", USAGE, "Missing argument"),
    ("ask Who --top 0", USAGE, "--top"),
    ("demo old --seed 1", USAGE, "is the world of seed 0"),
    # Files
    ("chunk no-such.xml.bz2", INPUT, "no-such.xml.bz2"),
    ("chunk empty.jsonl", INPUT, "empty.jsonl"),
    ("chunk folder", INPUT, "folder"),
    ("chunk picture.png --workers 1", INPUT, "picture.png is not text (format: PNG image)"),
    ("chunk picture.png --format text --workers 1", INPUT, "picture.png is not text (format: PNG image)"),
    ("chunk table.csv --workers 1", INPUT, "Name the column with --text-field"),
    ("chunk table.csv --text-column story --workers 1", USAGE, "Possible options: --text-field"),
    ("chunk table.csv --text-field body --workers 1", INPUT, "There are: key, headline, story"),
    ("chunk broken.xml.bz2 --text-field body --workers 1", INPUT, "broken.xml.bz2"),
    ("chunk broken.xml.bz2", INPUT, "broken.xml.bz2"),
    ("chunk corpus.jsonl --tokenizer folder", INPUT, "folder"),
    ("chunk corpus.jsonl --tokenizer no-such", INPUT, "no-such"),
    ("mlm-init --blocks {blocks} --bert no-such/folder/here", INPUT, "no-such/folder/here"),
    ("mlm-init --blocks {blocks} --bert folder", INPUT, "folder"),
    ("finetune {parts} --questions no-such.jsonl", INPUT, "no-such.jsonl"),
    ("finetune {parts} --questions corpus.jsonl", INPUT, "corpus.jsonl"),
    ("finetune {parts} --questions empty.jsonl", INPUT, "empty.jsonl"),
    ("pretrain {pretrain} --recall-questions corpus.jsonl", INPUT, "corpus.jsonl"),
    ("score no-such.jsonl questions.jsonl", INPUT, "no-such.jsonl"),
    ("score corpus.jsonl questions.jsonl", INPUT, "corpus.jsonl"),
    ("finetune {parts} --questions queries.jsonl", INPUT, "no text under any of question"),
    ("eval-em --blocks {blocks} --retrieval bm25 --questions queries.jsonl", INPUT, "their judgements in --qrels"),
    (
        "rank --blocks {blocks} --method bm25 --queries qrels.tsv",
        INPUT,
        "holds relevance judgements (qrels), not queries",
    ),
    (
        "rank --blocks {blocks} --method bm25 --queries picture.png",
        INPUT,
        "picture.png is not text (format: PNG image)",
    ),
    ("dpr-finetune --retriever {retriever} --passages queries.jsonl", INPUT, "read with --qrels and --corpus"),
    (
        "dpr-finetune --retriever {retriever} --passages ids.jsonl",
        INPUT,
        "Name the corpus that holds the passages with --corpus",
    ),
    ("dpr-finetune --retriever {retriever} --passages ids.jsonl --corpus empty.jsonl", INPUT, "empty.jsonl"),
    ("dpr-finetune --retriever {retriever} --passages ids.jsonl --corpus corpus.jsonl", INPUT, "such as 'd9'"),
    ("split no-such.jsonl", USAGE, "Missing"),
    ("run no-such.yaml", INPUT, "no-such.yaml"),
    ("run broken.yaml", INPUT, "broken.yaml"),
    ("run unknown.yaml", USAGE, "chnk"),
    ("run pipeline.yaml --until nothing", USAGE, "--until nothing"),
    ("run pipeline.yaml --var seed", USAGE, "Write name=value"),
    ("import no-such", INPUT, "no-such"),
    # Artifacts
    ("tag", INPUT, "tag needs --blocks"),
    ("embed --blocks {blocks}", INPUT, "embed needs --retriever"),
    ("pretrain", INPUT, "pretrain needs --blocks"),
    ("eval-em --questions questions.jsonl", INPUT, "eval-em needs"),
    ("ask Who", INPUT, "realmctl finetune"),
    ("ask Who --qa-model corpus.jsonl --blocks {blocks}", INPUT, "corpus.jsonl"),
    ("fill-mask [MASK]", INPUT, "realmctl pretrain"),
    ("tag --blocks corpus.jsonl", INPUT, "corpus.jsonl"),
    ("tag --blocks {retriever}", MISMATCH, "is of kind retriever, but blocks is needed"),
    ("embed --blocks {blocks} --retriever {encoder}", MISMATCH, "is of kind encoder, but retriever is needed"),
    ("build-index --embeddings {blocks}", MISMATCH, "is of kind blocks, but embeddings is needed"),
    ("eval-em --qa-model {index} --blocks {blocks} --questions questions.jsonl", MISMATCH, "is of kind index"),
    ("show nothing", INPUT, "nothing"),
    ("verify corpus.jsonl", INPUT, "corpus.jsonl"),
    ("ls nothing", INPUT, "nothing does not exist"),
    ("report nothing", INPUT, "nothing"),
    ("export nothing out", INPUT, "nothing"),
    # Settings that cannot work
    ("tag --blocks {blocks} --tagger nltk", USAGE, "--tagger nltk"),
    ("tag --blocks {blocks} --tagger spacy:no_such_model", INPUT, "python -m spacy download no_such_model"),
    ("mlm-init --blocks {blocks} --bert scratch:huge", USAGE, "'huge' is no BERT size"),
    ("mlm-init --blocks {blocks} --mask-rate 2", USAGE, "--mask-rate"),
    ("mlm-init --blocks {blocks} --steps 0", USAGE, "--steps"),
    ("mlm-init --blocks {blocks} --lr 0", USAGE, "--lr"),
    ("mlm-init --blocks {blocks} --precision fp8", USAGE, "--precision"),
    ("mlm-init --blocks {blocks} --practice curriculum", USAGE, "--practice curriculum needs --spans"),
    ("mlm-init --blocks {blocks} --device gpu", USAGE, "--device 'gpu' is not a device"),
    ("mlm-init --blocks {blocks} --device cuda:7", RESOURCE, "cuda:7"),
    ("ict-init --blocks {blocks} --encoder {encoder} --mask-rate -1", USAGE, "--mask-rate"),
    ("ict-init --blocks {blocks} --encoder {encoder} --micro-batch -1", USAGE, "--micro-batch -1"),
    ("embed --blocks {blocks} --retriever {retriever} --dtype float64", USAGE, "--dtype"),
    ("build-index --embeddings {embeddings} --type faiss", USAGE, "--type"),
    ("build-index --embeddings {embeddings} --m 1", USAGE, "--m 1"),
    ("build-index --embeddings {embeddings} --min-recall 2", USAGE, "--min-recall 2.0"),
    ("pretrain {pretrain} --candidates 1", USAGE, "--candidates 1"),
    ("pretrain {pretrain} --refresh-every 0", USAGE, "--refresh-every"),
    ("pretrain {pretrain} --max-index-age 1", USAGE, "--max-index-age 1 is below"),
    ("pretrain {pretrain} --lr -1", USAGE, "--lr -1"),
    ("pretrain {pretrain} --refresh daily", USAGE, "--refresh"),
    ("pretrain {pretrain} --preset orqa-nq", USAGE, "orqa-nq"),
    ("pretrain {pretrain} --track tensorboard:corpus.jsonl", USAGE, "--track tensorboard:corpus.jsonl"),
    ("pretrain {pretrain} --track comet", USAGE, "--track 'comet'"),
    ("finetune {parts}", USAGE, "Missing option '--questions'"),
    ("finetune {parts} --questions questions.jsonl --retrieval sparse", USAGE, "--retrieval"),
    ("finetune {parts} --questions questions.jsonl --retriever-beam 1", USAGE, "--retriever-beam 1 is below"),
    ("finetune {parts} --questions questions.jsonl --epochs 0", USAGE, "--epochs"),
    # Options that say nothing beside the others
    ("pretrain {pretrain} --reader-cache 2", USAGE, "--reader-cache needs --reader-lm"),
    ("pretrain {pretrain} --cloze-every 9", USAGE, "--cloze-every needs --cloze-recall"),
    ("mlm-init --blocks {blocks} --spans {spans} --mask-rate 0.3", USAGE, "--mask-rate"),
    ("mlm-init --blocks {blocks} --spans {spans} --length 32", USAGE, "--length"),
    ("mlm-init --blocks {blocks} --window 32", USAGE, "--window needs --practice curriculum"),
    ("condenser-init --blocks {blocks} --encoder {encoder} --group-by title", USAGE, "--group-by needs --contrastive"),
    ("build-index --embeddings {embeddings} --type exact --m 8", USAGE, "--m needs --type hnsw"),
    ("finetune {parts} --questions questions.jsonl --dev-every 9", USAGE, "--dev-every needs --dev"),
    ("finetune {parts} --questions questions.jsonl --hard-em-tau 9", USAGE, "`--hard-em-tau` is gone"),
    ("finetune {parts} --questions questions.jsonl --preset hard-em", USAGE, "`--preset hard-em` is gone"),
    ("finetune {parts} --questions questions.jsonl --objective hard-em", USAGE, "`--objective hard-em` is gone"),
    ("pretrain {parts} --spans {spans} --refresh-every auto", USAGE, "`--refresh-every auto` is gone"),
    ("finetune {parts} --questions questions.jsonl --steps 9 --epochs 3", USAGE, "--epochs"),
    (
        "eval-em --blocks {blocks} --retriever {retriever} --index {index} --questions questions.jsonl --scorer squad",
        USAGE,
        "--scorer needs --qa-model or --reader-lm",
    ),
    (
        "eval-em --blocks {blocks} --retrieval bm25 --questions questions.jsonl --reader-beam 2",
        USAGE,
        "--reader-beam needs --qa-model or --reader-lm",
    ),
]


@pytest.fixture
def files(here, chain) -> Path:
    """A folder with files that people name by mistake."""
    document = {"id": 1, "title": "Ada", "text": "Ada Lorn was born in Velford. She lived there."}
    Path("corpus.jsonl").write_text(json.dumps(document) + "\n")
    Path("questions.jsonl").write_bytes(chain.questions.read_bytes())
    Path("table.csv").write_text("key,headline,story\n1,Rome,A city.\n2,Oslo,Another city.\n")
    Path("queries.jsonl").write_text(json.dumps({"_id": "q1", "text": "where?", "metadata": {}}) + "\n")
    Path("qrels.tsv").write_text("query-id\tcorpus-id\tscore\n7\t1\t1\n")
    Path("ids.jsonl").write_text(json.dumps({"query_text": "where?", "positive_document_ids": ["d9"]}) + "\n")
    Path("empty.jsonl").touch()
    Path("folder").mkdir()
    Path("picture.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 8)
    Path("broken.xml.bz2").write_bytes(b"BZh91AY&SY" + bytes(64))
    Path("broken.yaml").write_text("stages: [")
    Path("unknown.yaml").write_text("stages: {blocks: {stage: chnk}}")
    Path("pipeline.yaml").write_text("vars: {seed: 0}\nstages: {blocks: {stage: chunk, corpus: [corpus.jsonl]}}")
    Path("old/world").mkdir(parents=True)
    Path("old/world/world.json").write_text(json.dumps({"settings": {"seed": 0}}))
    return Path()


def words_of(command: str, chain) -> list[str]:
    """The arguments of a command, with the chain's artifacts in place of `{name}`."""
    series = {name: getattr(chain, name).path for name in ("blocks", "spans", "encoder", "retriever", "index")}
    series["embeddings"] = chain.folder / "embeddings"
    given = {name: " ".join(f"--{each} {series[each]}" for each in names) for name, names in GROUPS.items()}
    return command.format(**series, **given).split()


GROUPS = {
    "pretrain": ("blocks", "spans", "encoder", "retriever", "index"),
    "parts": ("blocks", "encoder", "retriever", "index"),
}


@pytest.mark.parametrize(("command", "code", "words"), MISTAKES, ids=[command for command, *_ in MISTAKES])
def test_a_mistake_gets_one_paragraph_and_its_exit_code(realmctl, files, chain, command, code, words):
    before = {path for path in files.rglob("*") if path.is_file()}
    got, out, err = realmctl(*words_of(command, chain))
    assert (got, out) == (code, "") and words in one_paragraph(err[err.rindex("error: ") :]), err
    assert {path for path in files.rglob("*") if path.is_file() and path.name != ".lock"} == before
