"""`realmctl score`: files of predictions, also of other programs, beside questions with answers."""

OFFERS = {
    "realmctl.commands": {"score": "realmctl.extras.score.command:Score"},
    "realmctl.groups": {"score": "Questions and answers"},
}
