"""The explorer's page in a browser."""

from __future__ import annotations

import math
import re
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from chromium import CLIPPED, Chromium
from explored import DELTA, EPS, FRACTIONS, TOPS, embedded, make

from accounting.base.errors import InvalidParameter
from paramsearch.explorer import data
from paramsearch.explorer.baselines import Axes
from paramsearch.explorer.data import USERS
from paramsearch.explorer.page import page
from paramsearch.tables.lookup import Table
from paramsearch.tables.query import Query


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    return make(tmp_path_factory.mktemp("made") / "small & <table>")


@pytest.fixture(scope="module")
def at(tmp_path_factory: pytest.TempPathFactory, table: Table) -> Path:
    path = tmp_path_factory.mktemp("page") / "explorer.html"
    path.write_text(page(table), "utf-8")
    return path


def quiet(browser: Chromium, path: Path) -> None:
    """Nothing was complained about, nothing asked for."""
    assert not browser.seen("Log.entryAdded", "Runtime.exceptionThrown", "Runtime.consoleAPICalled")
    asked = [
        event["params"]["request"]["url"] for event in browser.seen("Network.requestWillBeSent")
    ]
    assert [url for url in asked if url not in (path.as_uri(), "data:,")] == []


def press(browser: Chromium, key: str, code: int, times: int = 1) -> None:
    for _ in range(times):
        for kind in ("rawKeyDown", "keyUp"):
            browser.call(
                "Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code
            )


def slide(browser: Chromium, **stops: int) -> None:
    """With the keyboard: Home, then so many steps to the right."""
    for axis, stop in stops.items():
        browser.ask(f"document.getElementById('{axis}').focus()")
        press(browser, "Home", 36)
        press(browser, "ArrowRight", 39, stop)


NUMBERS = """Object.fromEntries([...document.querySelectorAll('#result data')].map(
  element => [element.id, Number(element.value)]))"""


@pytest.mark.parametrize(
    ("n", "eps", "delta", "top", "fraction"),
    [
        (6, 1, 1, 2, 0),
        (0, 2, 0, 0, 1),
        (12, 0, 1, 1, 1),
        (3, 1, 1, 1, 0),  # a hole: the file for another delta or for larger inputs serves
        (9, 2, 0, 2, 1),  # a hole: one with less error serves
        (5, 0, 0, 2, 0),  # a hole, and nothing serves
    ],
)
def test_the_sliders_show_what_lookup_finds(
    browser: Chromium, at: Path, table: Table, n: int, eps: int, delta: int, top: int, fraction: int
) -> None:
    browser.open(at, width=1200, dark=False)
    slide(browser, n=n, eps=eps, delta=delta, max_value=top, central_fraction=fraction)
    problem = {"n": USERS[n], "eps": EPS[eps], "delta": DELTA[delta], "max_value": TOPS[top]}
    said = browser.ask("document.querySelector('#lookup').textContent")
    heading = browser.ask("document.querySelector('#verdict').textContent")
    generate = browser.ask("document.querySelector('#generate').textContent")
    options = f"--n {USERS[n]} --eps {EPS[eps]:g} --delta {DELTA[delta]!r} --max-value {TOPS[top]}"
    assert generate.startswith(f"paramsearch generate {options} --central-fraction ")
    errors = embedded(at.read_text("utf-8"))["errors"]
    most = float(errors[(eps * len(TOPS) + top) * len(FRACTIONS) + fraction])
    try:
        found = table.lookup(Query(**problem, max_rmse=most))  # type: ignore[arg-type]  # ints and floats in one dict
    except InvalidParameter:
        assert "No file of this table serves" in heading
        assert browser.ask("document.querySelector('#get .ready').hidden") is True
        assert browser.ask("getComputedStyle(document.querySelector('.tiles')).display") == "none"
        quiet(browser, at)
        return
    row = found.row
    shown = browser.ask(NUMBERS)
    for name in ("noise_messages", "messages_per_user", "bits_per_user", "rmse", "atoms", "symbols",
                 "rmse_over_central", "delta_lower", "delta_upper"):  # fmt: skip
        assert shown[name] == getattr(row, name), name
    assert shown["row_eps"] == row.eps
    just = found.exact and row.central_fraction == FRACTIONS[fraction]
    assert ("for just this" in heading) is just
    assert ("stricter" in heading) is not found.exact
    words = browser.ask("document.querySelector('#distance').textContent")
    assert ("instead of" in words) is not just
    assert (f"inputs up to {row.max_value} instead" in words) is (row.max_value > TOPS[top])
    assert said == (
        f"paramsearch lookup 'small & <table>' {options} --max-rmse {most:g} -o parameters.json"
    )
    assert f"{row.noise_messages:,.1f}" == browser.ask(
        "document.querySelector('#noise_messages').textContent"
    )
    quiet(browser, at)


COMMANDS = "lookup", "generate"


def wait(browser: Chromium) -> None:
    settled(browser, "new Promise(done => setTimeout(done, 200))")


def settled(browser: Chromium, expression: str) -> Any:
    answer = browser.call(
        "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
    )
    assert "exceptionDetails" not in answer, answer
    return answer["result"].get("value")


def test_the_downloads_are_the_files(browser: Chromium, at: Path, table: Table) -> None:
    browser.open(at, width=1200, dark=False)
    for i, row in enumerate(table.rows[::5]):
        content = settled(browser, f"fileBytes(DATA.rows[{5 * i}]).then(bytes => [...bytes])")
        assert bytes(content) == (table.path / row.file).read_bytes()
    browser.ask("""{ const saved = window.saved = [];
      HTMLAnchorElement.prototype.click = function () { saved.push(this.download, this.href) };
      navigator.clipboard.writeText = async text => { saved.push(text) } }""")
    browser.ask("document.querySelectorAll('#get button').forEach(button => button.click())")
    wait(browser)
    copied = [browser.ask(f"document.querySelector('#{name}').textContent") for name in COMMANDS]
    saved = browser.ask("window.saved")
    assert set(copied) <= set(saved)
    assert "3-1-1e-06-0.9.json" in saved
    assert [text for text in saved if text.startswith("blob:")]
    quiet(browser, at)


