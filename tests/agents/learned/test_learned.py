"""Users whose pauses are learned: what they notice, what they draw, and the file of the model."""

import json
import sys
from dataclasses import asdict

import hpcrowd as hc
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hpcrowd import Clock, Recipe, Simulation, Work, add_users, replay
from hpcrowd.agents.behaviours.composed import Composed
from hpcrowd.agents.behaviours.think import Pause
from hpcrowd.agents.behaviours.when import BatchOrder, Reason
from hpcrowd.agents.learned import kernel
from hpcrowd.agents.learned.features import NAMES
from hpcrowd.agents.learned.kernel import CHANCES, DAWN, KINDS, LATEST, PauseForest, kind_of
from hpcrowd.agents.learned.mind import Minds, Noticed
from hpcrowd.agents.learned.model import ABOUT, LearnedModel
from hpcrowd.agents.learned.think import Learned, LearnedPauses
from hpcrowd.analysis.models.learned import SEVERAL, Settings, fit_learned
from hpcrowd.environment.clock import DAY, HOUR
from hpcrowd.environment.errors import QuantityError, TraceError
from hpcrowd.environment.traces.formats.swf import write_swf
from hpcrowd.environment.traces.trace import jobs_from_trace
from hpcrowd.reactions import Delay, RecentWaits

from tests.support.populations import small_log

pytest.importorskip("sklearn", reason="no scikit-learn: pip install 'hpcrowd[fits]'")


@pytest.fixture(scope="module")
def record(make_trace):
    """The work of twelve users over eight weeks."""
    trace = small_log(make_trace)
    return Work.of(jobs_from_trace(trace).jobs), Clock.of(trace.header)


@pytest.fixture(scope="module")
def model(record):
    """A model of them."""
    return fit_learned([record], Settings(trees=8, leaf=5))


class Recalling(LearnedPauses):
    """Notices everything, and pauses as recorded."""

    def __init__(self, model):
        super().__init__(model)
        self.seen: dict[int, np.ndarray] = {}

    def pause(self, user, release):
        """Keep what is noticed."""
        super().pause(user, release)
        self.seen[release.unit] = self.minds.features.copy()
        return Pause(release.pause)


@pytest.mark.parametrize("begins", ["with the run", "in the middle"])
def test_a_run_is_noticed_as_the_record_is(record, model, begins):
    """Users who do what was recorded notice the same in a simulation as over the record.

    So do those who are given the behaviour in the middle of a run: they know what they did before.
    """
    work, clock = record
    jobs = work.jobs.copy()
    jobs.erase_outcome()
    simulation = Simulation(jobs, 8, "recorded", clock=clock)
    think = Recalling(model)
    noticed = Noticed.of(work, clock, model.forest.common, model.forest.prior)
    # How much is open is looked at when a unit is planned, which is before it is released where
    # it only follows another.
    certain = ~np.isin(NAMES, ["open"])
    if begins == "with the run":
        add_users(simulation, work, lambda found: Composed(BatchOrder(found), think))
    else:
        users = add_users(simulation, Work.of(jobs), Recipe("batches"))
        simulation.run(until=int(np.median(jobs.recorded_submit)))
        behaviour = Composed(BatchOrder(users[0].work), think)
        for user in users:
            hc.give_behaviour(simulation, user, behaviour)
        # What was noticed at the end of earlier work is not made up for.
        certain = ~np.isin(NAMES, ["open", "responses"])
    simulation.run()
    assert (jobs.submit == jobs.recorded_submit).all()
    assert len(think.seen) > 50
    for unit, features in think.seen.items():
        expected = noticed.features[unit]
        np.testing.assert_allclose(features[certain], expected[certain], err_msg=str(unit))
        if begins == "with the run" and noticed.releases.reason[unit] == Reason.ENDED:
            assert features[~certain] == expected[~certain]
    assert begins == "in the middle" or sorted(think.seen) == noticed.released.tolist()


