"""`realmctl run`: make the outputs of a YAML pipeline."""

from __future__ import annotations

from realmctl.cli.pipeline_run import PipelineRun
from realmctl.pipeline import extended


@extended("run")
class Run(PipelineRun):
    """Make the outputs of a YAML pipeline in the order of their inputs. Outputs that exist are skipped.

    With --jobs, stages that do not need each other run at the same time. After a failure no other stage is started, and
    the running stages finish.
    """
