"""Recurring spans as a warm start of a retriever (Spider, Ram et al. 2022)."""

OFFERS: dict[str, dict[str, str]] = {
    "realmctl.stages": {
        "spider-init": "realmctl.lab.spider.spider_init:SpiderInit",
    },
}
