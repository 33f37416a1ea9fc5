"""kNN-LM on masked spans: a datastore of (state, wordpiece) over a corpus, and its measure on other spans.

Khandelwal et al. (2020) store the state that their language model predicts the next word from. A masked language model
predicts a hidden wordpiece from the state that its decoder reads: the last layer's state at the mask, after the head's dense
layer and layer norm. Two masks with near states have near distributions of the wordpiece, which is what the distance must
mean. The model reads `[CLS] x [SEP] [SEP]`, as REALM's reader does with the null document. So the measure without neighbours
is that reader's log-probability without retrieval.
Legend: M hidden wordpieces of a batch, K neighbours, H width, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from realmctl.artifacts import Artifact, Writer
from realmctl.artifacts.arrays import ArrayAppender, open_array
from realmctl.errors import QualityError
from realmctl.execution.batches import batched, slices
from realmctl.index.build import build
from realmctl.index.exact import ExactIndex
from realmctl.index.index_type import DESCRIPTION_FILE, open_index
from realmctl.index.protocol import Index
from realmctl.index.recall import TOLERANCE
from realmctl.index.settings import IndexSettings
from realmctl.index.vectors import ROWS_PER_CHUNK, VECTORS_FILE, chunks, open_vectors
from realmctl.lab.knn_lm.mixture import Floats, mixed, neighbour_distribution, searched_queries, stored_keys
from realmctl.lab.knn_lm.settings import DatastoreSettings, KnnSettings
from realmctl.log import progress, say
from realmctl.models.encoder import states_at
from realmctl.models.families.known import family_of
from realmctl.models.inputs import Collator, QueryBatch
from realmctl.models.precision import autocast, pick_device
from realmctl.models.reader import Reader
from realmctl.models.weights import require_finite_scores
from realmctl.spans.masking import Salient
from realmctl.spans.tagged_queries import TaggedQueries
from realmctl.tokens.tokenizer import Tokenizer
from realmctl.training.data.draws import Stream, generator
from realmctl.training.starts.encoder import masked_lm_with_head

WORDPIECES, UIDS, SENTENCES = "wordpieces.npy", "uids.npy", "sentences.npy"
KEYS_AT_ONCE = 2**25
"""Numbers of the neighbours' keys that are held at a time: 128 MB."""
SPARE = 64
"""Further neighbours that are fetched to replace those of the query's own block."""


class SpanStates:
    """The states of a masked language model at every hidden wordpiece of every salient span, each span hidden once."""

    def __init__(self, settings: DatastoreSettings | KnnSettings) -> None:
        self.device, self.precision = pick_device(settings.device), settings.precision
        self.reader = Reader(masked_lm_with_head(settings.encoder.path)).to(self.device).eval()
        self.queries = TaggedQueries(settings.spans)
        words = Tokenizer.load(settings.spans.path)
        self.collator, self.masking = Collator.of(words), Salient(words)

    def __len__(self) -> int:
        return len(self.queries.spans)

    @torch.no_grad()
    def batches(self, size: int) -> Iterator[tuple[QueryBatch, Tensor]]:
        """Yield `size` spans at a time, in their order, with the states that predict their hidden wordpieces, float32 [M, H]."""
        rng, nothing = generator(0, Stream.FIXED_QUERIES), np.empty(0, dtype=np.int64)
        for spans in batched(range(len(self)), size):
            asked = [self.queries.query(span, self.collator.mask_id, self.masking, rng) for span in spans]
            tokens = [query.tokens for query in asked]
            packed = self.collator.joint(tokens, [nothing] * len(asked), self.queries.query_length, 2)
            batch = QueryBatch.of(asked, packed, self.collator.frame)
            with autocast(self.device, self.precision):
                state_BMH = states_at(
                    self.reader.mlm.base_model, packed.to(self.device), batch.position_BM.to(self.device)
                )
                state_MH = family_of(self.reader.mlm).transform(
                    self.reader.mlm, state_BMH[batch.hidden_BM.to(self.device)]
                )
            yield batch, state_MH.float()

    def uid_M(self, batch: QueryBatch) -> NDArray[np.uint64]:
        """The uid of the block that each hidden wordpiece comes from."""
        uid_B = self.queries.uid[[query.sentence for query in batch.queries]]
        return np.repeat(uid_B, [query.hidden for query in batch.queries])

    def sentence_M(self, batch: QueryBatch) -> NDArray[np.uint64]:
        """A 64-bit identifier of the sentence of each hidden wordpiece, made from its wordpieces."""
        tokens_B = [self.queries.tokens(query.sentence).astype(np.int32) for query in batch.queries]
        sentence_B = [blake2b(tokens.tobytes(), digest_size=8).digest() for tokens in tokens_B]
        return np.repeat(np.frombuffer(b"".join(sentence_B), np.uint64), [query.hidden for query in batch.queries])


