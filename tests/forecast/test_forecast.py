"""Rows of a forecast against sums by hand, and the paper's run on the devices of the table."""

from dataclasses import replace

import pytest

from realmctl.errors import ConfigError
from realmctl.forecast.chain import PAPER_BLOCKS, paper_chain
from realmctl.forecast.forecast import forecast
from realmctl.forecast.machines import (
    DEVICES,
    NETWORK_BYTES_PER_SECOND,
    UTILISATION,
    Machines,
    device_named,
    named_devices,
)
from realmctl.forecast.sizes import encoder_shape, text_of_blocks
from realmctl.pipeline.discovery import own_stages


def base(bert):
    return encoder_shape("scratch:base", 30_522)


def planned(machines, target=None, **settings):
    chain = tuple(stage.with_settings(**settings) for stage in paper_chain(own_stages(), "scratch:base"))
    return forecast(chain, {"blocks": text_of_blocks(PAPER_BLOCKS, 288)}, machines, base, target)


def row(found, name):
    return next(row for row in found.rows if row.name == name)


def test_the_time_of_a_stage_is_its_work_over_the_speed_of_all_devices():
    found = planned(named_devices(DEVICES["a100-80gb"], 8, 16))
    ict = row(found, "retriever")
    sent = 100_000 * 2 * 7 * 4 * base(None).weights
    assert ict.network_bytes == sent
    by_hand = ict.flops / (8 * 312e12 * UTILISATION["train"]) + sent / 8 / NETWORK_BYTES_PER_SECOND
    assert ict.seconds == pytest.approx(by_hand) and ict.device_hours == pytest.approx(8 * by_hand / 3600)


def test_a_stage_with_one_row_a_step_uses_one_device():
    assert row(planned(named_devices(DEVICES["h100"], 512, 0)), "qa-model").network_bytes == 0


def test_more_devices_shorten_training_and_make_the_index_older():
    few, many = (planned(named_devices(DEVICES["h100"], count, 16)) for count in (8, 512))
    assert row(many, "model").seconds < row(few, "model").seconds
    assert many.ages.mean > few.ages.mean and many.refresh_seconds == few.refresh_seconds


def model_of(devices, refresh_devices, **settings):
    """The forecast, and its row of pre-training."""
    found = planned(named_devices(DEVICES["h100"], devices, refresh_devices), **settings)
    return found, row(found, "model")


def test_a_training_that_never_waits_takes_the_time_of_its_steps_and_counts_all_devices():
    """One step in ten is simulated."""
    alone, without = model_of(8, 0, refresh="never")
    many, beside = model_of(8, 64)
    assert alone.ages is alone.refresh_seconds is None and many.ages.waited_seconds == 0
    assert beside.seconds == pytest.approx(without.seconds, rel=1e-2)
    assert without.device_hours == pytest.approx(8 * without.seconds / 3600)
    assert beside.device_hours == pytest.approx((8 + 64) * beside.seconds / 3600)


def test_a_refresher_on_the_training_devices_takes_its_time_of_them():
    (few, _), (many, shared), (_, without) = model_of(4, 0), model_of(8, 0), model_of(8, 0, refresh="never")
    assert few.refresh_seconds == pytest.approx(2 * many.refresh_seconds, rel=0.01)
    assert shared.seconds > 1.5 * without.seconds


def test_each_refresh_sends_the_retriever_to_every_device():
    def sent(devices, every):
        return model_of(devices, 16, refresh_every=every)[1].network_bytes - without[devices]

    without = {devices: model_of(devices, 16, refresh="never")[1].network_bytes for devices in (8, 64)}
    assert sent(8, 500) == pytest.approx(2 * sent(8, 1000)) and sent(64, 500) == pytest.approx(8 * sent(8, 500))


def test_training_waits_for_an_index_of_three_periods_by_default():
    assert model_of(64, 1)[0].ages.largest == 3 * 500
    assert model_of(64, 1, max_index_age=700)[0].ages.largest == 700


def test_operations_are_those_of_training_and_embedding():
    assert {each.name for each in planned(named_devices(DEVICES["h100"], 8, 0)).rows if each.flops} == {
        "retriever",
        "embeddings",
        "model",
        "qa-model",
    }


