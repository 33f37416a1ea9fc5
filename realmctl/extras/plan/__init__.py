"""`realmctl plan`: what a run will take on this machine, and how old its index will be."""

OFFERS = {
    "realmctl.commands": {
        "plan": "realmctl.extras.plan.command:Plan",
    },
}
