"""Encoders of any kind beside sentence-transformers: nDCG@10 on test collections, and texts a second.

    python benchmarks/encoders.py quality --collection FOLDER --encoder FOLDER        # real weights
    python benchmarks/encoders.py speed --collection FOLDER --tokenizer FOLDER        # random weights of each family
    python benchmarks/encoders.py static --collection FOLDER --encoder FOLDER         # a table of an encoder's own vectors
    python benchmarks/encoders.py report                                              # docs/results/encoders/report.md

Both sides compute in float32 on one thread, in this process, in alternating rounds of CPU seconds. Collections are in BEIR's layout. Each document is
one text. What was measured is added to docs/results/encoders/runs.jsonl. docs/make_numbers.py copies the tables of the report into pages.
"""

from __future__ import annotations

import argparse
import gzip
import importlib.metadata
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from realmctl.imports.encoder_retriever import EncoderSettings, import_encoder
from realmctl.models.inputs import Collator
from realmctl.models.retriever import Retriever
from realmctl.retrieval.embedding.embedding import embed_questions, embed_titles_and_bodies
from realmctl.tokens.tokenizer import Tokenizer

Vectors = NDArray[np.float32]
DEPTH, ROUNDS, TEXTS, BATCH, PIECE = 10, 3, 96, 32, 60
RESULTS = Path(__file__).resolve().parents[1] / "docs" / "results" / "encoders"
LONGEST = 4096
"""Tokens of the longest text that a table of embeddings reads here; sentence-transformers cuts none."""
SIZES = {"hidden_size": 384, "num_hidden_layers": 6, "num_attention_heads": 6, "intermediate_size": 1536}
FAMILIES: dict[str, dict[str, Any]] = {
    "distilbert": {"dim": 384, "n_layers": 6, "n_heads": 6, "hidden_dim": 1536},
    "nomic_bert": SIZES,
    "gte": SIZES,
    "eurobert": {**SIZES, "num_key_value_heads": 6},
    "qwen3": {**SIZES, "num_key_value_heads": 2, "head_dim": 64},
    "gemma3_text": {**SIZES, "num_key_value_heads": 2, "head_dim": 64, "use_bidirectional_attention": True},
    "modernbert": {**SIZES, "cls_token_id": 1, "sep_token_id": 2},
    "t5": {"d_model": 384, "d_kv": 64, "d_ff": 1536, "num_layers": 6, "num_heads": 6},
}


class Collection:
    """A folder in BEIR's layout: documents, and the queries that have judgements in qrels/test.tsv."""

    def __init__(self, folder: Path) -> None:
        self.name = folder.name
        self.documents = {row["_id"]: (row.get("title", ""), row["text"]) for row in _rows(folder / "corpus.jsonl")}
        lines = (folder / "qrels" / "test.tsv").read_text().splitlines()[1:]
        self.relevant: dict[str, dict[str, int]] = {}
        for query, document, grade in (line.split("\t") for line in lines):
            self.relevant.setdefault(query, {})[document] = int(grade)
        self.queries = {
            row["_id"]: row["text"] for row in _rows(folder / "queries.jsonl") if row["_id"] in self.relevant
        }

    def ndcg(self, query_QD: Vectors, document_ND: Vectors) -> float:
        """Return the mean nDCG@10 of the ranking by inner products."""
        names, found = [*self.documents], []
        for query, score_N in zip(self.queries, query_QD @ document_ND.T, strict=True):
            best = [names[row] for row in np.argsort(-score_N, kind="stable")[:DEPTH]]
            gains = [self.relevant[query].get(name, 0) for name in best]
            ideal = sorted(self.relevant[query].values(), reverse=True)[:DEPTH]
            found.append(_gain(gains) / _gain(ideal))
        return float(np.mean(found))


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    packed = path.with_name(path.name + ".gz")
    data = gzip.decompress(packed.read_bytes()) if packed.is_file() else path.read_bytes()
    yield from map(json.loads, data.decode().strip().split("\n"))


def _gain(grades: list[int]) -> float:
    return sum(grade / np.log2(rank + 2) for rank, grade in enumerate(grades))


def is_table(encoder: Path) -> bool:
    """Whether a folder is a table of embeddings."""
    modules = encoder / "modules.json"
    return not modules.is_file() or "StaticEmbedding" in modules.read_text()