def test_a_user_draws_what_the_model_says(record, model):
    """Draws of a run and the exact distribution of forecasts agree."""
    work, clock = record
    forest, leaves = model.forest, PauseForest(model.forest)
    noticed = Noticed.of(work, clock, forest.common, forest.prior)
    random = np.random.default_rng(0)
    for unit in random.choice(noticed.released, 5, replace=False):
        about = noticed.features[unit], noticed.memory[unit], int(noticed.wall[unit])
        pauses, weights = model.pauses(*about)
        drawn = np.array([leaves.draw(*about, random.random(CHANCES)) for _ in range(4000)])
        assert set(drawn.tolist()) <= set(pauses.tolist())
        share = weights / weights.sum()
        kinds = np.array([kind_of(pause) for pause in pauses])
        mine = np.array([kind_of(pause) for pause in drawn])
        for kind in range(KINDS):
            assert share[kinds == kind].sum() == pytest.approx((mine == kind).mean(), abs=0.03)
        values, place = np.unique(pauses, return_inverse=True)
        exact = np.cumsum(np.bincount(place, share))
        found = np.searchsorted(np.sort(drawn), values, side="right") / len(drawn)
        assert np.abs(exact - found).max() < 0.03


def test_who_comes_back_keeps_the_hour(model):
    """A long pause is days and a time of day; a short one lasts as long as it lasted."""
    forest = model.forest
    for example in range(len(forest.pause)):
        pause, began = int(forest.pause[example]), int(forest.released[example])
        for wall in (2 * HOUR, 9 * HOUR, 3 * DAY + 17 * HOUR):
            found = kernel.transported(pause, began, forest.absence, wall)
            # Who is still up at two goes home on the day before.
            since = (began - DAWN) % DAY + pause
            if pause < forest.absence or since < DAY:
                assert found == pause
            else:
                assert (wall + found) % DAY == (began + pause) % DAY
                assert (wall - DAWN + found) // DAY - (wall - DAWN) // DAY == since // DAY
            assert found >= 0


def test_users_become_themselves(record, model):
    """The more pauses a user remembers, the more often it makes one of them again."""
    work, clock = record
    minds, mine = Minds(model), 20 * DAY + 1
    noticed = Noticed.of(work, clock, model.forest.common, model.forest.prior)
    minds.features[:] = noticed.features[noticed.released[0]]
    reason = int(minds.features[0])
    shares = []
    for count in range(2 * LATEST):
        minds.note(0, reason, 0, mine, mine, mine)
        pauses, weights = model.pauses(minds.features, minds.memory(0), 0)
        shares.append(weights[pauses == kernel.transported(mine, 0, HOUR, 0)].sum() / weights.sum())
        known = min(count + 1, LATEST)
        assert shares[-1] == pytest.approx(known / (known + model.forest.own))


def test_a_saved_model_is_the_same(record, tmp_path):
    """A fit depends on its seed alone; saved and read it draws the same as before."""
    paths = [tmp_path / name for name in ("a", "b", "c")]
    models = [fit_learned([record], Settings(trees=4), seed=seed) for seed in (1, 1, 2)]
    for path, made in zip(paths, models, strict=True):
        made.save(path)
    first, again, other = (path.read_bytes() for path in paths)
    assert first == again != other
    work, clock = record

    def run(found):
        jobs = work.jobs.copy()
        jobs.erase_outcome()
        simulation = Simulation(jobs, 8, "easy", clock=clock, seed=3)
        add_users(simulation, work, Recipe("batches", Learned(model=found)))
        simulation.run()
        return jobs.submit.tolist()

    assert run(models[0]) == run(LearnedModel.load(paths[0])) != run(models[2])


