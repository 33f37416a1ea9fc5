"""`realmctl export --push`: upload an exported folder to the Hugging Face hub."""

from __future__ import annotations

import re
from pathlib import Path

import huggingface_hub

from realmctl.errors import ConfigError, ResourceError, one_line

REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")


def check_repository(name: str) -> None:
    """Raise ConfigError unless `name` is OWNER/NAME."""
    if not REPOSITORY.fullmatch(name) or ".." in name:
        raise ConfigError(f"--push {name}: write OWNER/NAME, the account and the name of a repository on the hub.")


def push(folder: Path, repository: str) -> str:
    """Upload the files of a folder in one commit, and return the address of the repository.

    A repository that does not exist is made, as a private one. The token is the one that `hf auth login` keeps.

    Raises:
        ResourceError: The hub cannot be reached or refuses. The folder stays.
    """
    hub = huggingface_hub.HfApi()
    try:
        address = hub.create_repo(repository, private=True, exist_ok=True)
        hub.upload_folder(repo_id=repository, folder_path=folder, commit_message="Upload by realmctl export")
    except Exception as error:  # the network, a proxy or the hub may raise anything
        raise ResourceError(
            f"{folder} is written, but could not be pushed to {repository} ({one_line(error)}). Check the network and the login "
            f"(hf auth login), then upload it: hf upload {repository} {folder}."
        ) from None
    return str(address)
