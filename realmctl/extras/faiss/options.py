"""What `build-index --type faiss` adds to the settings of an index."""

from __future__ import annotations

from realmctl.errors import ConfigError
from realmctl.index.settings import IndexSettings
from realmctl.pipeline.fields import setting


class FaissOptions(IndexSettings):
    """What an index of faiss consists of."""

    factory: str | None = setting(
        "faiss: what the index consists of, in the language of faiss.index_factory, such as IVF4096,PQ64.",
        default=None,
        left_out_at=None,
        advanced=True,
    )

    def check_index(self) -> None:
        super().check_index()
        if (self.factory is None) == (self.type == "faiss"):
            raise ConfigError(
                f"--factory {self.factory} belongs to --type faiss, and --type is {self.type}."
                if self.factory
                else "--type faiss needs --factory, such as IVF4096,PQ64: an inverted file of 4096 lists, 64 bytes a vector."
            )