def build_datastore(settings: DatastoreSettings, out: Writer) -> dict[str, Any]:
    """Write the states of all spans and their index. Returns metrics.

    Raises:
        QualityError: The index finds too few of the nearest states.
    """
    states = SpanStates(settings)
    write_datastore(states, out.path, settings.batch_size)
    built = build(out.path, settings.index, device=str(states.device))
    return {**built, "neighbour_recall": require_neighbours(out.path, settings.index, str(states.device))}


def write_datastore(states: SpanStates, folder: Path, batch_size: int) -> int:
    """Write the keys (`vectors.npy`), wordpieces, uids and sentences of all spans in constant memory. Returns their number."""
    width, rows = int(states.reader.mlm.config.hidden_size), 0
    keys = ArrayAppender(folder / VECTORS_FILE, np.float32, width + 1)
    wordpieces = ArrayAppender(folder / WORDPIECES, np.int32)
    uids, sentences = (ArrayAppender(folder / name, np.uint64) for name in (UIDS, SENTENCES))
    with ExitStack() as files, progress(len(states), "build-datastore", "spans") as bar:
        for file in (keys, wordpieces, uids, sentences):
            files.callback(file.close)
        for batch, state_MH in states.batches(batch_size):
            keys.append(stored_keys(state_MH.cpu().numpy()))
            wordpieces.append(batch.target_M.numpy())
            uids.append(states.uid_M(batch))
            sentences.append(states.sentence_M(batch))
            rows += len(state_MH)
            bar.advance(min(batch_size, len(states)))
    _centre_last_column(folder / VECTORS_FILE)
    return rows


def _centre_last_column(path: Path) -> None:
    """Subtract the mean from the last column, which changes no ranking.

    An hnsw graph links rows by their inner product. A large number in the last column of every row would outweigh the
    states there.
    """
    vectors = np.lib.format.open_memmap(path, mode="r+")
    mean = sum(float(part[:, -1].sum(dtype=np.float64)) for _, part in chunks(vectors)) / max(1, len(vectors))
    for part in slices(len(vectors), ROWS_PER_CHUNK):
        vectors[part, -1] -= np.float32(mean)
    vectors.flush()


def require_neighbours(folder: Path, options: IndexSettings, device: str) -> float:
    """Return recall@k of the index for sampled states as queries, beside exact search, by Euclidean distance.

    The gate of every index measures other queries. Raises QualityError below `min_recall`.
    """
    index = open_index(folder, device)
    picked = np.random.default_rng(options.seed).choice(index.count, min(options.recall_sample, index.count), False)
    queries = searched_queries(index.vectors(np.sort(picked))[:, :-1])
    k = max(options.recall_k)
    wanted, _ = ExactIndex(open_vectors(folder / VECTORS_FILE), device).search(queries, k)
    found, _ = index.search(queries, k)
    slack = TOLERANCE * np.abs(wanted).max(initial=0.0)
    recall = float((found >= wanted[:, -1:] - slack).mean())
    say(f"recall@{k} of the nearest states: {recall:.1%}")
    if recall < options.min_recall:
        (folder / DESCRIPTION_FILE).unlink()
        raise QualityError(
            f"The {options.type} index finds only {recall:.1%} of the {k} nearest states, below the floor of "
            f"{options.min_recall:.0%}, so no datastore was made. Use --type exact."
        )
    return recall


