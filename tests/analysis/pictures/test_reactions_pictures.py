"""The picture of reactions around a period, and the script that draws it."""

from hpcrowd import Clock, Recipe, parse_swf, replay
from hpcrowd.analysis.pictures.plots import figure_png, new_figure
from hpcrowd.environment.clock import DAY, HOUR
from hpcrowd.environment.output.guard import kind_of
from hpcrowd.reactions import Delay, During
from hpcrowd.scenarios.whatif import demand_response
from hpcrowd.scenarios.whatif.demand_response import mean_use, reaction_figure

DAYS_LONG = "\n".join(
    ["; MaxProcs: 4", *(f"{n} {n * DAY} 0 36000 2 -1 -1 2 36000 -1 1 1 1 -1 1 -1 -1 -1"
                        for n in range(1, 6))]
)  # fmt: skip


def test_picture_has_a_panel_for_each_answer():
    """Users are columns, answers rows; only processors of the machine are in use."""
    trace = parse_swf(DAYS_LONG)
    period = (3 * DAY - HOUR, 3 * DAY + HOUR)
    plain = replay(trace, users="rigid")
    delayed = replay(trace, users=Recipe("recorded", reactions=(Delay(During([period])),)))
    runs = {"as usual": plain, "delay": delayed, "again": delayed}
    assert 1.0 == mean_use(plain, DAY, DAY + 20 * HOUR)  # two processors for half of the time
    figure = reaction_figure({"rigid": runs, "other": runs}, period, "Title")
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    expected = [f"{users} users: {name}" for users in ("rigid", "other")
                for name in ("delay", "again")]  # fmt: skip
    assert expected == titles
    assert all(axes.get_xlim()[0] <= period[0] - DAY for axes in figure.axes)
    assert figure_png(figure).startswith(b"\x89PNG")


def test_period_of_the_call_is_local():
    """The call is on a Wednesday, from 8:00 to 20:00, after whole weeks from the first Monday."""
    for clock in (Clock(), Clock(1704870000)):
        begin, end = demand_response.period_of(clock)
        assert (2, 8, 0) == (clock.local(begin).weekday(), clock.local(begin).hour,
                             clock.local(begin).minute)  # fmt: skip
        assert 12 * HOUR == end - begin
        monday = begin - clock.wall(begin) % (7 * DAY)
        assert 16 == monday // (7 * DAY)


def test_script_tells_its_usage(tmp_path, capsys):
    """Without a trace, with too much, or with a trace that ends before the call: one line."""
    path = tmp_path / "short.swf"
    path.write_text(DAYS_LONG + "\n")
    usage = "usage: python -m hpcrowd.scenarios.whatif.demand_response"
    short = "short.swf: ends before week 16"
    for arguments, words in (([], usage), (["a", "b", "c"], usage), ([str(path)], short)):
        assert 2 == demand_response.main(arguments)
        assert words in capsys.readouterr().err


def test_script_leaves_the_files_of_others(tmp_path, capsys, monkeypatch):
    """The picture never replaces the trace, and a file of somebody else only with --force."""
    path, mine, figure = tmp_path / "log.swf", tmp_path / "mine.png", new_figure(4, 3, "x")
    path.write_text(DAYS_LONG + "\n")
    mine.write_text("a photograph")
    monkeypatch.setattr(demand_response, "covered", lambda *_: None)
    monkeypatch.setattr(demand_response, "runs", lambda *_: {})
    monkeypatch.setattr(demand_response, "reaction_figure", lambda *_: figure)
    (tmp_path / "link.png").symlink_to(path)
    for name, more in (("log.swf", []), ("link.png", ["--force"]), ("mine.png", []), ("x.doc", [])):
        assert 2 == demand_response.main([str(path), str(tmp_path / name), *more])
        assert 1 == capsys.readouterr().err.count("\n")
    assert ("a photograph", DAYS_LONG + "\n") == (mine.read_text(), path.read_text())
    for more in (["--force"], []):
        assert 0 == demand_response.main([str(path), str(mine), *more])
        assert kind_of(mine) is not None

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(demand_response, "rows", interrupt)
    assert 130 == demand_response.main([str(path), str(mine)])
    assert f"interrupted; written before that, and complete: {mine}" in capsys.readouterr().err
