"""What helps people in Python: signatures, paths, numbers, suggestions, frames, notebooks."""

import copy
import inspect
import re
from collections.abc import Callable
from typing import Any

import hpcrowd as hc
import numpy as np
import pandas as pd
import pytest
from hpcrowd import State, populate, replay, resample, run_grid, write_swf
from hpcrowd.environment.errors import QuantityError
from hpcrowd.scenarios.kinds.grids.grid import GridConfig
from hpcrowd.scenarios.kinds.populations.populate import PopulateConfig
from hpcrowd.scenarios.kinds.populations.resample import ResampleConfig
from hpcrowd.scenarios.kinds.replay import ReplayConfig

from tests.support.populations import small_log

FUNCTIONS: dict[Callable[..., Any], Any] = {
    replay: ReplayConfig,
    resample: ResampleConfig,
    populate: PopulateConfig,
    run_grid: GridConfig,
}


@pytest.fixture
def log(make_trace):
    """A log of twelve users."""
    return small_log(make_trace)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_signatures_list_all_settings(function):
    """With types and defaults; the help has the meaning of each."""
    model = FUNCTIONS[function]
    parameters = inspect.signature(function).parameters
    for name, field in model.settings().items():
        shown = parameters[name]
        assert shown.kind == shown.KEYWORD_ONLY, name
        assert shown.annotation, name
        assert "(" not in shown.annotation, name
        if not field.is_required():
            assert shown.default == field.get_default(), name
        assert str(field.description) in str(function.__doc__), name
    assert not [one for one in parameters.values() if one.kind == one.VAR_KEYWORD]
    if "scheduler" in parameters:
        assert "str | Scheduler | type[Scheduler]" == parameters["scheduler"].annotation


def test_paths_and_numbers(log, tmp_path):
    """A path stands for its trace, a number for the text of it."""
    path = tmp_path / "log.swf"
    write_swf(log, path)
    expected = replay(log, processors="4", speed="0.5x").jobs.matrix
    for trace, processors, speed in (
        (path, 4, 0.5), (str(path), 4.0, "0.5x"), (log, np.int64(4), 0.5),
    ):  # fmt: skip
        found = replay(trace, processors=processors, speed=speed)
        assert np.array_equal(expected, found.jobs.matrix)
    assert replay(log, estimates=2).configuration["estimates"] == "2x"
    assert len(resample(path, days=28, warm_up=0).jobs) == len(
        resample(log, days=28, warm_up=0).jobs
    )


def test_files_of_grids_and_models(log, tmp_path):
    """A grid is given by its file, and settings replace those in it."""
    write_swf(log, tmp_path / "log.swf")
    place = tmp_path / "grid.toml"
    place.write_text('[clusters.a]\nprocessors = 8\ntrace = "log.swf"\n')
    run = run_grid(place, broker="worst-fit")
    assert "worst-fit" == run.configuration["broker"]
    assert run.metrics["jobs_completed"] == len(log)
    with pytest.raises(QuantityError, match="broker: the grid is made already"):
        run_grid(hc.grids.read_grid(str(place)), broker="worst-fit")
    with pytest.raises(QuantityError, match="model 'nope': no such file or model"):
        populate("nope")


@pytest.mark.parametrize(
    ("given", "suggested"),
    [
        ({"sheduler": "easy"}, "scheduler"), ({"users": "think-tme"}, "think-time"),
        ({"policy": "easy"}, "scheduler"), ({"nodes": 4}, "processors"), ({"rng": 1}, "seed"),
    ],
)  # fmt: skip
def test_suggestions(log, given, suggested):
    """Names and values that are not known suggest the nearest one, by meaning or by spelling."""
    with pytest.raises(QuantityError, match=rf"did you mean {suggested}\?"):
        replay(log, **given)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("replay log.swf --policy easy", "--policy (Possible options: --scheduler)"),
        ("replay log.swf --processor 4", "--processor (Possible options: --processors)"),
        ("window log.swf --start 1d", "--start (Possible options: --from)"),
        ("stats log.swf --from 1d", "--from; `hpcrowd window` cuts a log"),
        ("replay log.swf --load 2", "--load; processors 0.8x raises the load by a quarter"),
    ],
)
def test_options_by_other_words(call, line, words):
    """The same table serves the command line."""
    status, _, err = call(*line.split())
    assert 2 == status
    assert words in " ".join(err.replace("│", " ").split())


def test_settings_that_are_elsewhere(log):
    """A word for what another command does is answered with that."""
    with pytest.raises(QuantityError, match="start: no such setting; `hpcrowd window` cuts a log"):
        replay(log, start=4)


