"""How much is hashed again before it is used: the environment variable REALMCTL_VERIFY.

Manifests, names, types and sizes of files are checked at every open, whatever the policy, and so are the hashes of checkpoints,
snapshots and refreshed indexes that training continues from.
"""

from __future__ import annotations

import os
from enum import StrEnum

from realmctl.errors import ConfigError

VARIABLE = "REALMCTL_VERIFY"
FOUND_BYTES = 2**30
"""With `standard`, a version that makes a run unnecessary is hashed if it is not larger than this (1 GiB, about a second)."""


class Verification(StrEnum):
    """What is hashed in addition.

    quick: nothing. standard: the inputs of a stage that runs, and a version up to 1 GiB that makes a run unnecessary. full: every
    artifact that is opened, at its first opening in a process, and versions of any size.
    """

    QUICK = "quick"
    STANDARD = "standard"
    FULL = "full"


def verification() -> Verification:
    """Return the policy of this process. Raises ConfigError when REALMCTL_VERIFY has another value."""
    value = os.environ.get(VARIABLE) or Verification.STANDARD
    try:
        return Verification(value)
    except ValueError:
        raise ConfigError(f"{VARIABLE}={value}: use {', '.join(Verification)}.") from None
