"""Checks of fields that mean the same in every stage, by the name of the field.

They run when a stage is created. So a wrong `--device` is refused even where the artifact exists and no work is left.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from realmctl.errors import ConfigError
from realmctl.pipeline.fields import flag_of

DEVICE = re.compile(r"auto|cpu|cuda(:[0-9]{1,3})?")


def check_common_fields(values: Mapping[str, Any]) -> None:
    """Check the fields of a stage that many stages have in common. Raises ConfigError.

    Args:
        values: {field name: value} of a stage, with values of the fields' types.
    """
    for name, value in values.items():
        if name in CHECKS and value is not None:
            CHECKS[name](flag_of(name), value)


def check_device(flag: str, value: str) -> None:
    """Check the spelling of a device, without importing torch. Raises ConfigError."""
    if not DEVICE.fullmatch(value):
        raise ConfigError(f"{flag} {value!r} is not a device. Use auto, cpu, cuda or cuda:N.")


def _check_refresh_device(flag: str, value: str) -> None:
    if value != "elsewhere":
        check_device(flag, value)


def _at_least(least: int) -> Callable[[str, int], None]:
    def check(flag: str, value: int) -> None:
        if value < least:
            raise ConfigError(f"{flag} {value} is too small. It must be at least {least}.")

    return check


CHECKS: Mapping[str, Callable[[str, Any], None]] = {
    "device": check_device,
    "refresh_device": _check_refresh_device,
    "seed": _at_least(0),
    "workers": _at_least(0),
    "micro_batch": _at_least(0),
    "max_index_age": _at_least(0),
    "checkpoint_every": _at_least(1),
}