def test_files_of_other_kinds_are_refused(model, tmp_path):
    """One line says what is wrong with a file, and how to make a right one."""
    path = tmp_path / "users.parquet"
    with pytest.raises(QuantityError, match="no such file"):
        LearnedModel.load(path)
    path.write_text("pauses")
    with pytest.raises(QuantityError, match=r"cannot be read.*hpcrowd fit learned"):
        LearnedModel.load(path)
    model.save(path)
    good = pq.read_table(path)
    about = json.loads(good.schema.metadata[ABOUT])
    old = [{"version": 0}, {"features": list(NAMES[:-1])}]
    spoilt = {name: [pa.scalar([10**6] * len(good[name][0]), good[name].type).as_py()]
              for name in ("child", "members", "choices_root")}  # fmt: skip
    place = good.schema.get_field_index
    wrong = [
        *((good.replace_schema_metadata({ABOUT: json.dumps(about | change)}), r"version .*; make")
          for change in old),
        *((good.set_column(place(name), name, pa.array(column, good[name].type)), r"damaged; make")
          for name, column in spoilt.items()),
        (good.drop_columns(["lift"]), r"damaged; make it again"),
        (good.replace_schema_metadata({}), "version unknown"),
    ]  # fmt: skip
    for table, told in wrong:
        pq.write_table(table, path)
        with pytest.raises(QuantityError, match=told):
            LearnedModel.load(path)


def test_a_record_without_pauses_teaches_nothing(make_jobs):
    """Users who came once cannot be learned from."""
    work = Work.of(make_jobs((0, 10, 1, 10, 1), (5, 10, 1, 10, 2)))
    with pytest.raises(TraceError, match="no user submitted twice"):
        fit_learned([(work, Clock())])


@pytest.fixture
def log(make_trace, tmp_path, monkeypatch):
    """The small log on disk, in the folder of work."""
    monkeypatch.chdir(tmp_path)
    write_swf(small_log(make_trace), tmp_path / "log.swf")
    return tmp_path / "log.swf"


def test_a_model_is_fitted_and_used_everywhere(log, call, tmp_path):
    """One command fits it to several logs; replays, resamples and populations take its file."""
    users = tmp_path / "users.parquet"
    code, out, _ = call("fit", "learned:trees=4,leaf=5", log, log, "-o", users)
    assert (0, 2) == (code, out.count("12 users"))
    about = LearnedModel.load(users).provenance
    assert [4, 5] == [about["settings"][name] for name in ("trees", "leaf")]
    assert ["log.swf"] * 2 == [one["name"] for one in about["logs"]]
    runs = [replay(log, users=name) for name in (f"learned:{users}", "learned", "adjusted")]
    told = [run.jobs.submit.tolist() for run in runs]
    assert told[0] != told[1] != told[2] != told[0]
    found = [hc.resample(log, users=f"learned:{users}", days=56, seed=1) for _ in range(2)]
    assert (found[0].jobs.submit == found[1].jobs.submit).all()
    assert len(found[0].jobs) > 50
    made = tmp_path / "M.json"
    assert 0 == call("fit", "mugm", log, "-o", made)[0]
    found = [hc.populate(str(made), users=name, days=28) for name in ("learned", "model")]
    assert len(found[0].jobs) != len(found[1].jobs)
    # A population names the file relative to its own folder, as a behaviour or a part.
    for text in (
        'behaviour = "learned:users.parquet"',
        'when = "batches"\nthink = "learned"\nlearned = { file = "users.parquet" }',
    ):
        (tmp_path / "all.toml").write_text(f"[[users]]\n{text}\n")
        assert told[0] == replay(log, users=str(tmp_path / "all.toml")).jobs.submit.tolist()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("fit learned:leaves=3 log.swf -o x", "'leaves' is not an option of it"),
        ("fit learned log.swf --cycle daily -o x", "--cycle daily: for models"),
        ("fit mugm log.swf log.swf -o x", "mugm is fitted to one trace"),
        ("replay log.swf --users learned:none", "learned model none: no such file"),
        ("populate mugm --users learnt", "users 'learnt': not known"),
        ("populate mugm --users learned --oblivious", "look at the ends of"),
    ],
)
def test_mistakes_are_told_in_one_line(log, call, arguments, told):
    """What is wrong is said in one line, with exit code 2, and no file is left."""
    code, out, err = call(*arguments.split())
    assert (2, "", 1) == (code, out, len(err.splitlines()))
    assert told in err
    assert [log.name] == [path.name for path in log.parent.iterdir()]


