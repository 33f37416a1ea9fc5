"""Initial weights that need no training: a projection by PCA, and a masked-language-model head by ridge regression.

Both are computed from the states of a sample of blocks. Blocks are drawn with the run's seed.
"""

from __future__ import annotations

import time

import numpy as np
import torch
from numpy.typing import NDArray

from realmctl.artifacts import Writer
from realmctl.corpus.corpus import Corpus
from realmctl.errors import InputError
from realmctl.execution import processes
from realmctl.execution.batches import batched
from realmctl.lab.closed_form.pca import pca_projection, require_enough
from realmctl.lab.closed_form.ridge_head import set_ridge_head
from realmctl.log import progress
from realmctl.models.bert.modules import Encoder
from realmctl.models.encoder import hidden_states
from realmctl.models.families.known import mlm_logits
from realmctl.models.inputs import Collator
from realmctl.models.precision import autocast, pick_device
from realmctl.models.retriever import Retriever
from realmctl.pipeline.trying import TrialWriter
from realmctl.retrieval.embedding.embedding import spread
from realmctl.retrieval.embedding.embedding_file import EmbeddingFile
from realmctl.training.data.draws import Stream, generator
from realmctl.training.settings.base import TrainSettings
from realmctl.training.settings.retriever import RetrieverTrainingSettings
from realmctl.training.starts.fitted import FittedHead, FittedProjection

PCA_BLOCKS = 16_384
"""PCA is fitted to the pooled vectors of all blocks, or of a random sample of this size where there are more."""
RIDGE_BLOCKS = 256
"""Blocks whose tokens the head is fitted to."""
COUNTED_BLOCKS = 8192
"""Blocks whose wordpieces are counted for the head's bias."""
DECODED_TOKENS = 1024
"""Tokens of the sample on which the fitted head is evaluated."""
BATCH = 32
TRIAL_SECONDS = 2.0
MEASURED_BATCHES = 16
"""A trial of PCA embeds so many batches, or for so long."""


class Pca(FittedProjection):
    """The principal components of the pooled vectors of the blocks."""

    @torch.no_grad()
    def fit(
        self, retriever: Retriever, corpus: Corpus, collator: Collator, settings: RetrieverTrainingSettings, out: Writer
    ) -> None:
        where = pick_device(settings.device)
        retriever.to(where).eval()
        tower = retriever.block_tower or retriever.query_tower
        rows = _sample(corpus, PCA_BLOCKS, settings.seed)
        rows = rows[np.argsort(corpus.lengths[rows], kind="stable")]  # batches of similar lengths need little padding
        width = int(tower.bert.config.hidden_size)
        require_enough(len(rows), width, retriever.projection)

        def pooled(batch: NDArray[np.int64]) -> NDArray[np.float32]:
            titles, bodies = [corpus.title(row) for row in batch], [corpus.tokens(row) for row in batch]
            with autocast(where, settings.precision):
                vectors = tower.pool(collator.block(titles, bodies, retriever.block_length).to(where))
            found: NDArray[np.float32] = vectors.float().cpu().numpy()
            return found

        starts = spread(range(0, len(rows), BATCH))
        if isinstance(out, TrialWriter):
            begin, measured = time.monotonic(), 0
            for start in starts[:MEASURED_BATCHES]:
                pooled(rows[start : start + BATCH])
                measured += 1
                if time.monotonic() - begin >= TRIAL_SECONDS:
                    break
            out.left_out += (time.monotonic() - begin) * (len(starts) / measured - 1)
            retriever.start_projection(scale=settings.scale)
            return
        # Only the first process may write into the scratch folder; that of another is its own.
        kept = out.scratch("pooled") if processes.is_first() else out.path
        path = kept / "pooled.npy"
        with (
            EmbeddingFile(path, kept / "done.jsonl", len(rows), width, "float32") as file,
            progress(len(rows), "fitting the projection", "blocks") as bar,
        ):
            done = file.done()
            bar.skip(sum(stop - start for start, stop in done))
            for start in starts:
                batch = rows[start : start + BATCH]
                if (start, start + len(batch)) not in done:
                    file.write(start, pooled(batch))
                    bar.advance(len(batch))
        weight_DH, bias_D = pca_projection(torch.from_numpy(np.load(path, allow_pickle=False)), retriever.projection)
        retriever.start_projection(scale=settings.scale, weight_DH=weight_DH, bias_D=bias_D)


class RidgeHead(FittedHead):
    """A head by ridge regression on unmasked blocks, cut to the length of the training."""

    @torch.no_grad()
    def fit(self, mlm: Encoder, corpus: Corpus, collator: Collator, settings: TrainSettings, length: int) -> float:
        where = pick_device(settings.device)
        mlm.to(where).eval()
        rows = _sample(corpus, RIDGE_BLOCKS, settings.seed)
        states, wordpieces = [], []
        with autocast(where, settings.precision):
            for batch in batched(rows, BATCH):
                packed = collator.query([corpus.tokens(row) for row in batch], length)
                special_BL = torch.isin(packed.ids_BL, torch.tensor(sorted(collator.frame.ids)))
                visible_BL = packed.mask_BL & ~special_BL
                states.append(hidden_states(mlm.base_model, packed.to(where)).float().cpu()[visible_BL])
                wordpieces.append(packed.ids_BL[visible_BL])
        state_TH, wordpiece_T = torch.cat(states), torch.cat(wordpieces)
        if not len(wordpiece_T):
            raise InputError(
                f"{corpus.artifact} holds no wordpieces, so no head can be fitted to it. Chunk a corpus with text."
            )
        counts = np.zeros(mlm.config.vocab_size, np.int64)
        for row in _sample(corpus, COUNTED_BLOCKS, settings.seed):
            counts += np.bincount(corpus.tokens(row), minlength=len(counts))
        set_ridge_head(mlm, state_TH, wordpiece_T, torch.from_numpy(counts))
        decoded_T = mlm_logits(mlm, state_TH[:DECODED_TOKENS].to(where)).argmax(1).cpu()
        return float((decoded_T == wordpiece_T[:DECODED_TOKENS]).double().mean())


def _sample(corpus: Corpus, most: int, seed: int) -> NDArray[np.int64]:
    """Return at most `most` rows, drawn without replacement, in rising order."""
    count = len(corpus)
    return np.sort(generator(seed, Stream.SAMPLED_BLOCKS).permutation(count)[:most])
