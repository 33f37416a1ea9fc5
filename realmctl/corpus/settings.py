"""The settings of a corpus: how its files are read, and how its documents are cut into blocks."""

from __future__ import annotations

from typing import Literal

from realmctl.artifacts import Artifact
from realmctl.corpus.languages import AUTO, check_language
from realmctl.corpus.sentences import check_splitter
from realmctl.errors import ConfigError
from realmctl.pipeline import Settings, help_texts, setting
from realmctl.registry import Registry

DELIMITER_NAMES = {"auto": "", "tab": "\t", "\\t": "\t"}

FORMAT_NAMES = Registry(
    "format",
    group="realmctl.formats",
    core=dict.fromkeys(
        [
            "dump",
            "wikiextractor",
            "json-lines",
            "squad",
            "dpr",
            "table",
            "ms-marco",
            "parquet",
            "doc-text",
            "trec",
            "text",
        ],
        "realmctl.corpus.formats.detect:FORMATS",
    ),
)
"""The formats of a corpus by name. `formats/detect.py` has those of the core."""
CUTTERS = Registry("cutter", group="realmctl.cutters", core={"sentences": "realmctl.corpus.blocks:BlockPacker"})


def check_delimiter(flag: str, value: str) -> None:
    """Check that a delimiter is one character or has a name. Raises ConfigError."""
    if (len(value) != 1 and value not in DELIMITER_NAMES) or value in '"\r\n':
        raise ConfigError(f"{flag} {value!r}: write one character, such as ';', or the word tab.")


def check_keep_fields(flag: str, value: str) -> None:
    """Check that names are separated by commas. Raises ConfigError."""
    names = [name.strip() for name in value.split(",")] if value else []
    if not all(names) or len({*names}) < len(names):
        raise ConfigError(f"{flag} {value!r}: write names with commas between them, each once, such as date,source.")


class CorpusSettings(Settings):
    """How the files of a corpus are read."""

    format: str = setting(
        "Format of the corpus files; auto detects it.", default="auto", choices=lambda: ["auto", *FORMAT_NAMES.names()]
    )
    id_field: str = setting(help_texts.ID_FIELD, default="", advanced=True)
    title_field: str = setting(help_texts.TITLE_FIELD, default="", advanced=True)
    text_field: str = setting(help_texts.TEXT_FIELD, default="", advanced=True)
    keep_fields: str = setting(help_texts.KEEP_FIELDS, default="", check=check_keep_fields)
    delimiter: str = setting(
        "What separates the columns of a table: a character or the word tab. auto: what its header shows.",
        default="auto",
        check=check_delimiter,
        advanced=True,
    )
    bad_files: Literal["fail", "skip"] = setting(
        "What happens with a file that cannot be read. skip: it is set aside and listed.",
        default="fail",
    )
    keep_lists: bool = setting(
        "Keep pages of a Wikipedia dump, or of WikiExtractor, whose title begins with List of, Index of or Outline of.",
        default=False,
        advanced=True,
    )

    language: str = setting(
        "Language of the text: the code under which it has a Wikipedia, such as ko, or und for several. auto: what the first file says if it is a dump, or else en.",
        default=AUTO,
        check=check_language,
    )

    @property
    def kept_fields(self) -> tuple[str, ...]:
        """The names in `keep_fields`."""
        return tuple(name.strip() for name in self.keep_fields.split(",") if name.strip())

    @property
    def column_delimiter(self) -> str:
        """What separates the columns of a table; empty where its header shows it."""
        return DELIMITER_NAMES.get(self.delimiter, self.delimiter)


def language_of(blocks: Artifact) -> str:
    """Return the language in which blocks were cut. Blocks that were imported are English."""
    return str(blocks.metrics.get("language", "en"))


class ChunkSettings(CorpusSettings):
    """How documents are read, cleaned and cut into blocks. `chunk` decides it, and `revise` does alike."""

    max_wordpieces: int = setting(
        "Longest block in wordpieces, [CLS], two [SEP] and the title included.", default=288, at_least=32
    )
    cutter: str = setting(
        "What cuts documents into blocks. sentences: as many whole sentences as fit (ORQA).",
        default="sentences",
        choices=CUTTERS.names,
        advanced=True,
    )
    long_sentences: Literal["split", "keep"] = setting(
        "What happens to a sentence longer than a block. split: it is cut. keep: it becomes a block that is too long.",
        default="split",
        advanced=True,
    )
    long_titles: Literal["cut", "keep"] = setting(
        "What happens to a title longer than half a block. cut: it is shortened. keep: each sentence becomes a block of its own.",
        default="cut",
        advanced=True,
    )
    keep_passages: bool = setting(
        "The corpus is cut already: each document, or each paragraph of a SQuAD file, is one block. A longer one loses the sentences that do not fit.",
        default=False,
        advanced=True,
    )
    sentence_splitter: str = setting(
        "Sentence splitter: rules, spacy, or punkt:FOLDER for NLTK's with a model such as nltk_data's punkt_tab/english.",
        default="rules",
        check=check_splitter,
        advanced=True,
    )
    lowercase: bool = setting(
        "Lower-case the text. Only for a tokenizer that is trained here.", default=True, advanced=True
    )
