"""`realmctl report`: write one HTML page about runs."""

from __future__ import annotations

from pathlib import Path

from realmctl.artifacts.place import require_place
from realmctl.errors import ConfigError, require_package
from realmctl.pipeline import InWorkspace, Show, argument, output, reads, setting


class Report(InWorkspace):
    """Write one HTML file: curves over steps, the step at which each question fails, and the evidence of each answer.

    The file needs no network.
    """

    runs: tuple[Path, ...] = argument(
        "Models, scores or other training artifacts, or folders of them. Default: the workspace.", default=()
    )
    blocks: Path | None = reads(
        "blocks",
        help="Blocks to search for answers. Default: the blocks of the scores, if they are in the workspace.",
        explicit_only=True,
        default=None,
    )
    questions: int = setting("Largest number of questions to show for each scores artifact.", default=200, at_least=0)
    out: Path = output("HTML file to write.", default=Path("report.html"), short="-o")

    def run(self, show: Show) -> None:
        if self.out.is_dir():
            raise ConfigError(f"--out {self.out} is a folder. Name an HTML file, such as {self.out / 'report.html'}.")
        require_place(self.out, f"--out {self.out}")
        for package in ("jinja2", "matplotlib"):
            require_package(package, "report", "realmctl report")
        from realmctl.extras.report import page

        written = page.write(
            list(self.runs) or [self.workspace],
            self.out,
            blocks=self.blocks,
            workspace=self.workspace,
            questions=self.questions,
        )
        show(written, lambda value: value.report)
