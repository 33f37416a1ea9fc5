"""`realmctl compare`: the runs of a sweep as a table."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from realmctl.artifacts import catalogue
from realmctl.cli import available_stages
from realmctl.extras.report.comparing import compare as compare_runs
from realmctl.extras.report.comparing import comparison_csv, comparison_text, runs_at
from realmctl.pipeline import InWorkspace, Show, argument, help_texts, setting
from realmctl.pipeline.comparing import known_in


class Compare(InWorkspace):
    """Print a table of runs: the settings that vary, and the most important numbers.

    Runs that differ in their seed alone are one row, with the mean of each number and its 95 % confidence interval. If the
    runs read different artifacts, the settings of those are compared too: model.lr is the setting lr of the model.
    """

    series: tuple[Path, ...] = argument("Series, versions, or folders of series.", completes=True)
    format: Literal["text", "csv"] = setting(help_texts.TABLE_FORM, default="text")

    def run(self, show: Show) -> None:
        runs = runs_at([catalogue.in_workspace(one, self.workspace) for one in self.series])
        known = known_in([self.workspace, *(run.path.parent.parent for run in runs)])
        headlines = {name: stage.headline for name, stage in available_stages.available_stages().items()}
        tables = compare_runs([(str(run.path), run.manifest) for run in runs], known, headlines)
        as_text = comparison_csv if self.format == "csv" else comparison_text
        show({"tables": tables}, lambda _: as_text(tables))
