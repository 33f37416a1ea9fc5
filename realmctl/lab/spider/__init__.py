"""Recurring spans as a warm start of a retriever (Spider, Ram et al. 2022).

Why it is here: alone it finds as much as the inverse cloze task, and it needs no sentences of its own (docs/lab/starts.md).
"""

OFFERS = {
    "realmctl.presets": {
        "spider": "realmctl.lab.spider.settings:PRESET",
    },
    "realmctl.stages": {
        "spider-init": "realmctl.lab.spider.spider_init:SpiderInit",
    },
}