class Ours:
    """An encoder that realmctl imported."""

    def __init__(self, encoder: Path, folder: Path) -> None:
        settings = EncoderSettings(block_length=LONGEST if is_table(encoder) else None)
        made = import_encoder(encoder, None, None, settings, folder)
        self.retriever, self.words = Retriever.load(made.path), Tokenizer.load(made.path / "tokenizer")
        self.collator = Collator.of(self.words)

    def documents(self, texts: list[tuple[str, str]]) -> Vectors:
        titles, bodies = zip(*texts, strict=True)
        tokens = self.words.tokens(titles), self.words.tokens(bodies)
        return embed_titles_and_bodies(self.retriever, self.collator, *tokens, precision="fp32")

    def queries(self, texts: list[str]) -> Vectors:
        return embed_questions(
            self.retriever, self.collator, self.words.tokens(texts), precision="fp32", batch_size=BATCH
        )


class Theirs:
    """The same encoder in sentence-transformers."""

    def __init__(self, encoder: Path, length: int | None = None) -> None:
        from sentence_transformers import SentenceTransformer

        self.model = SentenceTransformer(str(encoder), device="cpu", model_kwargs={"dtype": torch.float32})
        if length is not None and not is_table(encoder):
            self.model.max_seq_length = length

    def documents(self, texts: list[tuple[str, str]]) -> Vectors:
        joined = [f"{title} {body}".strip() for title, body in texts]
        found: Vectors = self.model.encode_document(joined, batch_size=BATCH, normalize_embeddings=True)
        return found

    def queries(self, texts: list[str]) -> Vectors:
        found: Vectors = self.model.encode_query(texts, batch_size=BATCH, normalize_embeddings=True)
        return found


Row = dict[str, Any]


def quality(collections: list[Path], encoders: list[Path]) -> Iterator[Row]:
    """Yield nDCG@10 of both, the largest deviation of a vector, and the documents a second of CPU time."""
    for encoder in encoders:
        with tempfile.TemporaryDirectory() as folder:
            ours = Ours(encoder, Path(folder) / "retriever")
            theirs = Theirs(encoder, ours.retriever.block_length)
            for collection in map(Collection, collections):
                asked, told = [*collection.queries.values()], [*collection.documents.values()]
                pairs, rates = [], []
                for side in (theirs, ours):
                    begin = time.process_time()
                    documents = side.documents(told)
                    rates.append(len(told) / (time.process_time() - begin))
                    pairs.append((side.queries(asked), documents))
                yield {
                    "encoder": encoder.name,
                    "collection": collection.name,
                    "documents": len(told),
                    "queries": len(asked),
                    "ndcg": [collection.ndcg(*pair) for pair in pairs],
                    "rates": rates,
                    "apart": max(float(np.abs(one - other).max()) for one, other in zip(*pairs, strict=True)),
                }


def speed(collections: list[Path], tokenizer: Path, families: list[str]) -> Iterator[Row]:
    """Yield texts a second of CPU time of both, for random weights of each family, in alternating rounds."""
    from transformers import AutoConfig, AutoModel, AutoTokenizer, PreTrainedTokenizerFast, T5EncoderModel

    texts = [*Collection(collections[0]).documents.values()][:TEXTS]
    words = AutoTokenizer.from_pretrained(tokenizer)
    for family in families:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            torch.manual_seed(0)
            config = AutoConfig.for_model(
                family,
                **{
                    "vocab_size": len(words),
                    "pad_token_id": 0,
                    "bos_token_id": 1,
                    "eos_token_id": 2,
                    **FAMILIES[family],
                },
            )
            model = T5EncoderModel(config) if family == "t5" else AutoModel.from_config(config)
            model.save_pretrained(folder / "plain")
            plain = PreTrainedTokenizerFast(
                tokenizer_object=words.backend_tokenizer,
                **{
                    role: getattr(words, role)
                    for role in ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token")
                },
            )
            plain.save_pretrained(folder / "plain")
            saved = _saved(folder, "lasttoken" if family == "qwen3" else "mean")
            ours = Ours(saved, folder / "retriever")
            theirs = Theirs(saved, ours.retriever.block_length)
            vectors = [side.documents(texts[:BATCH]) for side in (theirs, ours)]
            rounds = [[_rate(side.documents, texts) for side in (theirs, ours)] for _ in range(ROUNDS)]
        cosine = float((vectors[0] * vectors[1]).sum(1).min())
        yield {"family": family, "collection": collections[0].name, "rounds": rounds, "cosine": cosine}


