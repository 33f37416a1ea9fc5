"""A run of REALM pre-training: its time, its index and refresher, the steps of `realm.py`, what watches them, and what is written."""

from __future__ import annotations

import json
from typing import Any

from realmctl.artifacts import Artifact, Writer
from realmctl.execution import processes
from realmctl.index.index_type import open_index
from realmctl.models.precision import pick_device
from realmctl.models.retriever import Retriever
from realmctl.retrieval.embedding.embedding import try_to_embed
from realmctl.retrieval.embedding.settings import EmbedSettings
from realmctl.training.budget import within_minutes
from realmctl.training.evaluation.on_cloze import ClozeQueries, train_on_cloze
from realmctl.training.index_shards import open_own_shard
from realmctl.training.loop import trained_weights
from realmctl.training.monitoring.pretrain_watch import PretrainWatch
from realmctl.training.names import NEVER, OBJECTIVES
from realmctl.training.realm import RealmObjective
from realmctl.training.refresh.index_in_use import (
    IndexInUse,
    IndexRenewal,
    publish_retriever_and_index,
    refreshed_index,
)
from realmctl.training.settings.pretrain import PretrainSettings


def pretrain(settings: PretrainSettings, out: Writer) -> dict[str, Any]:
    """Pre-train retriever and reader together, and write both to `out`, with the index of the trained retriever. Returns metrics."""
    retriever = Retriever.load(settings.retriever.path, settings.dropout)
    objective = OBJECTIVES.load(settings.objective, RealmObjective)
    settings = _within_minutes(settings, retriever, out, objective)
    with refreshed_index(settings, out, "snapshot-queries" in settings.official) as in_use:
        realm = objective(settings, retriever, in_use)
        watch = PretrainWatch(realm)
        observers = [IndexRenewal(in_use, retriever), watch]
        metrics = train_on_cloze(
            realm, retriever, settings, settings.blocks, out, "pretrain", observers, chance=realm.chance
        )
    if not processes.is_first():  # the first process embeds the blocks with the trained retriever
        return metrics
    with trained_weights(settings, out, "pretrain"):
        index = publish_retriever_and_index(settings, out, retriever, metrics.get("kept_step", metrics["steps"]))
        last = _last_measures(watch, settings, index, out, metrics["steps"])
    realm.reader.save(out)
    counts = {**metrics["alarms"], **watch.alarms.counts}
    return {**metrics, **last, "refreshes": in_use.refreshes, "alarms": counts}


def _within_minutes(
    settings: PretrainSettings, retriever: Retriever, out: Writer, objective: type[RealmObjective]
) -> PretrainSettings:
    """The settings with the steps that fit into the minutes. What is timed has an index of its own, so the run's own knows nothing of it."""
    if settings.seconds is None:
        return settings
    opener = open_own_shard if settings.index_shards else open_index

    def timed() -> RealmObjective:
        in_use = IndexInUse(settings.index, str(pick_device(settings.device)), opener=opener)
        return objective(settings, retriever, in_use)

    def refreshes() -> float:
        where = settings.device if settings.refresh == "inline" else settings.refresh_device
        elsewhere = where == "elsewhere" or pick_device(where) != pick_device(settings.device)
        if settings.refresh == NEVER or elsewhere:
            return 0.0
        embed = EmbedSettings(device=settings.device, precision=settings.precision)
        return try_to_embed(settings.blocks, settings.retriever, embed).seconds / settings.refresh_every

    def measure() -> object:
        return asked.ranks(retriever) if asked else None

    asked = ClozeQueries.drawn(settings, settings.blocks) if settings.cloze_recall else None
    return within_minutes(settings, out, "pretrain", timed, measure if asked else None, refreshes)


def _last_measures(
    watch: PretrainWatch, settings: PretrainSettings, index: Artifact, out: Writer, step: int
) -> dict[str, float]:
    """Measure the trained retriever with its index, and append the numbers, if any, to metrics.jsonl, and to what shows them."""
    found = watch.published(index)
    if not found:
        return {}
    line = {"step": step, **found}
    with settings.curves("pretrain", out) as curves:
        curves.begin(step, out.file("metrics.jsonl"))
        curves.add(line)
    with out.file("metrics.jsonl").open("a", encoding="utf-8") as log:
        log.write(json.dumps(line) + "\n")
    return found
