"""The forecast of the paper's run that the page quotes is the one that `realmctl plan` prints."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.conftest import Command

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "reproduce-realm.md"


def test_the_device_hours_are_those_of_plan(realmctl: Command) -> None:
    _, printed, _ = realmctl("plan", "--as-of-paper", "--json")
    plans = json.loads(printed)["plans"]
    forecast = {plan["devices"]: round(sum(stage["device_hours"] for stage in plan["stages"])) for plan in plans}
    rows = re.findall(r"^\| (\d+) H100 \| ([\d,]+) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert {int(devices): int(hours.replace(",", "")) for devices, hours in rows} == forecast
