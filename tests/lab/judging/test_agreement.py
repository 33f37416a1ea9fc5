"""Cohen's kappa beside scikit-learn's, and its interval beside a plain bootstrap."""

from __future__ import annotations

import numpy as np
import pytest

from realmctl.lab.judging.agreement import agreement, counts_of, kappa

metrics = pytest.importorskip("sklearn.metrics")


def drawn(seed: int, count: int = 80, same: float = 0.6) -> list[tuple[str, int, int]]:
    rng = np.random.default_rng(seed)
    one = rng.integers(4, size=count)
    two = np.where(rng.random(count) < same, one, rng.integers(4, size=count))
    return [(f"q{number % 20}", int(a), int(b)) for number, (a, b) in enumerate(zip(one, two, strict=True))]


@pytest.mark.parametrize("seed", range(4))
def test_kappa_is_that_of_scikit_learn(seed):
    pairs = drawn(seed, same=seed / 4)
    _, one, two = zip(*pairs, strict=True)
    found = agreement(pairs, 4)
    assert found["kappa"] == pytest.approx(metrics.cohen_kappa_score(one, two), abs=1e-6)
    assert found["weighted_kappa"] == pytest.approx(metrics.cohen_kappa_score(one, two, weights="quadratic"), abs=1e-6)
    assert found["same"] == pytest.approx(np.mean(np.array(one) == two), abs=1e-6) and found["pairs"] == 80
    assert found["counts"] == metrics.confusion_matrix(one, two, labels=range(4)).tolist()


def test_the_interval_is_that_of_a_plain_bootstrap_over_queries():
    pairs, rng = drawn(5), np.random.default_rng(1)
    by_query = [[pair for pair in pairs if pair[0] == f"q{number}"] for number in range(20)]
    values = []
    for _ in range(400):
        some = [pair for number in rng.integers(20, size=20) for pair in by_query[number]]
        values.append(metrics.cohen_kappa_score([one for _, one, _ in some], [two for _, _, two in some]))
    found = agreement(pairs, 4)
    assert [found["kappa_low"], found["kappa_high"]] == pytest.approx(np.quantile(values, (0.025, 0.975)), abs=0.035)


def test_what_has_no_kappa():
    assert agreement([], 4) == {"pairs": 0}
    same = agreement([("q", 2, 2), ("r", 2, 2)], 4)
    assert same == {"pairs": 2, "same": 1.0, "counts": [[0] * 4, [0] * 4, [0, 0, 2, 0], [0] * 4]}
    few = agreement([("q", 0, 0), ("q", 1, 1)], 2)
    assert few["kappa"] == few["weighted_kappa"] == 1.0 and "kappa_low" not in few  # of one query there is no interval
    assert kappa(counts_of([("q", 0, 1), ("q", 1, 0)], 2).sum(0)) == -1.0
