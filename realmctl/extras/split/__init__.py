"""`realmctl split`: questions into training and dev, as ORQA splits them."""

OFFERS = {
    "realmctl.commands": {"split": "realmctl.extras.split.command:Split"},
    "realmctl.groups": {"split": "Questions and answers"},
}
