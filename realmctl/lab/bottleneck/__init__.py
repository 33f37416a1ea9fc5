"""An encoder's warm start in which one vector has to hold the text: Condenser, coCondenser, RetroMAE and DupMAE.

Why it is here: coCondenser was the best start of a retriever in a generated world before REALM pre-training, and no better than ICT after it
(docs/results/starts.md). RetroMAE is the masked autoencoder that people compare it with (docs/results/adapt.md).
"""

OFFERS = {
    "realmctl.presets": {
        "condenser": "realmctl.lab.bottleneck.settings:CONDENSER",
        "cocondenser": "realmctl.lab.bottleneck.settings:COCONDENSER",
        "retromae": "realmctl.lab.bottleneck.settings:RETROMAE",
    },
    "realmctl.stages": {
        "condenser-init": "realmctl.lab.bottleneck.condenser_init:CondenserInit",
        "retromae-init": "realmctl.lab.bottleneck.retromae_init:RetromaeInit",
    },
}
