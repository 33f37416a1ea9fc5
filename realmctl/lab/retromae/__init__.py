"""An encoder's warm start by RetroMAE (Xiao et al. 2022) or DupMAE."""

OFFERS: dict[str, dict[str, str]] = {
    "realmctl.stages": {
        "retromae-init": "realmctl.lab.retromae.retromae_init:RetromaeInit",
    },
}
