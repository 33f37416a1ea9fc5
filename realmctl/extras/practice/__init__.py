"""Reading practice: `mlm-init --spans` teaches a small reader to copy from a block, which masked blocks alone do not teach within minutes."""

OFFERS = {
    "realmctl.options.mlm-init": {
        "practice": "realmctl.extras.practice.options:PracticeOptions",
    },
}
