"""The short name of the room `realmctl.extras.integrations`: `from realmctl.integrations.langchain import Retriever`."""

from pathlib import Path

__path__ = [str(Path(__file__).parents[1] / "extras/integrations")]