def test_a_refresh_builds_the_index_too():
    rates = {"train": 1e13, "embed": 1e13, "hnsw": 1e7, "copy": 1e9}
    exact, hnsw = (planned_with(kind, Machines("this machine", 1, 4, rates)) for kind in ("exact", "hnsw"))
    build = [row(found, "index").seconds for found in (exact, hnsw)]
    assert build[1] > 100 * build[0]
    assert hnsw.refresh_seconds - exact.refresh_seconds == pytest.approx(build[1] - build[0])


def planned_with(kind, machines):
    """The forecast of the paper's chain with another type of index."""
    chain = tuple(
        stage.with_settings(type=kind) if stage.command == "build-index" else stage
        for stage in paper_chain(own_stages(), "scratch:base")
    )
    return forecast(chain, {"blocks": text_of_blocks(10_000, 288)}, machines, base)


def test_a_target_age_names_refresher_devices_that_keep_it():
    found = planned(named_devices(DEVICES["h100"], 64, 16), target=700)
    assert found.devices_for_age > 16
    kept = planned(named_devices(DEVICES["h100"], 64, found.devices_for_age))
    assert kept.ages.p95 <= 700 * 1.1  # the search simulates fewer steps
    assert planned(named_devices(DEVICES["h100"], 64, 16), target=100).devices_for_age is None


def test_a_batch_that_does_not_fit_is_given_a_micro_batch_that_does():
    small, large = (row(planned(named_devices(DEVICES[name], 8, 0)), "model") for name in ("l4", "h200"))
    assert small.micro_batch < 64 // 1 and small.memory_bytes <= 24e9
    assert large.micro_batch == 0 and large.memory_bytes <= 141e9
    assert row(planned(named_devices(DEVICES["h200"], 8, 0), batch_size=8192), "model").micro_batch > small.micro_batch


def test_the_largest_part_of_a_batch_needs_the_memory():
    """Of 64 texts with 8 candidates: 512 rows on six devices are 86 on two of them, and 85 on the others."""

    def memory(devices):
        return row(planned(Machines("this machine", devices, 0, {})), "model").memory_bytes

    of_a_row = (memory(1) - memory(512)) / 511
    rows = [1 + (memory(devices) - memory(512)) / of_a_row for devices in (2, 6, 64, 1000)]
    assert rows == pytest.approx([256, 86, 8, 1])


def test_an_unknown_rate_leaves_the_time_open():
    found = planned(Machines("this machine", 1, 0, {"chunk": 1e6}))
    assert row(found, "blocks").seconds > 0 and row(found, "model").seconds is None and found.ages is None


def test_a_measured_rate_comes_before_that_of_its_kind():
    machines = Machines("this machine", 1, 0, {"train": 1e12, "embed": 1e12}, {"retriever": 2e12}, {"retriever": 7.0})
    found = row(planned(machines), "retriever")
    assert found.seconds == pytest.approx(7 + found.flops / 2e12)


def test_a_device_that_the_table_lacks_is_refused():
    with pytest.raises(ConfigError, match="abacus"):
        device_named("abacus")


def test_a_stage_takes_no_longer_than_its_minutes():
    machines = named_devices(DEVICES["a100-80gb"], 8, 16)
    assert row(planned(machines), "retriever").seconds > 60
    chain = tuple(
        replace(stage, settings={**stage.settings, "minutes": 0.5})
        for stage in paper_chain(own_stages(), "scratch:base")
    )
    found = forecast(chain, {"blocks": text_of_blocks(PAPER_BLOCKS, 288)}, machines, base)
    assert row(found, "retriever").seconds == 30


@pytest.mark.parametrize("refresh", ["background", "inline"])
def test_refreshes_by_drift_are_planned_as_the_papers(refresh):
    machines = named_devices(DEVICES["h100"], 64, 16)
    auto, paper = (planned(machines, refresh=refresh, refresh_every=every) for every in ("auto", 500))
    assert row(auto, "model").network_bytes == row(paper, "model").network_bytes
    assert auto.refresh_seconds == paper.refresh_seconds
