"""Other projects' files: checkpoints of REALM into artifacts, and artifacts into the forms that others read."""

OFFERS = {
    "realmctl.commands": {
        "import": "realmctl.extras.hub.import_command:Import",
        "export": "realmctl.extras.hub.export_command:Export",
    },
}