def test_a_file_for_another_number_of_users_is_not_handed_out(browser: Chromium, at: Path) -> None:
    """With the file for a million users, each of a thousand would add a part in a million."""
    browser.open(at, width=1200, dark=False)
    browser.ask("""{ const saved = window.saved = [];
      HTMLAnchorElement.prototype.click = function () { saved.push(this.download) } }""")
    for i, n in enumerate(USERS):
        slide(browser, n=i)
        shown = browser.ask("document.getElementById('download').checkVisibility()")
        assert shown == (n == 1_000_000)
        browser.ask("document.getElementById('download').click()")
        wait(browser)
        assert browser.ask("window.saved.length") == (n >= 1_000_000)
        command = browser.ask("document.getElementById('lookup').textContent")
        assert f"--n {n} " in command
        assert f"{n:,} users" in browser.ask("document.getElementById('rescaled').textContent")
        assert browser.ask("document.getElementById('rescaled').checkVisibility()") != shown
    quiet(browser, at)


def test_the_address_keeps_the_choice(browser: Chromium, at: Path) -> None:
    browser.open(at, width=1200, dark=False)
    slide(browser, eps=0, max_value=0, n=2)
    browser.ask("document.querySelector('[value=bits]').click()")
    address = browser.ask("location.hash")
    assert address == ("#n=10000&eps=0.5&delta=1e-06&max_value=1&central_fraction=0.9&cost=bits")
    before = browser.ask("document.querySelector('main').innerText")
    browser.open(at, width=1200, dark=False)
    assert browser.ask("document.querySelector('main').innerText") != before
    browser.ask(f"location.hash = {address!r}")
    wait(browser)
    assert browser.ask("document.querySelector('main').innerText") == before
    browser.ask("location.hash = '#eps=7&n=x&cost=constructor&delta=&junk'")
    wait(browser)
    assert browser.ask("document.querySelector('main').innerText") == before
    quiet(browser, at)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1200, 360], ids=["desktop", "phone"])
def test_it_fits_and_can_be_read(browser: Chromium, at: Path, width: int, dark: bool) -> None:
    browser.open(at, width=width, dark=dark)
    ink, paper = (
        sum(map(int, re.findall(r"\d+", browser.ask(f"getComputedStyle(document.body).{name}"))))
        for name in ("color", "backgroundColor")
    )
    assert (ink > paper) is dark
    for kind in ("messages", "extra", "bits"):
        browser.ask(f"document.querySelector('[value={kind}]').click()")
        browser.ask("document.querySelectorAll('details').forEach(part => part.open = true)")
        assert browser.ask("document.documentElement.scrollWidth") <= width
        assert browser.ask(CLIPPED) == []
        assert browser.ask("document.querySelectorAll('figure > svg path.line').length") >= 20
    labels = browser.ask("[...document.querySelectorAll('svg[role=img]')].map(s => s.ariaLabel)")
    assert len(labels) == 5
    assert all("table" in label for label in labels)
    unnamed = "[...document.querySelectorAll('input')].filter(i => !i.labels.length).length"
    assert browser.ask(unnamed) == 0
    quiet(browser, at)


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package's own table, without waiting for the other mechanisms' numbers."""
    path = tmp_path_factory.mktemp("full") / "explorer.html"
    one = data.baselines(Axes((10**6,), (1.0,), (1e-6,), (5,), (0.9,)))

    def few(axes: Axes, _: object) -> dict[str, Any]:
        """One problem's numbers at every place: as many of them as there would be."""
        counts = {
            name: math.prod(len(getattr(axes, axis)) for axis in known["axes"])
            for name, known in one.items()
        }
        return {
            name: {k: v if k == "axes" else v * counts[name] for k, v in known.items()}
            for name, known in one.items()
        }

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(data, "baselines", few)
        path.write_text(page(Table.open()), "utf-8")
    return path


def test_the_packages_own_table_is_there(browser: Chromium, full: Path) -> None:
    browser.open(full, width=1200, dark=False)
    assert browser.ask("document.querySelectorAll('figure > svg').length") == 5
    assert browser.ask("DATA.rows.length") == len(Table.open().rows)
    quiet(browser, full)


def test_every_stop_shows_what_lookup_finds(browser: Chromium, full: Path) -> None:
    browser.open(full, width=1200, dark=False)
    shown = browser.ask("""DATA.axes.eps.flatMap((_, eps) => DATA.axes.delta.flatMap((_, delta) =>
      DATA.axes.max_value.flatMap((_, max_value) => DATA.axes.central_fraction.map(
        (_, central_fraction) => {
          const at = { n: 0, eps, delta, max_value, central_fraction }, row = found(at);
          return [allowed(at), row && row.file] }))))""")
    table = Table.open()
    axes = [sorted({getattr(row, name) for row in table.rows}) for name in ("eps", "delta")]
    tops = sorted({row.max_value for row in table.rows})
    fractions = len({row.central_fraction for row in table.rows})
    asked = product(*axes, tops, range(fractions))
    for (eps, delta, top, _), (most, file) in zip(asked, shown, strict=True):
        try:
            query = Query(n=1000, eps=eps, delta=delta, max_value=top, max_rmse=float(most))
            row = table.lookup(query).row
        except InvalidParameter:
            assert file is None
        else:
            assert file == row.file