class Datastore:
    """A datastore, opened: its index, and the memory-mapped wordpieces, uids and sentences of its rows."""

    def __init__(self, artifact: Artifact, device: torch.device) -> None:
        self.index: Index = open_index(artifact.path, str(device))
        self.wordpieces, self.uids, sentences = map(open_array, map(artifact.file, (WORDPIECES, UIDS, SENTENCES)))
        self._known_uids, self._by_sentence = np.unique(self.uids), np.argsort(sentences, kind="stable")
        self._sentences = sentences[self._by_sentence]

    def own_blocks(self, uid_M: NDArray[np.uint64], sentence_M: NDArray[np.uint64]) -> list[NDArray[np.uint64]]:
        """Return the uids of the blocks that hold each query's sentence: its own, and where the datastore lacks that, those with the same sentence.

        uid_M, sentence_M: from `SpanStates`. The datastore may be of another cut of the documents.
        """
        own_M = [uid_M[place : place + 1] for place in range(len(uid_M))]
        for place in np.flatnonzero(~np.isin(uid_M, self._known_uids)).tolist():
            first, stop = (np.searchsorted(self._sentences, sentence_M[place], side) for side in ("left", "right"))
            own_M[place] = self.uids[self._by_sentence[first:stop]]
        return own_M

    def nearest(self, query_MH: Floats, own_M: Sequence[NDArray[np.uint64]], k: int) -> NDArray[np.int64]:
        """Return the rows of the k nearest states of other blocks, int64 [M, K], the nearest first; -1 where there are fewer.

        own_M: from `own_blocks`. Rows from these blocks, or from copies of them, are left out, as in pre-training.
        """
        rows_MK = np.full((len(query_MH), k), -1, dtype=np.int64)
        searched, short, fetched = searched_queries(query_MH), np.arange(len(query_MH)), k + SPARE
        while len(short):
            _, found = self.index.search(searched[short], fetched)
            for query, rows in zip(short, found, strict=True):
                others = rows[~np.isin(self.uids[rows], own_M[int(query)])][:k]
                rows_MK[query, : len(others)] = others
            if found.shape[1] < fetched:
                break
            short, fetched = short[rows_MK[short, -1] < 0], 4 * fetched
        return rows_MK

    def spread(self, query_MH: Tensor, rows_MK: NDArray[np.int64], temperature: float, vocabulary: int) -> Tensor:
        """Return p_kNN over the vocabulary from these rows, float32 [M, V]."""
        device, known_MK = query_MH.device, np.maximum(rows_MK, 0)
        key_MKH = torch.from_numpy(self.index.vectors(known_MK)[..., :-1]).to(device)
        wordpiece_MK = torch.from_numpy(self.wordpieces[known_MK].astype(np.int64)).to(device)
        found_MK = torch.from_numpy(rows_MK >= 0).to(device)
        return neighbour_distribution(query_MH, key_MKH, wordpiece_MK, found_MK, temperature, vocabulary)


@torch.no_grad()
def measure_knn_lm(settings: KnnSettings) -> dict[str, Any]:
    """Fill every hidden wordpiece with and without the datastore.

    Returns:
        Means over hidden wordpieces: `log_prob`, log p(y|x) in nats, and `accuracy`, of the mixture; `lm_log_prob` and
        `lm_accuracy` of the model alone; `knn_utility`, the difference of the log-probabilities; `knn_coverage`, the share
        of wordpieces that a neighbour has. Counts: `queries`, `wordpieces`. With a share of 1 a wordpiece that no neighbour
        has is impossible: `log_prob` and `knn_utility` are then None.
    """
    states = SpanStates(settings)
    datastore = Datastore(settings.datastore, states.device)
    sums = dict.fromkeys(("log_prob", "accuracy", "lm_log_prob", "lm_accuracy", "knn_coverage"), 0.0)
    count = 0
    with progress(len(states), "eval-knn-lm", "spans") as bar:
        for batch, state_MH in states.batches(settings.batch_size):
            own_M = datastore.own_blocks(states.uid_M(batch), states.sentence_M(batch))
            rows_MK = datastore.nearest(state_MH.cpu().numpy(), own_M, settings.neighbours)
            lm_MV, both_MV, neighbour_MV = _distributions(states, datastore, state_MH, rows_MK, settings)
            target_M = batch.target_M.to(lm_MV.device)
            for prefix, log_prob_MV in (("", both_MV), ("lm_", lm_MV)):
                sums[f"{prefix}log_prob"] += float(log_prob_MV.gather(1, target_M[:, None]).sum())
                sums[f"{prefix}accuracy"] += float((log_prob_MV.argmax(1) == target_M).sum())
            sums["knn_coverage"] += float((neighbour_MV.gather(1, target_M[:, None]) > 0).sum())
            count += len(target_M)
            bar.advance(min(settings.batch_size, len(states)))
    means: dict[str, Any] = {name: total / max(1, count) for name, total in sums.items()}
    means["knn_utility"] = means["log_prob"] - means["lm_log_prob"]
    finite = {name: value if np.isfinite(value) else None for name, value in means.items()}
    return {"queries": len(states), "wordpieces": count, **finite}


def _distributions(
    states: SpanStates, datastore: Datastore, state_MH: Tensor, rows_MK: NDArray[np.int64], settings: KnnSettings
) -> tuple[Tensor, Tensor, Tensor]:
    """Return log p of the model alone and of the mixture, and p of the neighbours, each [M, V]."""
    with autocast(states.device, states.precision):
        logits_MV = family_of(states.reader.mlm).decoder(states.reader.mlm)(state_MH)
    require_finite_scores(logits_MV, f"the reader {settings.encoder}")
    lm_MV = logits_MV.float().log_softmax(-1)
    at_once = max(1, KEYS_AT_ONCE // (rows_MK.shape[1] * datastore.index.dimension))
    parts, vocabulary = slices(len(rows_MK), at_once), lm_MV.shape[1]
    neighbour_MV = torch.cat(
        [datastore.spread(state_MH[part], rows_MK[part], settings.temperature, vocabulary) for part in parts]
    )
    return lm_MV, mixed(lm_MV, neighbour_MV, settings.share), neighbour_MV
