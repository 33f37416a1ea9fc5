"""An encoder's warm start by RetroMAE (Xiao et al. 2022) or DupMAE.

Why it is here: it is the masked autoencoder that people compare Condenser with. On documents of a field it gains and loses where the inverse cloze task
does (docs/results/adapt.md).
"""

OFFERS = {
    "realmctl.presets": {
        "retromae": "realmctl.lab.retromae.settings:PRESET",
    },
    "realmctl.stages": {
        "retromae-init": "realmctl.lab.retromae.retromae_init:RetromaeInit",
    },
}
