"""Schedulers that learn: the environment is the run that the library's policies have."""

import hpcrowd as hc
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from hpcrowd.environment.machine.model import Machine, NodeType
from hpcrowd.environment.schedulers.ordered import OrderedScheduler

MACHINE = Machine(nodes=[NodeType(name="n[1-4]", cores=4)])


class Shortest(OrderedScheduler):
    """The shortest estimate first, with backfilling in this order."""

    backfill = "queue"

    def key(self, job, now):
        """Return the estimate."""
        return job.estimate


@pytest.fixture(scope="module")
def log():
    """Three days of eight users on 16 processors, with queues."""
    draw = np.random.default_rng(3)
    submit = np.sort(draw.integers(0, 3 * 86400, 400))
    run = draw.lognormal(7.5, 1.2, 400).astype(int) + 1
    asked, users = (run * draw.uniform(1, 4, 400)).astype(int), draw.integers(1, 9, 400)
    lines = [
        f"{n} {at} 0 {run[n]} {size} -1 -1 {size} {asked[n]} -1 1 {users[n]} -1 -1 -1 -1 -1 -1"
        for n, (at, size) in enumerate(zip(submit, draw.integers(1, 13, 400), strict=True))
    ]
    return hc.parse_swf("; MaxProcs: 16\n" + "\n".join(lines))


def play(env, choose, seed=0):
    """Return the run of an episode, its rewards and all that was seen."""
    seen, info = env.reset(seed=seed)
    rewards, all_seen, over = [], [seen], False
    while not over:
        seen, reward, over, cut, info = env.step(choose(seen, info))
        assert not cut
        assert env.observation_space.contains(seen)
        rewards.append(reward)
        all_seen.append(seen)
    return info["run"], rewards, all_seen


def starts(run):
    """Return when the jobs were submitted and started."""
    return run.jobs.submit.tolist(), run.jobs.start.tolist()


@pytest.mark.parametrize("settings", [{}, {"machine": MACHINE}], ids=["pool", "nodes"])
@pytest.mark.parametrize("users", ["rigid", "think-time"])
def test_the_oldest_first_is_easy(log, users, settings):
    """Always taking the job that has waited longest, with a reservation for it, is EASY."""
    env = hc.gym.SchedulingEnv(log, users=users, **settings)
    run, *_ = play(env, lambda seen, info: 0)
    assert starts(hc.replay(log, users=users, scheduler="easy", **settings)) == starts(run)


@pytest.mark.parametrize("action", ["next", "priority"])
def test_the_shortest_first_is_that_policy(log, action):
    """A place or priorities: both give the schedule of the policy with this order."""
    env = hc.gym.SchedulingEnv(log, users="rigid", action=action, seen=400)

    def choose(seen, info):
        shortest = np.where(info["action_mask"], -seen["jobs"][:, 1], -np.inf)
        return shortest if action == "priority" else int(shortest.argmax())

    run, *_ = play(env, choose)
    expected = starts(hc.replay(log, users="rigid", scheduler=Shortest()))
    if action == "priority":
        assert expected == starts(run)
    else:  # what overtakes a chosen job goes by submission there
        assert expected != starts(run)
        assert run.metrics["wait_mean_s"] < hc.replay(log, users="rigid").metrics["wait_mean_s"]


def test_rewards_are_of_the_jobs_that_start(log):
    """They add up to those of the run, but for jobs that started before the first decision."""
    steps = []
    env = hc.gym.SchedulingEnv(log, reward=lambda step: steps.append(step) or 1.0)
    run, rewards, _ = play(env, lambda seen, info: 0)
    assert [1.0] * len(steps) == rewards
    first = steps[0].before
    later = run.jobs.start >= first
    waits = (run.jobs.start - run.jobs.submit)[later]
    assert waits.sum() == sum(int(step.waited.sum()) for step in steps)
    assert later.sum() == sum(len(step.run) for step in steps)
    named = hc.gym.SchedulingEnv(log, reward="wait")
    _, rewards, _ = play(named, lambda seen, info: 0)
    assert -waits.sum() / 3600 == pytest.approx(sum(rewards))


def test_seeds_repeat_an_episode(log):
    """The stretch, what is seen and the rewards are the same bytes; another seed is another one."""

    def random_play(seed):
        env = hc.gym.SchedulingEnv(log, length="1d", reward="work")
        draw = np.random.default_rng(seed)
        run, rewards, seen = play(env, lambda seen, info: int(draw.integers(32)), seed)
        return starts(run), rewards, [one["jobs"].tobytes() for one in seen]

    assert random_play(1) == random_play(1)
    assert random_play(1)[0] != random_play(2)[0]


@pytest.mark.filterwarnings("ignore:.*spec")
def test_gymnasium_accepts_it(log):
    """Its own checker, for both kinds of actions and for users who are made up."""
    check_env(hc.gym.SchedulingEnv(log, length="1d"), skip_render_check=True)
    check_env(hc.gym.SchedulingEnv(log, action="priority"), skip_render_check=True)
    made = hc.gym.SchedulingEnv("lublin", kind="populate", model_processors=16, days=1, load=0.9)
    check_env(made, skip_render_check=True)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"length": "9d"}, "length 9.0 days: longer than the log, 3.0 days"),
        ({"scheduler": "easy"}, "scheduler: the agent is the scheduler; leave it out"),
        ({"action": "pick"}, "action 'pick': not known; choose next, priority"),
        ({"reward": "speed"}, "reward 'speed': not known; choose slowdown, wait, work"),
        ({"user": "rigid"}, "user: no such setting"),
    ],
)
def test_mistakes_are_one_line(log, settings, message):
    """They say what is wrong."""
    with pytest.raises(hc.HpcrowdError) as error:
        hc.gym.SchedulingEnv(log, **settings)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_days_without_a_choice_are_drawn_again():
    """On some days of these users nothing has to be decided."""
    quiet = hc.gym.SchedulingEnv("lublin", kind="populate", model_processors=64, days=0.2, load=0.2)
    for seed in range(10):
        quiet.reset(seed=seed)


def test_without_a_choice_there_is_no_episode():
    """One job alone starts by itself; a step before a reset is an error, too."""
    one = hc.parse_swf("; MaxProcs: 4\n1 0 0 60 1 -1 -1 1 60 -1 1 1 -1 -1 -1 -1 -1 -1")
    env = hc.gym.SchedulingEnv(one)
    with pytest.raises(hc.HpcrowdError, match="nothing to decide"):
        env.reset()
    with pytest.raises(hc.HpcrowdError, match="call reset"):
        env.step(0)
