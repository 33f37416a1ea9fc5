"""The options of `index-docs` and `adapt`: which documents are read, and how."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from realmctl.pipeline import InWorkspace, argument, help_texts, setting, source


class DocumentsSettings(InWorkspace):
    """Which documents are read and how, and the encoder that searches them."""

    computes = True

    documents: Path = argument(help_texts.DOCUMENTS)
    encoder: str | None = source(
        "Folder or hub id of a sentence encoder. " + help_texts.SENTENCE_ENCODER, default=None, hub=True
    )
    language: str = setting(help_texts.LANGUAGE, default="auto")
    bad_files: Literal["fail", "skip"] | None = setting(help_texts.BAD_FILES, default=None)
    id_field: str = setting(help_texts.ID_FIELD, default="", advanced=True)
    title_field: str = setting(help_texts.TITLE_FIELD, default="", advanced=True)
    text_field: str = setting(help_texts.TEXT_FIELD, default="", advanced=True)
    keep_fields: str = setting(help_texts.KEEP_FIELDS, default="")
    max_wordpieces: int | None = setting(help_texts.LONGEST_BLOCK, default=None, at_least=1)

    def variables(self, documents: Path) -> dict[str, str]:
        """The variables of a pipeline file that ships, for these documents on the disk. Of bad files those of a folder are skipped, and a file that is named must be read."""
        names = ("language", "id_field", "title_field", "text_field", "keep_fields", "max_wordpieces")
        return {
            "documents": str(documents),
            "bad_files": self.bad_files or ("skip" if documents.is_dir() else "fail"),
            **{name: str(getattr(self, name) or "") for name in names},
        }
