"""`realmctl demo`: the whole pipeline on a generated miniature world."""

OFFERS: dict[str, dict[str, str]] = {
    "realmctl.commands": {
        "demo": "realmctl.extras.demo.command:demo",
    },
}
