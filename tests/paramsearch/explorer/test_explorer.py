"""The explorer's page: what is in it, and what it does in a browser."""

from __future__ import annotations

import base64
import json
import re
import shutil
import signal
import subprocess
import sys
import tomllib
import urllib.error
import urllib.request
import zlib
from dataclasses import asdict
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from explored import EPS, FRACTIONS, MISSING, TOPS, embedded, make
from pages import contrast
from places import ROOT
from typer.testing import CliRunner

from accounting.base.enclosure import at_least, at_most
from accounting.base.errors import InvalidConfiguration, InvalidParameter
from accounting.baselines import DiscreteLaplace, FragmentedRappor, RandomizedResponse, SplitAndMix
from accounting.baselines.interface import rmse
from accounting.model.problem import Problem
from paramsearch.cli.app import app, main
from paramsearch.cli.tables.page_server import PageServer
from paramsearch.comparison import published_noise
from paramsearch.explorer.baselines import RESPONSE_USERS
from paramsearch.explorer.page import page
from paramsearch.tables import index
from paramsearch.tables.lookup import Table

NAMESPACE = "http://www.w3.org/2000/svg"


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    return make(tmp_path_factory.mktemp("made") / "small & <table>")


@pytest.fixture(scope="module")
def small(table: Table) -> str:
    return page(table)


@pytest.fixture(scope="module")
def known(small: str) -> Any:
    return embedded(small)


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
            "n", "messages_per_user", "bits_per_user", "seconds",
            "objective", "adjacency", "version",
        }  # fmt: skip
        assert row.adjacency == known["adjacency"]  # said once, for all of them
        content = zlib.decompress(base64.b64decode(known["files"][row.file]))
        assert content == (table.path / row.file).read_bytes()
        assert known["users"][row.file] == json.loads(content)["problem"]["n"]
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
    problem = Problem(n=n, eps=eps, delta=delta, max_value=top)
    at = {"n": n, "eps": eps, "delta": delta, "max_value": top, "central_fraction": fraction}
    expected = {
        "ikos": SplitAndMix(problem),
        "rappor": FragmentedRappor(problem),
        "response": RandomizedResponse(
            Problem(n=RESPONSE_USERS, eps=eps, delta=delta, max_value=top)
        ),
        "central": DiscreteLaplace(problem),
    }
    for name, mechanism in expected.items():
        said, i = known["others"][name], place(known, name, **at)
        assert said["messages"][i] == pytest.approx(mechanism.messages, rel=1e-6)
        assert said["bits"][i] == pytest.approx(mechanism.bits, rel=1e-6)
        assert said["rmse"][i] == pytest.approx(rmse(mechanism), rel=1e-6)
    published = published_noise(problem, central_fraction=fraction)
    for name, noise in zip(("theorem", "refined"), published, strict=True):
        said, i = known["others"][name], place(known, name, **at)
        assert said["noise"][i] == pytest.approx(noise.noise_messages, rel=1e-4)
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
    assert "no destination" in refused(str(table.path))
    assert ".html" in refused(str(table.path), "-o", str(tmp_path / "page.txt"))
    assert "no folder" in refused(str(table.path), "-o", str(tmp_path / "no" / "page.html"))
    assert "--port 70000" in refused(str(table.path), "--serve", "--port", "70000")
    assert list(tmp_path.iterdir()) == [empty]


def test_a_file_that_is_not_the_one_of_the_index_is_refused(tmp_path: Path) -> None:
    changed = make(tmp_path / "table")
    first, second = (changed.path / row.file for row in changed.rows[:2])
    shutil.copy(first, second)
    with pytest.raises(InvalidConfiguration, match="is not what the index says"):
        page(changed)
    second.unlink()
    with pytest.raises(InvalidConfiguration, match="cannot be read"):
        page(changed)


def test_a_port_that_is_taken_is_refused() -> None:
    with (
        PageServer(0) as server,
        pytest.raises(InvalidParameter, match=f"--port {server.server_port}"),
    ):
        PageServer(server.server_port)


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
    papers = re.findall(r"--paper: #(\w{6})", (ROOT / "paramsearch/report/report.css").read_text())
    css = (ROOT / "paramsearch/explorer/explorer.css").read_text()
    colours = re.findall(r"--violet: #(\w{6})", css)
    assert len(colours) == len(papers) == 3
    for colour, paper in zip(colours, papers, strict=True):
        assert contrast(colour, paper) >= 4.5
