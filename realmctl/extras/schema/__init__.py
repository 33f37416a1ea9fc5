"""`realmctl schema`: the JSON Schema of pipeline files, by which editors complete and check them."""

OFFERS = {
    "realmctl.commands": {"schema": "realmctl.extras.schema.command:Schema"},
    "realmctl.groups": {"schema": "Runs and artifacts"},
}
