"""`realmctl doctor`: what a bug report needs of the installation and the machine."""

OFFERS = {
    "realmctl.commands": {
        "doctor": "realmctl.extras.doctor.command:Doctor",
    },
    "realmctl.groups": {"doctor": "First look"},
}
