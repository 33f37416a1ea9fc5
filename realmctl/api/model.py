"""A pre-trained model: text search, and masks filled with retrieved blocks."""

from __future__ import annotations

from pathlib import Path

from realmctl.api.blocks import BlocksLike, blocks_for
from realmctl.api.index import LoadedIndex
from realmctl.api.retriever import LoadedRetriever
from realmctl.api.search import TextSearch
from realmctl.artifacts import Artifact
from realmctl.models.reader import Reader
from realmctl.pipeline import resolve
from realmctl.retrieval.answering.mask_filling import FilledSentence, fill_masks
from realmctl.retrieval.search.dense import DenseSearcher


class LoadedModel(TextSearch):
    """A model made by `pretrain`: retriever, reader and index. It retrieves blocks for a text and fills masks.

    `retriever` and `index` are loaded parts, `reader` is the PyTorch module that fills masks, `blocks` are the texts.

    Examples:
        >>> model = realmctl.load("artifacts/model")
        >>> model.search("Who wrote it?", k=5)[0].title
        >>> model.fill_mask("The capital of [MASK] is Paris.").with_retrieval[0].wordpiece
    """

    def __init__(self, artifact: Artifact, searcher: DenseSearcher, reader: Reader) -> None:
        super().__init__(searcher)
        self.artifact, self.reader, self._dense = artifact, reader, searcher
        self.retriever = LoadedRetriever(artifact.part("retriever"), searcher.retriever, searcher.precision)
        self.index = LoadedIndex(artifact.part("index"), searcher.index)

    @classmethod
    def open(
        cls,
        path: Path | str | Artifact,
        *,
        blocks: BlocksLike | None = None,
        device: str = "auto",
        precision: str = "auto",
    ) -> LoadedModel:
        """Open a pre-trained model with its blocks.

        Args:
            path: a series, a version or an open artifact.
            blocks: the blocks that its index was built from; by default the series `blocks` beside the model's series.
            device: auto, cpu or cuda:N.
            precision: arithmetic of the encoders and the reader: fp32, bf16, or auto for bf16 where the hardware has it.

        Raises:
            InputError: a file is missing or damaged, or no blocks are named and none are found.
            MismatchError: the artifact is of another kind, or its index was built from other blocks.
        """
        artifact = resolve(path, ("model",))
        searcher = DenseSearcher(
            artifact.part("retriever"), artifact.part("index"), blocks_for(artifact, blocks), device, precision
        )
        return cls(artifact, searcher, Reader.load(artifact.part("reader").path).to(searcher.device))

    def fill_mask(self, sentence: str, candidates: int = 8) -> FilledSentence:
        """Fill every [MASK] of a sentence: without retrieval, with it, and with each candidate alone (REALM, table 3).

        Args:
            sentence: text with one or more [MASK].
            candidates: how many documents are read, the null document included.

        Returns:
            The likeliest wordpiece at each mask with its probability, and p(z|x) of each candidate. `row` of a candidate
            leads to its text, `model.blocks[row]`; it is None for the null document.

        Raises:
            ConfigError: the sentence has no mask or is too long, or there are fewer than two candidates.
        """
        return fill_masks(self._dense, self.reader, sentence, candidates)

    def __repr__(self) -> str:
        return f"<model over {len(self.blocks)} blocks at {self.artifact.path}>"