def _saved(folder: Path, pooling: str) -> Path:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.models import Normalize, Pooling, Transformer

    words = Transformer(str(folder / "plain"), max_seq_length=288)
    pooled = Pooling(words.get_embedding_dimension(), pooling_mode=pooling)
    model = SentenceTransformer(modules=[words, pooled, Normalize()], device="cpu")
    model.save(str(folder / "saved"), create_model_card=False)
    return folder / "saved"


def _rate(embed: Callable[[list[tuple[str, str]]], Vectors], texts: list[tuple[str, str]]) -> float:
    begin = time.process_time()
    embed(texts)
    return len(texts) / (time.process_time() - begin)


def pieces_of(files: list[Path]) -> list[tuple[str, str]]:
    """Return the different pieces of some JSON lines of title and text, 60 words each."""
    found: dict[tuple[str, str], None] = {}
    for file in files:
        for row in _rows(file.with_name(file.name.removesuffix(".gz"))):
            words = row["text"].split()
            for first in range(0, len(words), PIECE):
                found[row.get("title", ""), " ".join(words[first : first + PIECE])] = None
    return [*found]


@torch.no_grad()
def table_of(encoder: Path, folder: Path) -> Path:
    """Make a table of an encoder's own vectors below a folder.

    It has the encoder's vector of each wordpiece alone, without their mean and first component, times log(2 + rank) of the
    wordpiece's number. So model2vec distils encoders, with Zipf's law for the frequency of a wordpiece.
    """
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.models import Normalize, StaticEmbedding

    whole = Ours(encoder, folder / "whole")
    ids = np.arange(whole.words.rows, dtype=np.int64)
    empty, pieces = [ids[:0]] * len(ids), [ids[n : n + 1] for n in range(len(ids))]
    vector_VD = embed_titles_and_bodies(whole.retriever, whole.collator, empty, pieces, precision="fp32")
    centred_VD = vector_VD - vector_VD.mean(0)
    _, _, component_DD = np.linalg.svd(centred_VD[:20_000], full_matrices=False)
    centred_VD -= np.outer(centred_VD @ component_DD[0], component_DD[0])
    table_VD = centred_VD * np.log(2 + ids)[:, None]
    made = folder / f"table-of-{encoder.name}"
    weights = np.ascontiguousarray(table_VD, np.float32)
    modules = [StaticEmbedding(whole.words.tokenizer, embedding_weights=weights), Normalize()]
    SentenceTransformer(modules=modules, device="cpu").save(str(made), create_model_card=False)
    return made


def static(collections: list[Path], encoders: list[Path], files: list[Path], distil: bool, most: int) -> Iterator[Row]:
    """Yield what a table of embeddings costs: its nDCG@10, and CPU seconds of both for many pieces of 60 words.

    distil: the table is made of the encoder, which is asked in the row of `quality`. Otherwise the folder is a table itself.
    """
    many = pieces_of(files)[:most]
    for encoder in encoders:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            table = table_of(encoder, folder) if distil else encoder
            ours, theirs = Ours(table, folder / "small"), Theirs(table)
            rounds = [[len(many) / _rate(side.documents, many) for side in (theirs, ours)] for _ in range(ROUNDS)]
            for collection in map(Collection, collections):
                asked, told = [*collection.queries.values()], [*collection.documents.values()]
                pairs = [(side.queries(asked), side.documents(told)) for side in (theirs, ours)]
                yield {
                    "encoder": encoder.name,
                    "distilled": distil,
                    "collection": collection.name,
                    "ndcg": [collection.ndcg(*pair) for pair in pairs],
                    "apart": max(float(np.abs(one - other).max()) for one, other in zip(*pairs, strict=True)),
                    "texts": len(many),
                    "seconds": rounds,
                }


def report(rows: list[Row]) -> str:
    """Return the page of what was measured: the newest row of each thing."""
    newest: dict[str, dict[tuple[str, ...], Row]] = {}
    for row in rows:
        key = tuple(str(row.get(name)) for name in ("encoder", "family", "collection", "distilled"))
        newest.setdefault(row["what"], {})[key] = row
    parts = [
        "# Encoders of any kind beside sentence-transformers\n\nWritten by `python benchmarks/encoders.py report` from runs.jsonl.\n"
    ]
    for what, (title, head, line) in SECTIONS.items():
        if what in newest:
            lines = [line(row) for row in newest[what].values()]
            parts.append(f"## {title}\n\n{head}\n" + "\n".join(lines) + "\n\n" + _where(newest[what].values()))
    return "\n".join(parts)


