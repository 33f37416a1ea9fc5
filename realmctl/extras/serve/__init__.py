"""`realmctl serve`: models in a browser, over HTTP and MCP."""

OFFERS = {
    "realmctl.commands": {
        "serve": "realmctl.extras.serve.command:Serve",
    },
    "realmctl.groups": {"serve": "Questions and answers"},
}
