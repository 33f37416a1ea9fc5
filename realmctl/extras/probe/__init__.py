"""`ask --probe`: what a model's weights alone say about an answer, without any document. A takedown request asks for it."""

OFFERS = {
    "realmctl.options.ask": {
        "probe": "realmctl.extras.probe.options:ProbeOptions",
    },
}
