"""Encoders of any kind beside sentence-transformers: nDCG@10 on test collections, and texts a second.

    python benchmarks/encoders.py quality --collection FOLDER --encoder FOLDER        # real weights, repeatable
    python benchmarks/encoders.py speed --collection FOLDER --tokenizer FOLDER        # random weights of each family
    python benchmarks/encoders.py static --collection FOLDER --encoder FOLDER         # a table of an encoder's own vectors

Both sides compute in float32 on one thread, in this process, in alternating rounds. Collections are in BEIR's layout. Each document is one text.
"""

from __future__ import annotations

import argparse
import gzip
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
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
DEPTH, ROUNDS, TEXTS, BATCH = 10, 3, 96, 32
SIZES = {"hidden_size": 384, "num_hidden_layers": 6, "num_attention_heads": 6, "intermediate_size": 1536}
FAMILIES: dict[str, dict[str, Any]] = {
    "distilbert": {"dim": 384, "n_layers": 6, "n_heads": 6, "hidden_dim": 1536},
    "nomic_bert": SIZES,
    "gte": SIZES,
    "eurobert": {**SIZES, "num_key_value_heads": 6},
    "qwen3": {**SIZES, "num_key_value_heads": 2, "head_dim": 64},
    "gemma3_text": {**SIZES, "num_key_value_heads": 2, "head_dim": 64, "use_bidirectional_attention": True},
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


class Ours:
    """An encoder that realmctl imported."""

    def __init__(self, encoder: Path, folder: Path, **settings: Any) -> None:
        made = import_encoder(encoder, None, None, EncoderSettings(**settings), folder)
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
        if length is not None:
            self.model.max_seq_length = length

    def documents(self, texts: list[tuple[str, str]]) -> Vectors:
        joined = [f"{title} {body}".strip() for title, body in texts]
        found: Vectors = self.model.encode_document(joined, batch_size=BATCH, normalize_embeddings=True)
        return found

    def queries(self, texts: list[str]) -> Vectors:
        found: Vectors = self.model.encode_query(texts, batch_size=BATCH, normalize_embeddings=True)
        return found


def quality(collections: list[Path], encoders: list[Path]) -> None:
    """Print nDCG@10 of both, and the largest deviation of a vector."""
    print(
        "| encoder | collection | sentence-transformers | realmctl | largest deviation of a vector |\n|---|---|--:|--:|--:|"
    )
    for encoder in encoders:
        with tempfile.TemporaryDirectory() as folder:
            ours = Ours(encoder, Path(folder) / "retriever")
            theirs = Theirs(encoder, ours.retriever.block_length)
            for collection in map(Collection, collections):
                asked, told = [*collection.queries.values()], [*collection.documents.values()]
                pairs = [(side.queries(asked), side.documents(told)) for side in (theirs, ours)]
                apart = max(float(np.abs(one - other).max()) for one, other in zip(*pairs, strict=True))
                scores = " | ".join(f"{collection.ndcg(*pair):.4f}" for pair in pairs)
                print(f"| {encoder.name} | {collection.name} | {scores} | {apart:.1e} |", flush=True)


def speed(collections: list[Path], tokenizer: Path) -> None:
    """Print texts a second of CPU time of both, for random weights of each family, in alternating rounds."""
    from transformers import AutoConfig, AutoModel, AutoTokenizer, PreTrainedTokenizerFast, T5EncoderModel

    texts = [*Collection(collections[0]).documents.values()][:TEXTS]
    words = AutoTokenizer.from_pretrained(tokenizer)
    print(
        "| family | sentence-transformers, texts/s | realmctl, texts/s | ratio (least to most) | least cosine |\n|---|--:|--:|---|--:|"
    )
    for family, fields in FAMILIES.items():
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            torch.manual_seed(0)
            config = AutoConfig.for_model(
                family, **{"vocab_size": len(words), "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, **fields}
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
        ratios = [own / their for their, own in rounds]
        rates = " | ".join(f"{statistics.median(each):.1f}" for each in zip(*rounds, strict=True))
        cosine = float((vectors[0] * vectors[1]).sum(1).min())
        spread = f"**{statistics.median(ratios):.2f}** ({min(ratios):.2f}-{max(ratios):.2f})"
        print(f"| `{family}` | {rates} | {spread} | {cosine:.6f} |", flush=True)


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


@torch.no_grad()
def static(collections: list[Path], encoders: list[Path], copies: int) -> None:
    """Print what a table of an encoder's own vectors costs: nDCG@10, and seconds for many texts.

    The table has the encoder's vector of each wordpiece alone, without their mean and first component, times 1 / log(2 + rank) of the
    wordpiece's number. So model2vec distils encoders, with Zipf's law for the frequency of a wordpiece.
    """
    from safetensors.torch import save_file

    print(
        "| encoder | collection | nDCG@10 | of its table | seconds of CPU for so many texts by the table | texts |\n|---|---|--:|--:|--:|--:|"
    )
    for encoder in encoders:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            whole = Ours(encoder, folder / "whole")
            ids = np.arange(whole.words.rows, dtype=np.int64)
            pieces = [ids[n : n + 1] for n in range(len(ids))]
            empty = [ids[:0]] * len(ids)
            vector_VD = embed_titles_and_bodies(whole.retriever, whole.collator, empty, pieces, precision="fp32")
            centred_VD = vector_VD - vector_VD.mean(0)
            _, _, component_DD = np.linalg.svd(centred_VD[:20_000], full_matrices=False)
            centred_VD -= np.outer(centred_VD @ component_DD[0], component_DD[0])
            table_VD = centred_VD * (np.log(2 + ids)[:, None] if whole.words.lowercase else 1.0)
            (folder / "static").mkdir()
            table = torch.from_numpy(np.ascontiguousarray(table_VD, np.float32))
            save_file({"embeddings": table}, folder / "static" / "model.safetensors")
            (folder / "static" / "config.json").write_text('{"model_type": "model2vec", "normalize": true}')
            whole.words.tokenizer.save(str(folder / "static" / "tokenizer.json"))
            small = Ours(folder / "static", folder / "small")
            for collection in map(Collection, collections):
                asked, told = [*collection.queries.values()], [*collection.documents.values()]
                scores = [collection.ndcg(side.queries(asked), side.documents(told)) for side in (whole, small)]
                many = (told * (1 + copies // len(told)))[:copies]
                seconds = len(many) / _rate(small.documents, many)
                print(
                    f"| {encoder.name} | {collection.name} | {scores[0]:.4f} | {scores[1]:.4f} | {seconds:.1f} | {len(many):,} |",
                    flush=True,
                )


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("quality", "speed", "static"))
    parser.add_argument("--collection", type=Path, action="append", required=True)
    parser.add_argument("--encoder", type=Path, action="append", default=[])
    parser.add_argument("--tokenizer", type=Path)
    parser.add_argument("--texts", type=int, default=100_000)
    given = parser.parse_args()
    torch.set_num_threads(1)
    if given.what == "quality":
        quality(given.collection, given.encoder)
    elif given.what == "speed":
        speed(given.collection, given.tokenizer)
    else:
        static(given.collection, given.encoder, given.texts)


if __name__ == "__main__":
    main()
