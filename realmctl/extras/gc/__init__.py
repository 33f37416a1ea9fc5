"""`realmctl gc`: delete versions that nothing needs."""

OFFERS = {
    "realmctl.commands": {
        "gc": "realmctl.extras.gc.command:Gc",
    },
    "realmctl.groups": {"gc": "Runs and artifacts"},
}