def _where(rows: Any) -> str:
    return "".join(f"Measured on {place}.\n" for place in dict.fromkeys(row["place"] for row in rows))


def _quality_line(row: Row) -> str:
    theirs, ours = row["ndcg"]
    rates = " | ".join(f"{rate:,.0f}" if rate >= 100 else f"{rate:.1f}" for rate in row["rates"])
    counts = f"{row['documents']:,} | {row['queries']:,}"
    return f"| `{row['encoder']}` | {row['collection']} | {counts} | {theirs:.4f} | {ours:.4f} | {row['apart']:.0e} | {rates} |"


def _speed_line(row: Row) -> str:
    ratios = [own / their for their, own in row["rounds"]]
    rates = " | ".join(f"{statistics.median(each):.1f}" for each in zip(*row["rounds"], strict=True))
    spread = f"**{statistics.median(ratios):.2f}** ({min(ratios):.2f}-{max(ratios):.2f})"
    return f"| `{row['family']}` | {rates} | {spread} | {row['cosine']:.6f} |"


def _static_line(row: Row) -> str:
    theirs, ours = row["ndcg"]
    seconds = " | ".join(f"{statistics.median(each):.1f}" for each in zip(*row["seconds"], strict=True))
    name = f"a table of `{row['encoder']}`" if row["distilled"] else f"`{row['encoder']}`"
    return f"| {name} | {row['collection']} | {theirs:.4f} | {ours:.4f} | {row['texts']:,} | {seconds} |"


SECTIONS: Mapping[str, tuple[str, str, Callable[[Row], str]]] = {
    "quality": (
        "Real weights",
        "| encoder | collection | documents | queries | nDCG@10, sentence-transformers | nDCG@10, realmctl | largest deviation of a "
        "vector | documents/s, sentence-transformers | documents/s, realmctl |\n|---|---|--:|--:|--:|--:|--:|--:|--:|",
        _quality_line,
    ),
    "speed": (
        "Speed",
        "| family | sentence-transformers, texts/s | realmctl, texts/s | ratio (least to most) | least cosine |\n|---|--:|--:|---|--:|",
        _speed_line,
    ),
    "static": (
        "Static embeddings",
        "| table | collection | nDCG@10, sentence-transformers | nDCG@10, realmctl | texts | seconds, sentence-transformers | seconds, "
        "realmctl |\n|---|---|--:|--:|--:|--:|--:|",
        _static_line,
    ),
}
"""{what: its heading, the head of its table, and the line of a row}."""


def place() -> str:
    """Return the processor and the versions, and that other work ran."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").is_file() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")] or [
        "an unknown processor"
    ]
    packages = ("torch", "transformers", "sentence-transformers")
    versions = [f"{package} {importlib.metadata.version(package)}" for package in packages]
    return f"one thread of {names[0]}, which other work shared, with {', '.join(versions)}"


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("quality", "speed", "static", "report"))
    parser.add_argument("--collection", type=Path, action="append", default=[])
    parser.add_argument("--encoder", type=Path, action="append", default=[])
    parser.add_argument("--tokenizer", type=Path)
    parser.add_argument("--family", action="append", choices=[*FAMILIES])
    parser.add_argument(
        "--texts", type=Path, action="append", default=[], help="JSON lines that are cut into many pieces"
    )
    parser.add_argument("--most", type=int, default=100_000, help="how many pieces")
    parser.add_argument("--distil", action="store_true", help="make tables of the encoders")
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args()
    torch.set_num_threads(1)
    runs = given.results / "runs.jsonl"
    if given.what == "report":
        (given.results / "report.md").write_text(report([*_rows(runs)]), encoding="utf-8")
        return
    if given.what == "quality":
        found = quality(given.collection, given.encoder)
    elif given.what == "speed":
        found = speed(given.collection, given.tokenizer, given.family or [*FAMILIES])
    else:
        found = static(given.collection, given.encoder, given.texts, given.distil, given.most)
    given.results.mkdir(parents=True, exist_ok=True)
    for row in found:
        line = json.dumps({"what": given.what, **row, "place": place()})
        print(line, flush=True)
        with runs.open("a", encoding="utf-8") as file:
            file.write(line + "\n")


if __name__ == "__main__":
    main()
