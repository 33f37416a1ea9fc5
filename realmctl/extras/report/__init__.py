"""`realmctl report`: one HTML page of a run. `realmctl compare` and `run --sweep`: runs beside each other, as a table."""

OFFERS = {
    "realmctl.commands": {
        "report": "realmctl.extras.report.command:Report",
        "compare": "realmctl.extras.report.compare_command:Compare",
    },
    "realmctl.options.run": {
        "sweep": "realmctl.extras.report.sweep:SweepOptions",
    },
    "realmctl.groups": {
        "compare": "Runs and artifacts",
    },
}