def test_frame_of_a_run(make_trace):
    """Waits, responses, slowdowns and lateness; missing where a job has none."""
    jobs = [
        {"submit": 10, "run": 100, "wait": 0, "user": 1},
        {"submit": 20, "run": 5, "wait": 0, "user": 2},
        {"submit": 30, "run": 50, "wait": 0, "user": 2},
    ]
    more = {"allocated_processors": 2, "requested_processors": 2, "requested_time": 100}
    trace = make_trace(*({**job, **more, "status": 1} for job in jobs), header="; MaxProcs: 2")
    run = replay(trace, users="rigid")
    run.jobs.column(hc.Column.STATE)[2] = State.CANCELLED
    run.jobs.start[2], run.jobs.end[2] = -1, 60
    frame = run.to_frame()
    assert [0, 90, 30] == frame["wait"].tolist()
    assert [100, 95] == frame["response"].tolist()[:2]
    assert [1, 19] == frame["slowdown"].tolist()[:2]
    assert [1, 9.5] == frame["bounded_slowdown"].tolist()[:2]
    assert [0, 0, 0] == frame["lateness"].tolist()
    assert frame.loc[2, ["response", "slowdown"]].isna().all()
    users = run.users()
    assert [1, 2] == users.index.tolist()
    assert [1, 2] == users["jobs"].tolist()
    assert [0, 1] == users["jobs_cancelled"].tolist()
    assert pytest.approx([200 / 3600, 10 / 3600]) == users["work_processor_h"]
    assert [10, 20] == users["first_submit_s"].tolist()
    assert [0, 90] == users["wait_mean_s"].tolist()


def test_users_have_the_metrics_of_the_summary(log):
    """Their distribution is that of the summary."""
    run = replay(log)
    users = run.users()
    assert len(run.jobs) == users["jobs"].sum()
    assert pytest.approx(1) == users["share_of_work"].sum()
    for name, found in run.metrics["per_user"].items():
        assert pytest.approx(found["p50"]) == users[name].median(), name
    assert users["sessions"].sum() == len(np.unique(run.jobs.session))


def test_frame_of_a_trace(log):
    """All fields, and names of users where the log has them."""
    log.names["user"] = {1: "ada"}
    log.extra["tag"] = np.array(["x"] * len(log), object)
    frame = log.to_frame()
    assert isinstance(frame, pd.DataFrame)
    assert log["run"].tolist() == frame["run"].tolist()
    assert {"ada"} == set(frame["user_name"].dropna())
    assert {"x"} == set(frame["tag"])


def test_tables_for_notebooks(log):
    """Traces, runs, clusters, users and behaviours."""
    staged = ReplayConfig(processors="4").stage(log)
    staged.model.run(until=40_000)
    user = staged.users[0]
    shown = {}
    for thing in (log, replay(log), staged.model.cluster, user, user.behaviour):
        html = re.sub(r"<style>.*?</style>", "", thing._repr_html_(), flags=re.DOTALL)
        shown[type(thing).__name__] = re.findall(r">([^<>]+)<", html)
    assert str(len(log)) in shown["Trace"]
    assert "completed jobs" in shown["Run"]
    assert ["processors", "4"] == shown["Cluster"][1:3]
    assert "units submitted" in shown["ReplayUser"]
    assert ["ThinkTime", "when", "SessionGraph"] == shown["ThinkTime"][:3]


def test_workloads_and_models_are_small_in_notebooks(log):
    """A line as text, and a table of what a person wants to see first."""
    made = hc.generate("lublin", processors=64, jobs=100)
    [measured] = hc.features.measure_all([hc.features.read_workload(log)])
    for thing, words in (
        (made, "<td>mean processors</td>"),
        (made.model, "<td>jobs</td><td>LublinJobs</td>"),
        (measured, f"<td>jobs</td><td>{len(log)}</td>"),
    ):
        assert len(repr(thing)) < 100
        assert words in thing._repr_html_()
        assert len(thing._repr_html_()) < 20_000


@pytest.mark.parametrize(
    ("what", "name", "way"),
    [
        ("run", "wait", "a run has no attribute 'wait'; run.to_frame()['wait'] has it, job by job"),
        ("run", "utilization", "'utilization'; it is run.metrics['utilization']"),
        ("run", "plot", "'plot'; hc.gantt(run) and hc.pictures draw runs"),
        ("run", "waits", "a run has no attribute 'waits'"),
        ("trace", "wait", "'wait'; it is trace['wait'], s; from submission to start"),
        ("trace", "_private", "_private"),
    ],
)
def test_attributes_that_people_try(log, what, name, way):
    """The error is an AttributeError, and says how to get what is meant."""
    with pytest.raises(AttributeError) as error:
        getattr(replay(log) if what == "run" else log, name)
    assert str(error.value).endswith(way)
    assert not hasattr(log, name)


def test_a_run_is_as_long_as_it_has_jobs(log):
    """It is true, also without jobs; and it can be copied."""
    run = replay(log)
    assert (len(log), True) == (len(run), bool(run))
    assert copy.deepcopy(run).metrics == run.metrics


def test_texts_say_what_objects_hold(log):
    """In a line, without arrays; and a trace offers its columns."""
    staged = ReplayConfig().stage(log)
    jobs, users = len(log), len(staged.users)
    assert f"<Simulation at 0 s: {jobs} jobs, {users} users, on home>" == repr(staged.model)
    found = f"<Sessions arrival:3600s: {jobs} jobs in {len(staged.work.sessions)} sessions of"
    assert repr(staged.work.sessions).startswith(found)
    assert f"<Work of {staged.work.sessions!r}>" == repr(staged.work)
    assert f"<Staged {staged.model!r}>" == repr(staged)
    assert "requested_time" in log._ipython_key_completions_()
