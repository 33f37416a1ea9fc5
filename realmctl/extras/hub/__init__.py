"""Other projects' files: checkpoints of REALM into artifacts, and artifacts into the forms that others read."""

OFFERS = {
    "realmctl.commands": {
        "import": "realmctl.extras.hub.import_command:import_",
        "export": "realmctl.extras.hub.export_command:export",
    },
}
