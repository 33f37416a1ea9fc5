"""`realmctl demo`: the whole pipeline on a generated miniature world."""

OFFERS = {
    "realmctl.commands": {
        "demo": "realmctl.extras.demo.command:Demo",
    },
    "realmctl.groups": {"demo": "First look"},
}
