import numpy as np
import pytest

from lookup_audit.processors.statistics.clustered import clustered_wilson
from lookup_audit.processors.statistics.proportions import wilson


def test_over_clusters_of_one_it_is_nearly_wilson() -> None:
    clusters = [(1, 1)] * 30 + [(0, 1)] * 70
    assert clustered_wilson(clusters) == pytest.approx(wilson(30, 100), abs=0.002)


def test_clusters_of_one_mind_count_once() -> None:
    clusters = [(5, 5)] * 30 + [(0, 5)] * 70
    assert clustered_wilson(clusters) == pytest.approx(wilson(30, 100), abs=0.002)


def test_where_nothing_varies_the_clusters_are_counted() -> None:
    assert clustered_wilson([(4, 4)] * 10) == wilson(10, 10)
    assert clustered_wilson([(0, 4)] * 10) == wilson(0, 10)
    assert clustered_wilson([(0, 0)]) is None
    assert clustered_wilson([]) is None


def test_the_interval_covers_the_true_share_where_clusters_hang_together() -> None:
    rng = np.random.default_rng(4)
    true, covered, draws = 0.3, 0, 1_500
    for _ in range(draws):
        chances = rng.beta(1.5, 3.5, 60)  # mean 0.3
        clusters = [(int(rng.binomial(4, chance)), 4) for chance in chances]
        interval = clustered_wilson(clusters)
        covered += interval is not None and interval[0] <= true <= interval[1]
    assert 0.92 <= covered / draws <= 0.98
