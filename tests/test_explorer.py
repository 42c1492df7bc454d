"""The explorer's page: what is in it, and what it does in a browser."""

from __future__ import annotations

import base64
import json
import math
import re
import shutil
import signal
import subprocess
import sys
import time
import tomllib
import urllib.error
import urllib.request
import zlib
from collections.abc import Iterator
from dataclasses import asdict
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from chromium import Chromium
from pages import contrast
from typer.testing import CliRunner

from accounting.baselines import (
    DiscreteLaplace,
    FragmentedRappor,
    Problem,
    RandomizedResponse,
    SplitAndMix,
)
from accounting.baselines.interface import rmse
from accounting.enclosure import at_least, at_most
from accounting.errors import InvalidConfiguration, InvalidParameter
from paramsearch.cli import app, main
from paramsearch.comparison import of_the_paper
from paramsearch.explore_command import Server
from paramsearch.explorer import data
from paramsearch.explorer.data import USERS
from paramsearch.explorer.others import RESPONSE_USERS, Axes
from paramsearch.explorer.page import page
from paramsearch.tables import index
from paramsearch.tables.folder import Folder
from paramsearch.tables.grid import Grid
from paramsearch.tables.lookup import Table, shipped

ROOT = Path(__file__).parent.parent
EPS, DELTA, TOPS, FRACTIONS = (0.5, 1.0, 2.0), (1e-8, 1e-6), (1, 2, 3), (0.9, 0.5)
MISSING = ["2-1-1e-06-0.9", "3-2-1e-08-0.5", "3-0.5-1e-08-0.9", "3-0.5-1e-08-0.5", "1-1-1e-06-0.5"]
NAMESPACE = "http://www.w3.org/2000/svg"


def make(path: Path) -> Table:
    """Some files of the package's own table, with holes."""
    (path / "files").mkdir(parents=True)
    for parts in product(TOPS, EPS, DELTA, FRACTIONS):
        name = "-".join([str(parts[0]), *(repr(x).removesuffix(".0") for x in parts[1:])])
        if name not in MISSING:
            shutil.copy(shipped() / "files" / f"{name}.json", path / "files")
    folder = Folder(path, Grid(eps=EPS, delta=DELTA, max_value=TOPS, central_fraction=FRACTIONS))
    folder.write_index()
    folder.close()
    return Table.open(path)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    return make(tmp_path_factory.mktemp("made") / "small & <table>")


@pytest.fixture(scope="module")
def small(table: Table) -> str:
    return page(table)


@pytest.fixture(scope="module")
def known(small: str) -> Any:
    return embedded(small)


def embedded(html: str) -> Any:
    found = re.search(r'<script type="application/json" id="data">([^<]*)</script>', html)
    assert found is not None
    return json.loads(found[1])


def test_the_page_needs_nothing_from_outside(table: Table, small: str) -> None:
    rest = small.replace(NAMESPACE, "")
    for outside in (
        "http://",
        "https://",
        "src=",
        "url(",
        "@import",
        "eval(",
        "innerHTML",
        "fetch(",
    ):
        assert outside not in rest
    assert re.findall(r'href="([^"]*)"', small) == ["data:,"]
    assert "default-src 'none'; style-src 'sha256-" in small
    assert str(table.path.parent) not in small
    assert small.count("<script") == small.count("</script>") == 2
    small = small[small.index("</style>") :]
    ids = re.findall(r'\bid="([^"]*)"', small)
    assert len(ids) == len(set(ids))
    for names in re.findall(r'(?:aria-labelledby|for|list)="([^"]*)"', small):
        assert set(names.split()) <= set(ids)


def test_the_same_table_gives_the_same_page(table: Table, small: str) -> None:
    assert small == page(Table.open(table.path))


def test_the_rows_and_files_are_those_of_the_table(table: Table, known: Any) -> None:
    assert len(known["rows"]) == len(table.rows) == 36 - len(MISSING)
    for said, row in zip(known["rows"], table.rows, strict=True):
        assert said.pop("delta_bounds") == [at_least(row.delta_lower), at_most(row.delta_upper)]
        assert said == {key: value for key, value in asdict(row).items() if key in said}
        assert set(asdict(row)) - set(said) == {
            "n", "messages_per_user", "bits_per_user", "seconds"
        }  # fmt: skip
        content = zlib.decompress(base64.b64decode(known["files"][row.file]))
        assert content == (table.path / row.file).read_bytes()
    assert known["table"] == "'small & <table>'"


