"""The page in a real browser for everybody: keyboard, axe-core, any button, any screen."""

import pytest
from hpcrowd.environment.clock import DAY, HOUR

from tests.scenarios.inspector.test_page import pytestmark as pytestmark
from tests.support.page import BUSY

#: The parts of the page.
PARTS = ("cluster", "users", "user", "delays", "forecast", "differences")


def test_everything_by_keyboard(reader):
    """Tabs, rows, steps and play need no mouse, and the focus can be seen."""
    page = reader.page
    page.locator("body").press("ArrowRight")
    reader.until(lambda: reader.at == BUSY + HOUR)
    page.locator("body").press("Shift+ArrowLeft")
    reader.until(lambda: reader.at == BUSY + HOUR - DAY)
    page.locator("body").press("Space")
    reader.until(lambda: reader.at > BUSY + 2 * HOUR, "it does not play")
    page.locator("body").press("Space")
    reader.until(lambda: reader.data("busy") == "0")
    with reader.until_shown():
        page.locator("body").press("2")
    row = page.locator("#users-a tbody tr").first
    row.focus()
    page.keyboard.press("ArrowDown")
    focused = page.evaluate("document.activeElement.tagName")
    assert "TR" == focused
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert "none" != outline
    page.keyboard.press("Enter")
    reader.until(lambda: "user=" in page.url)
    with reader.until_shown():
        page.locator("body").press("3")
    page.get_by_role("tab", name="One user").focus()
    with reader.until_shown():
        page.keyboard.press("ArrowRight")
    assert page.get_by_role("tab", name="Who slows whom").get_attribute("aria-selected") == "true"
    page.locator("body").press("?")
    page.get_by_role("dialog").wait_for()
    page.keyboard.press("Escape")


@pytest.mark.parametrize("part", PARTS)
def test_everybody_can_use_it(at, part):
    """No finding of axe-core that keeps somebody out, in light and dark."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    more = "&two=1&b.scheduler=fcfs" if part in ("differences", "cluster") else ""
    for theme in ("light", "dark"):
        # axe itself is a script that is put into the page.
        page = at(f"at={BUSY}&tab={part}&user=3&theme={theme}{more}", bypass_csp=True).page
        if part == "forecast":
            page.wait_for_selector("#starts-a tbody tr")
        found = axe.Axe().run(page).response["violations"]
        serious = [one for one in found if one["impact"] in ("serious", "critical")]
        assert [] == [(one["id"], one["nodes"][0]["html"][:200]) for one in serious]


@pytest.mark.parametrize(("width", "height"), [(390, 800), (650, 500), (3840, 2160)])
def test_it_fits_from_phone_to_large_screen(at, width, height):
    """Nothing makes the page scroll sideways; 1,300 pixels at 200 % zoom are 650."""
    for part in ("cluster", "user", "forecast"):
        page = at(f"at={BUSY}&tab={part}&user=3&two=1", width=width, height=height).page
        if part == "forecast":
            page.wait_for_selector("#starts-a tbody tr")
        assert width >= page.evaluate("document.documentElement.scrollWidth"), part


@pytest.mark.parametrize("tab", PARTS)
def test_every_button(at, tab):
    """Whatever can be pressed on a tab does its work without an error in the browser."""
    reader = at(f"at={BUSY}&tab={tab}&user=3&two=1&b.scheduler=fcfs")
    page = reader.page
    page.locator("summary").first.click()
    names = page.evaluate(
        "[...document.querySelectorAll('button')].filter((one) => one.offsetParent && "
        "!one.disabled && one.role !== 'tab').map((one) => one.ariaLabel || one.innerText)"
    )
    assert len(names) > 20
    pause = page.get_by_role("button", name="Pause", exact=True)
    kept = {"Copy link", "One run", "Reset"}  # a dialog of the browser; what ends this view
    for name in sorted(set(names) - kept):
        button = page.get_by_role("button", name=name, exact=True).first
        if button.is_visible() and button.is_enabled():
            button.click()
            reader.until(lambda: reader.data("busy") == "0", name)
        if page.locator("dialog[open]").count():
            page.keyboard.press("Escape")
        if pause.is_visible():
            pause.click()
            reader.until(lambda: reader.data("busy") == "0", "Pause")
    reader.press("Reset")
    reader.press("One run")
    assert 0 == page.locator("#load-b").count()


@pytest.mark.parametrize("ratio", [1, 3])
def test_charts_are_sharp(at, ratio):
    """The canvas of a chart has as many pixels as the screen, at any pixel ratio."""
    # Bokeh draws in the shadow of elements of its own.
    found = at(device_scale_factor=ratio).page.evaluate(
        """() => {
          const inside = (root) => [...root.querySelectorAll("*")].flatMap((one) =>
            [...(one.tagName === "CANVAS" ? [one] : []),
             ...(one.shadowRoot ? inside(one.shadowRoot) : [])]);
          return inside(document.querySelector("#gantt-a"))
            .map((one) => [one.width, one.clientWidth]);
        }"""
    )
    assert found
    for pixels, width in found:
        assert abs(pixels - ratio * width) <= ratio, (pixels, width)
