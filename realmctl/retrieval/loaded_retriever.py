"""A retriever: texts in, vectors out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from realmctl.artifacts import Artifact
from realmctl.errors import ConfigError
from realmctl.models.inputs import Collator
from realmctl.models.precision import pick_device
from realmctl.models.retriever import Retriever
from realmctl.pipeline import resolve
from realmctl.pipeline.fields import check_precision
from realmctl.retrieval.blocks import ArtifactLike, BlocksLike, with_blocks
from realmctl.retrieval.embedding.embedding import embed_questions, embed_titles_and_bodies
from realmctl.retrieval.loaded_index import LoadedIndex
from realmctl.retrieval.search.dense import DenseSearcher
from realmctl.retrieval.search.text_search import QUESTIONS_AT_ONCE, TextSearch, require_texts
from realmctl.tokens.tokenizer import Tokenizer


class LoadedRetriever:
    """A query encoder and a block encoder. The inner product of a query's and a block's vector ranks blocks.

    `module` is the PyTorch module, in evaluation mode.

    Examples:
        >>> retriever = realmctl.load_retriever("artifacts/retriever")
        >>> queries = retriever.encode_queries(["Who wrote it?"])
        >>> queries @ retriever.encode_blocks(["Emma"], ["Emma is a novel by Jane Austen."]).T
    """

    def __init__(self, artifact: Artifact, module: Retriever, precision: str) -> None:
        self.artifact, self.module, self.precision = artifact, module, precision
        self._words = Tokenizer.load(artifact.path)
        self._collator = Collator.of(self._words)

    @classmethod
    def open(cls, path: Path | str | Artifact, *, device: str = "auto", precision: str = "auto") -> LoadedRetriever:
        """Open a retriever, or the retriever of a model.

        Args:
            path: a series, a version or an open artifact.
            device: auto, cpu or cuda:N.
            precision: arithmetic of the encoders: fp32, bf16, or auto for bf16 where it is faster.

        Raises:
            InputError: a file is missing or damaged.
            MismatchError: the artifact is of another kind.
        """
        check_precision(precision)
        artifact = resolve(path, ("retriever",))
        return cls(artifact, Retriever.load(artifact.path).to(pick_device(device)), precision)

    @property
    def dimension(self) -> int:
        """Width D of the vectors."""
        return self.module.projection

    def encode_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the vectors of n questions or sentences, float32 [n, D].

        A text of over 510 wordpieces is cut, or of what the encoder has positions for.

        Raises ConfigError for what is not a list of texts.
        """
        require_texts(texts)
        return embed_questions(
            self.module,
            self._collator,
            self._words.tokens(texts),
            precision=self.precision,
            batch_size=QUESTIONS_AT_ONCE,
        )

    def encode_blocks(self, titles: Sequence[str], texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the vectors of n blocks, float32 [n, D]; a text is cut where title and text exceed the block length.

        Raises:
            ConfigError: there are not as many titles as texts, or these are not lists of texts.
            MismatchError: the retriever was fine-tuned and has no block encoder.
        """
        for given in (titles, texts):
            require_texts(given)
        if len(titles) != len(texts):
            raise ConfigError(
                f"encode_blocks received {len(titles)} titles and {len(texts)} texts. Pass as many titles as texts."
            )
        if not len(titles):
            return np.empty((0, self.dimension), np.float32)
        return embed_titles_and_bodies(
            self.module, self._collator, self._words.tokens(titles), self._words.tokens(texts), precision=self.precision
        )

    def with_index(self, index: ArtifactLike | LoadedIndex, *, blocks: BlocksLike | None = None) -> TextSearch:
        """Return a text search with this retriever over an index.

        Args:
            index: an index that was built with this retriever; of a series the newest one.
            blocks: the blocks of the index; by default the series `blocks` beside the index.

        Raises:
            InputError: no blocks are named, and none are found beside the index.
            MismatchError: index, retriever and blocks do not belong together.
        """
        named = index.artifact if isinstance(index, LoadedIndex) else index
        made, held, _ = with_blocks("index", named, blocks, retriever=self.artifact)
        device = str(next(self.module.parameters()).device)
        searcher = DenseSearcher(self.artifact, made, held, device, self.precision)
        return TextSearch(searcher, searcher.corpus)

    def __repr__(self) -> str:
        return f"<retriever of width {self.dimension} at {self.artifact.path}>"