def test_the_error_of_a_stop_is_that_of_its_cell(table: Table, known: Any) -> None:
    stops = list(product(EPS, TOPS, FRACTIONS))
    assert len(known["errors"]) == len(stops)
    for (eps, top, fraction), most in zip(stops, map(float, known["errors"]), strict=True):
        of_cell = [
            row.rmse
            for row in table.rows
            if (row.eps, row.max_value, row.central_fraction) == (eps, top, fraction)
        ]
        for error in of_cell:
            assert error <= most <= error * (1 + 2e-5)


def place(known: Any, name: str, **at: float) -> int:
    index = 0
    for axis in known["others"][name]["axes"]:
        stops = [float(text) for text in known["axes"][axis]]
        index = index * len(stops) + stops.index(at[axis])
    return index


@pytest.mark.parametrize(
    ("n", "eps", "delta", "top", "fraction"),
    [(1_000, 0.5, 1e-8, 3, 0.9), (1_000_000, 1.0, 1e-6, 2, 0.5), (10**9, 2.0, 1e-6, 1, 0.9)],
)
def test_the_others_are_those_of_the_comparison(
    known: Any, n: int, eps: float, delta: float, top: int, fraction: float
) -> None:
    problem = Problem(n, eps, delta, top)
    at = {"n": n, "eps": eps, "delta": delta, "max_value": top, "central_fraction": fraction}
    expected = {
        "ikos": SplitAndMix(problem),
        "rappor": FragmentedRappor(problem),
        "response": RandomizedResponse(Problem(RESPONSE_USERS, eps, delta, top)),
        "central": DiscreteLaplace(problem),
    }
    for name, mechanism in expected.items():
        said, i = known["others"][name], place(known, name, **at)
        assert said["messages"][i] == pytest.approx(mechanism.messages, rel=1e-6)
        assert said["bits"][i] == pytest.approx(mechanism.bits, rel=1e-6)
        assert said["rmse"][i] == pytest.approx(rmse(mechanism), rel=1e-6)
    for name, noise in zip(("theorem", "refined"), of_the_paper(problem, fraction), strict=True):
        said, i = known["others"][name], place(known, name, **at)
        assert 1 + said["noise"][i] / n == pytest.approx(noise.messages, rel=1e-6)
        assert said["bits_per_message"][i] == noise.bits_per_message
        assert said["rmse"][i] == pytest.approx(rmse(noise), rel=1e-6)


def test_the_command(table: Table, small: str, tmp_path: Path) -> None:
    target = tmp_path / "explorer.html"
    done = CliRunner().invoke(app, ["explore", str(table.path), "-o", str(target), "--json"])
    assert done.exit_code == 0
    said = json.loads(done.stdout)
    assert said["path"] == str(target)
    assert said["files"] == len(table.rows)
    assert said["bytes"] == target.stat().st_size
    assert target.read_text("utf-8") == small
    assert list(tmp_path.iterdir()) == [target]


