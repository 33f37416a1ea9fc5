"""`realmctl serve`: models in a browser, over HTTP and MCP."""

OFFERS: dict[str, dict[str, str]] = {
    "realmctl.commands": {
        "serve": "realmctl.extras.serve.command:serve",
    },
}
