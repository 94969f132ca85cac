"""Several training runs together: aggregates worked out by hand, and a folder of small runs."""

import numpy as np
import pytest
import seeds
from common.aggregates import interquartile_mean, share_above, stratified

from eswm_gym.world_model.train import main as train


def test_the_interquartile_mean_leaves_both_ends_out():
    scores = np.array([[0.0, 1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 100.0]])
    assert interquartile_mean(scores) == (2 + 3 + 4 + 5) / 4
    assert share_above(scores, 3.0) == 0.5 and share_above(scores, 100.0) == 0.0


def test_intervals_draw_the_runs_of_each_task_by_themselves():
    """Both tasks have runs of 0 and 1: the mean over two tasks lies in a quarter steps, as a binomial of four draws."""
    scores = np.array([[0.0, 1.0], [1.0, 0.0]])
    found = stratified(lambda x: float(x.mean()), scores)
    assert found.value == 0.5 and found.ci95 == (0.0, 1.0) and found.n == 2
    same_in_each_task = np.array([[0.0, 1.0], [0.0, 1.0]])
    assert stratified(lambda x: float(x.mean()), same_in_each_task).ci95 == (0.5, 0.5)
    assert stratified(interquartile_mean, scores[:1]).ci95 is None
    assert stratified(interquartile_mean, np.random.default_rng(0).random((5, 3))) == stratified(
        interquartile_mean, np.random.default_rng(0).random((5, 3))
    )


def test_a_folder_of_runs(tmp_path, capsys):
    pytest.importorskip("lightning")
    for folder, said in ((tmp_path, "holds no finished runs"), (tmp_path / "none", "none is no folder")):
        with pytest.raises(SystemExit):
            seeds.main([str(folder)])
        assert said in capsys.readouterr().err
    for seed in (0, 3):
        options = ["--seed", str(seed), "--out", str(tmp_path / "tiny" / f"seed-{seed}")]
        train(["tiny", "--steps", "4", "--device", "cpu", "--no-compile", "--eval-rooms", "2", *options])
    (tmp_path / "tiny" / "seed-9").mkdir()  # not finished
    rows = seeds.main([str(tmp_path), "--quick"])
    metric = "accuracy/unseen/end"
    each = {row.at: row.value for row in rows if (row.metric, row.along) == (metric, "seed")}
    (overall,) = (row for row in rows if (row.metric, row.along) == (metric, None))
    assert set(each) == {0, 3} and overall.value == pytest.approx(sum(each.values()) / 2) and overall.n == 2
    profile = [row.value for row in rows if row.metric == "profile"]
    assert profile == sorted(profile, reverse=True) and len(profile) == len(seeds.THRESHOLDS)
    assert sum(row.metric == "iqm" for row in rows) == 1