def test_bad_input_is_refused_and_nothing_is_written(
    table: Table,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    def refused(*arguments: str) -> str:
        monkeypatch.setattr(sys, "argv", ["paramsearch", "explore", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code == 2
        said = capfd.readouterr()
        assert said.out == ""
        assert len(said.err.splitlines()) == 1
        return said.err

    target, empty = tmp_path / "page.html", tmp_path / "empty"
    empty.mkdir()
    assert "is no table" in refused(str(empty), "-o", str(target))
    index.write(empty / "index.parquet", [])
    assert "is empty" in refused(str(empty), "-o", str(target))
    assert "where to?" in refused(str(table.path))
    assert ".html" in refused(str(table.path), "-o", str(tmp_path / "page.txt"))
    assert "no folder" in refused(str(table.path), "-o", str(tmp_path / "no" / "page.html"))
    assert "--port 70000" in refused(str(table.path), "--serve", "--port", "70000")
    assert list(tmp_path.iterdir()) == [empty]


def test_a_file_that_is_not_the_one_of_the_index_is_refused(tmp_path: Path) -> None:
    changed = make(tmp_path / "table")
    first, second = (changed.path / row.file for row in changed.rows[:2])
    shutil.copy(first, second)
    with pytest.raises(InvalidConfiguration, match="not the certified file of the index"):
        page(changed)
    second.unlink()
    with pytest.raises(InvalidConfiguration, match="cannot be read"):
        page(changed)


def test_a_port_that_is_taken_is_refused() -> None:
    with (
        Server(0) as server,
        pytest.raises(InvalidParameter, match=f"--port {server.server_port}"),
    ):
        Server(server.server_port)


def test_the_page_is_served_to_this_machine_until_it_is_interrupted(
    table: Table, small: str
) -> None:
    command = [sys.executable, "-m", "paramsearch", "explore", str(table.path), "--serve"]
    process = subprocess.Popen(
        [*command, "--port", "0"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        address = process.stderr.readline().split()[0]
        assert address.startswith("http://127.0.0.1:")
        with urllib.request.urlopen(address, timeout=20) as answer:
            assert answer.read().decode("utf-8") == small
            assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
            assert answer.headers["X-Content-Type-Options"] == "nosniff"
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(address + "index.parquet", timeout=20)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=20)
        assert process.returncode == 0
    finally:
        process.kill()
        process.communicate()


def test_the_assets_are_shipped_and_legible() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    data = project["tool"]["setuptools"]["package-data"]["paramsearch"]
    assert {"explorer/*.html", "explorer/*.css", "explorer/*.js"} <= set(data)
    papers = re.findall(r"--paper: #(\w{6})", (ROOT / "paramsearch/report.css").read_text())
    css = (ROOT / "paramsearch/explorer/explorer.css").read_text()
    colours = re.findall(r"--violet: #(\w{6})", css)
    assert len(colours) == len(papers) == 3
    for colour, paper in zip(colours, papers, strict=True):
        assert contrast(colour, paper) >= 4.5


# in a browser


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("the page can only be rendered where Chromium is installed")
    started = Chromium(program, tmp_path_factory.mktemp("profile"))
    yield started
    started.close()


@pytest.fixture(scope="module")
def at(tmp_path_factory: pytest.TempPathFactory, small: str) -> Path:
    path = tmp_path_factory.mktemp("page") / "explorer.html"
    path.write_text(small, "utf-8")
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
        found = table.lookup(**problem, max_rmse=most)  # type: ignore[arg-type]
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
    assert ("stricter" in heading) is not just
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


OUTSIDE = """[...document.querySelectorAll('figure > svg')].flatMap(svg => {
  const box = svg.getBoundingClientRect();
  return [...svg.querySelectorAll('text')].filter(text => {
    const at = text.getBoundingClientRect();
    return at.left < box.left - 1 || at.right > box.right + 1 || at.bottom > box.bottom + 1;
  }).map(text => text.textContent);
})"""


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
        assert browser.ask(OUTSIDE) == []
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
    one = data.others(Axes((10**6,), (1.0,), (1e-6,), (5,), (0.9,)))

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
        patch.setattr(data, "others", few)
        path.write_text(page(Table.open()), "utf-8")
    return path


def test_the_packages_own_table_is_there_at_once(browser: Chromium, full: Path) -> None:
    begun = time.monotonic()
    browser.open(full, width=1200, dark=False)
    assert browser.ask("document.querySelectorAll('figure > svg').length") == 5
    wall = time.monotonic() - begun
    timing = "(t => t.loadEventEnd - t.startTime)(performance.getEntriesByType('navigation')[0])"
    assert browser.ask(timing) < 2000
    assert wall < 10
    assert browser.ask("DATA.rows.length") == len(Table.open().rows)
    redraw = "(() => { const t = performance.now(); show(); return performance.now() - t })()"
    assert browser.ask(redraw) < 500
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
            row = table.lookup(
                n=1000, eps=eps, delta=delta, max_value=top, max_rmse=float(most)
            ).row
        except InvalidParameter:
            assert file is None
        else:
            assert file == row.file
