"""Other projects' files: encoders, checkpoints of REALM and tables into artifacts, and artifacts into the forms that others read."""

OFFERS = {
    "realmctl.stages": {
        "import": "realmctl.extras.hub.import_encoder:Import",
    },
    "realmctl.commands": {
        "import-realm": "realmctl.extras.hub.import_command:ImportRealm",
        "import-table": "realmctl.extras.hub.import_command:ImportTable",
        "export": "realmctl.extras.hub.export_command:Export",
    },
}