def test_the_shipped_model_says_what_it_is_from():
    """It names its logs, and is small."""
    shipped = LearnedModel.shipped()
    assert 8 == len(shipped.provenance["logs"])
    assert asdict(SEVERAL) == shipped.provenance["settings"]
    assert {"pauses", "users", "sha256", "name", "note"} == set(shipped.provenance["logs"][0])


@pytest.mark.parametrize("waits", [True, False])
def test_users_choose_to_wait_and_to_repeat(make_jobs, waits):
    """Those who learned from people who always do so wait and submit the same; others do not."""
    rows = []
    for user in range(1, 7):
        at = 1000 * user
        for number in range(60):
            size, run = (1, 2000) if waits else (1 + number % 7, 900_000)
            rows.append((at, run, size, 1_000_000, user))
            at += 5000 + 100 * (number % 3)
    work = Work.of(make_jobs(*sorted(rows)))
    model = fit_learned([(work, Clock())], Settings(trees=4))
    minds, chances = Minds(model), []
    noticed = Noticed.of(work, Clock(), model.forest.common, model.forest.prior)
    for unit in noticed.released[noticed.released > 0]:
        minds.features[:] = noticed.after[unit - 1]
        chances.append(minds.chances())
    mean = np.mean(chances, axis=0)
    assert (mean > 0.9).all() if waits else (mean < 0.1).all()


def test_learned_users_react(make_trace, model):
    """With a reaction that changes nothing they do the same."""
    trace, think = small_log(make_trace), Learned(model=model)
    never = Delay(RecentWaits(900 * DAY, last=1), by=HOUR)
    one, other = (
        replay(trace, users=Recipe("batches", think, reactions=how)).jobs.submit.tolist()
        for how in ((), (never,))
    )
    assert one == other


def test_sessions_may_begin_as_recorded(make_trace, model):
    """Then users keep the level of the record, and pauses within sessions are the model's."""
    job = {"run": 300, "wait": 0, "requested_processors": 1, "requested_time": 600, "status": 1}
    times = DAY * np.arange(20)[:, None] + np.array([9 * HOUR, 10 * HOUR - 1500, 10 * HOUR])
    rows = [job | {"user": one, "submit": at} for at in times.ravel() for one in range(1, 7)]
    late = {}
    for sessions in ("drawn", "recorded"):
        how = Recipe("batches", Learned(sessions=sessions, model=model))
        jobs = replay(make_trace(*rows, header="; MaxProcs: 100"), users=how).jobs
        late[sessions] = (jobs.submit - jobs.recorded_submit).reshape(*times.shape, 6)
    assert (late["recorded"][:, 0] == 0).all()
    assert (late["drawn"][1:, 0] != 0).mean() > 0.9
    within = late["recorded"][:, 1:]
    assert len(np.unique(within)) > 20
    assert np.abs(within).max() <= 2 * HOUR


def test_sessions_are_drawn_where_the_record_is_the_answer(log, call, tmp_path):
    """A validation refuses them as recorded, in one line; so is any other word."""
    users = tmp_path / "users.toml"
    users.write_text('[[users]]\nwhen = "batches"\nthink = "learned"\n')
    with users.open("a") as file:
        file.write('learned = { sessions = "recorded" }\n')
    code, out, err = call("validate", log, "--users", users)
    assert (2, "", 1) == (code, out, len(err.splitlines()))
    assert "sessions recorded: would know the answer" in err
    with pytest.raises(QuantityError, match="sessions 'early': not known"):
        Learned(sessions="early")


def test_a_fit_without_its_library_says_how_to_install_it(log, call, monkeypatch):
    """One line names the extra; the shipped model needs none."""
    monkeypatch.setitem(sys.modules, "sklearn.ensemble", None)
    for arguments in (("fit", "learned", log, "-o", "x"), ("validate", log, "--users", "learned")):
        code, out, err = call(*arguments)
        assert (2, "") == (code, out)
        assert 'scikit-learn is not installed; pip install "hpcrowd[fits]"' in err
    assert 0 == call("replay", log, "--users", "learned")[0]
