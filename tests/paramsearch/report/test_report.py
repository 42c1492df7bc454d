"""The audit report: what it says, that it is safe to open, and that it looks right in a browser."""

from __future__ import annotations

import json
import math
import re
import tomllib
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from decimal import Decimal
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chromium import CLIPPED, Chromium
from hypothesis import given
from hypothesis import strategies as st
from pages import balanced, body, contrast, words
from places import ROOT

from accounting import Protocol
from accounting.model.change import Change
from accounting.model.configuration import Proposal
from paramsearch.certification.audit import Audit, audit
from paramsearch.certification.certify import certify
from paramsearch.parameters.assembly import reassembled, uncertified
from paramsearch.parameters.claim import Claim
from paramsearch.parameters.documents import RejectedFile
from paramsearch.parameters.parameter_file import ParameterFile
from paramsearch.report import page as report
from paramsearch.report.charts import LARGEST_MAP, block_maximum, block_size, pair_map
from paramsearch.report.html import atom_text, label, number
from paramsearch.report.noise import cost_section, noise_section
from paramsearch.report.sections import AuditedFile

SMALL = json.loads((ROOT / "tests/examples/sum_to_2.json").read_text())
HOSTILE = "\"'><img src=x onerror=alert(1)><script>window.pwned=1</script>\u202e\x07&lt;"


@cache
def certified() -> tuple[ParameterFile, Audit]:
    file = certify(uncertified(Proposal.of(SMALL), seed=7, settings={"family": "by hand"}))
    return file, audit(file)


@cache
def violated() -> tuple[Proposal, Audit]:
    proposal = Proposal.of({**SMALL, "delta": 1e-8})
    return proposal, audit(proposal)


@cache
def disclosed() -> tuple[Proposal, Audit]:
    silent = {"atom": [-1, -1, 2], "r": 0.0, "p": 0.5}
    proposal = Proposal.of({**SMALL, "atoms": [SMALL["atoms"][0], silent]})
    return proposal, audit(proposal)


@cache
def rejected() -> tuple[ParameterFile, Audit]:
    file, _ = certified()
    document = RejectedFile("it was changed after it was sealed", reassembled(file, None))
    return reassembled(file, None), audit(document)


def audited(source: str, signature: str | None = None) -> AuditedFile:
    day = date(2021, 7, 18)
    return AuditedFile(source=source, sha256="0f" * 32, audited_on=day, signature=signature)


@cache
def page(example: Callable[[], tuple[Any, Audit]], source: str = "/somewhere/sum.json") -> str:
    document, found = example()
    curve, pairs = report.curve(found), report.pair_bounds(found)
    return report.render(found, document, audited(source), curve=curve, pairs=pairs)


def bare(found: Audit, document: ParameterFile | Proposal, source: str = "x.json") -> str:
    return report.render(found, document, audited(source), curve=None, pairs=None)


@pytest.mark.parametrize("example", [certified, violated, disclosed, rejected])
def test_the_page_is_whole_and_needs_nothing_from_outside(
    example: Callable[[], tuple[Any, Audit]],
) -> None:
    html = page(example)
    assert balanced(html)
    for outside in ("http://", "https://", "<script", "url(", "@import", "src=", "href="):
        assert outside not in html
    assert "/somewhere" not in html
    ids = re.findall(r'\bid="([^"]*)"', html)
    assert len(ids) == len(set(ids))
    for names in re.findall(r'aria-labelledby="([^"]*)"', html):
        assert set(names.split()) <= set(ids)
    assert html == page.__wrapped__(example)  # the same audit gives the same page


def test_a_certified_file() -> None:
    file, found = certified()
    assert found.proof is not None
    html, text = page(certified), words(page(certified))
    assert "<title>Certified: sum.json</title>" in html
    assert "δ is at most 1.58149 × 10−7." in text  # 1.581483...
    assert "1.5814 × 10−7 ≤ δ ≤ 1.5815 × 10−7 at ε = 1" in text
    assert f'title="{found.proof.enclosure.upper!r}"' in html
    assert file.sha256 in text
    assert file.atoms[0].rate in html  # in full, in a title
    assert "{2, −1 × 2}" in text
    assert "Users100,000" in text
    assert "3,343.52, all users together" in text
    assert "input 2 becomes 0" in text
    assert f"{found.proof.precision} bits" in text
    assert "familyby hand" in text
    assert "Witness" not in text


def test_the_file_and_the_day_are_named() -> None:
    for example in (certified, violated, rejected):
        html, text = page(example), words(page(example))
        assert '<time datetime="2021-07-18">18 July 2021</time>' in html
        assert "SHA-256 of its bytes: " + "0f" * 32 in text
        assert "SHA-256, bytes" + "0f" * 32 in text


def test_every_hash_says_what_it_is_of() -> None:
    """Was: "of the file", both for the bytes and for the content, which differ."""
    file, _ = certified()
    text = words(page(certified))
    assert f"SHA-256 of its content: {file.sha256} · SHA-256 of its bytes: " + "0f" * 32 in text
    assert f"SHA-256, content{file.sha256} (of its fields, whatever the white space" in text
    assert "SHA-256, bytes" + "0f" * 32 + " (of every byte, as sha256sum prints it)" in text
    assert "leaves white space and the order of fields out" in text.split("Glossary")[1]
    client = ROOT / "paramsearch" / "deploy" / "javascript" / "page.js"
    assert "the file's content has the SHA-256 ${sha256" in client.read_text()


def test_a_page_for_readers_who_are_no_specialists() -> None:
    text = words(page(certified))
    # e = 2.71828...: the number of the text is a bound
    assert "is then at most 2.719 times what it was, plus at most 1.582 × 10−7." in text
    assert "holds only if all 100,000 users add their noise" in text
    assert "Whether it meets a legal requirement is for others to judge." in text
    assert "proved not to hold" in words(page(violated))
    for term in ("ε (epsilon)", "δ (delta)", "Noise", "Atom", "Burst", "Shuffler", "RMSE"):
        assert f"{term}" in text.split("Glossary")[1]
    file, _ = certified()
    fewer = audit(file, Claim.of(file, honest=0.75), tier="fast")
    assert "the case that at least 75 % of the users add their noise" in words(bare(fewer, file))
    open_question = replace(fewer, verdict="undecided", reason="the bounds contain the claim")
    assert "neither prove nor refute" in words(bare(open_question, file))
    several = audit(file, Claim.of(file, releases=2, eps=3.0), tier="fast")
    assert "a person’s values in all releases together by any other" in words(bare(several, file))
    assert "data is used 2 times, no more" in words(bare(several, file))


def test_a_rejected_file_is_never_called_certified() -> None:
    file, found = rejected()
    assert (found.verdict, found.noise_verdict) == ("rejected", "certified")
    html, text = page(rejected), words(page(rejected))
    assert "<title>Rejected: sum.json</title>" in html
    assert "It was changed after it was sealed." in text
    assert "by itself, it meets the claim; the file is rejected all the same" in text
    assert "must not be used" in text
    assert file.sha256 not in text  # of what was made from its noise
    assert "The claim is proved" not in text.split("Glossary")[0]


@pytest.mark.parametrize("length", [150, 500, 1500])
def test_a_reason_is_not_cut(length: int) -> None:
    file, found = certified()
    reason = ("the bounds contain what was claimed " * 100)[:length] + " and this is its end"
    text = words(bare(replace(found, verdict="undecided", reason=reason), file))
    assert "and this is its end." in text
    endless = replace(found, verdict="undecided", reason="x" * 100_000)
    assert "x" * 3000 not in bare(endless, file)
    assert "…." not in bare(endless, file)


@pytest.mark.parametrize("inputs", [3, 11, 21, 32, 51, 64, 101])
def test_neighbors_in_the_map_share_their_edges(inputs: int) -> None:
    """A gap of a hundredth shows as a line of the page's color at some sizes of the page."""
    bounds = 10 ** np.random.default_rng(inputs).uniform(-9, -6, (inputs, inputs))
    np.fill_diagonal(bounds, math.nan)
    drawing = ET.fromstring(pair_map(bounds, worst=None))
    cells = []
    for rect in drawing.iter("rect"):
        if rect.find("title") is not None:
            x, y, width, height = (
                Decimal(rect.attrib[name]) for name in ("x", "y", "width", "height")
            )
            cells.append((x, y, x + width, y + height))
    for path in drawing.iter("path"):
        for left, top, right, bottom in re.findall(
            r"M([\d.]+) ([\d.]+)H([\d.]+)V([\d.]+)", path.attrib["d"]
        ):
            cells.append((Decimal(left), Decimal(top), Decimal(right), Decimal(bottom)))
    assert cells
    for value in (edge for cell in cells for edge in cell):
        assert value * 8 == int(value * 8)  # exact in the arithmetic of a browser
    count = math.ceil(inputs / block_size(inputs))
    for first, last in ((0, 2), (1, 3)):
        edges = {cell[end] for cell in cells for end in (first, last)}
        assert len(edges) == count + 1  # one between any two neighbors


def test_a_limit_above_the_claim_is_said() -> None:
    little = [{**entry, "r": 0.5, "p": 0.5} for entry in SMALL["atoms"]]
    proposal = Proposal.of({**SMALL, "atoms": little})
    text = words(bare(audit(proposal), proposal))
    assert "No ε holds at this δ: as ε grows without bound, δ falls to a limit between" in text
    assert "Weak noise. {2, −1 × 2}: 25 % of the messages; about 1,500 times as much" in text


def test_a_violation_comes_with_its_witness() -> None:
    _, found = violated()
    assert found.satisfied_eps is not None
    text = words(page(violated))
    assert "Violated" in text
    assert "When input 2 becomes 0, δ is at least 1.5814 × 10−7" in text
    assert f"satisfies ε = {label(found.satisfied_eps.upper, 5, 'upper')}" in text
    assert "15.8 times above the claim" in text


def test_a_message_without_noise() -> None:
    text = words(page(disclosed))
    assert "every outcome reveals the change" in text
    assert "No ε makes up for that: δ = 1" in text
    assert "δ = 1 for every ε" in text
    assert "<figure" not in page(disclosed)


def test_a_false_certificate_is_not_called_a_false_claim() -> None:
    file, _ = certified()
    assert file.certificate is not None
    forged = file.certificate.model_copy(update={"delta_lower": 0.0, "delta_upper": 1e-7})
    found = audit(reassembled(file, forged), explain=False)
    text = words(bare(found, reassembled(file, forged)))
    assert found.verdict == "misstated"
    assert "Misstated" in text
    assert text.count("violates") == text.count("Violated") - 1 == 0  # only in the glossary
    assert "The certificate says δ is at most 10−7" in text
    assert "by itself, it meets the claim; the file is misstated all the same." in text
    assert "Its fieldsfalse: delta_upper; not checked: worst_pair, proof" in text
    assert "it would give the protection that is claimed" in text


def test_everything_renders_without_a_proof() -> None:
    file, found = certified()
    undecided = replace(found, verdict="undecided", reason="too large", proof=None)
    text = words(bare(undecided, file))
    assert "Undecided" in text
    assert "Too large." in text
    assert "No proof was completed" in text
    assert "Not drawn" in text
    for html in (bare(undecided, Proposal.of(SMALL)), bare(found, Proposal.of(SMALL))):
        body(html)
    drawn = page(certified)
    assert drawn.count("<figure>") == 2


def test_dishonest_users_are_said() -> None:
    file, _ = certified()
    found = audit(file, Claim.of(file, honest=0.75), tier="fast")
    assert report.curve(found) is None
    assert report.pair_bounds(found) is None
    text = words(bare(found, file))
    assert "75 % of the users add their noise" in text
    assert "the file says honest fraction = 1." in text
    assert "noise of the honest users on +1 and −1 differs" in text
    assert found.verdict == "violated"
    assert "The protection that is claimed is proved not to hold" in text


def hostile() -> tuple[ParameterFile, Audit]:
    file, found = certified()
    assert file.certificate is not None
    software = {HOSTILE: HOSTILE}
    made = {"tool": HOSTILE, "version": HOSTILE, "settings": {HOSTILE: HOSTILE, "b": "x" * 9999}}
    bad = file.model_copy(
        update={
            "certificate": file.certificate.model_copy(update={"software": software}),
            "provenance": file.provenance.model_copy(update=made),
        }
    )
    return bad, replace(found, reason=HOSTILE)


def test_a_hostile_file_cannot_inject_markup() -> None:
    document, found = hostile()
    file = audited(f"folder/{HOSTILE}", HOSTILE)
    html = report.render(found, document, file, curve=None, pairs=None)
    clean = {element.tag for element in body(page(certified)).iter()}
    for element in body(html).iter():
        assert element.tag in clean
        assert not [name for name in element.attrib if name.startswith("on") or name == "style"]
    assert "<script" not in html
    assert "<img" not in html
    assert "&lt;img src=x onerror=alert(1)&gt;" in html
    assert "\u202e" not in html
    assert "\x07" not in html
    assert "x" * 1000 not in html
    assert "default-src 'none'" in html


def test_write_is_atomic_and_names_only_the_file(tmp_path: Path) -> None:
    file, found = certified()
    target = tmp_path / "report.html"
    seen: list[str] = []
    source = audited(str(tmp_path / "s.json"), "good")
    report.write(target, found, file, source, progress=seen.append)
    html = target.read_text("utf-8")
    assert str(tmp_path) not in html
    assert "Signaturegood" in words(html)
    assert seen
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize(("inputs", "size"), [(3, 1), (64, 1), (65, 2), (101, 2), (130, 3)])
def test_a_block_shows_its_maximum(inputs: int, size: int) -> None:
    rng = np.random.default_rng(inputs)
    bounds = 10 ** rng.uniform(-12, -6, (inputs, inputs))
    np.fill_diagonal(bounds, math.nan)
    assert block_size(inputs) == size
    cells = block_maximum(bounds, size)
    assert len(cells) == math.ceil(inputs / size) <= LARGEST_MAP
    for (a, b), found in np.ndenumerate(cells):
        block = bounds[a * size : (a + 1) * size, b * size : (b + 1) * size]
        known = block[~np.isnan(block)]
        assert math.isnan(found) if not len(known) else found == known.max()
    drawing = ET.fromstring(pair_map(bounds, worst=Change(0, 1)))
    cell_titles = [rect for rect in drawing.iter("rect") if rect.find("title") is not None]
    assert len(cell_titles) == (inputs * (inputs - 1) if inputs <= 32 else 0)


def test_pairs_of_equal_or_no_divergence_have_a_map() -> None:
    bounds = np.zeros((40, 40))
    np.fill_diagonal(bounds, math.nan)
    ET.fromstring(pair_map(bounds, worst=None))
    bounds[~np.isnan(bounds)] = 1.0
    ET.fromstring(pair_map(bounds, worst=Change(39, 0)))


@pytest.mark.parametrize("example", [certified, violated])
def test_the_curve_is_monotone_and_holds_the_truth(
    example: Callable[[], tuple[Any, Audit]],
) -> None:
    _, found = example()
    curve = report.curve(found)
    assert curve is not None
    assert [at for at, _ in curve][:: len(curve) - 1] == [0.0, 2.0]
    for (_, one), (_, two) in pairwise(curve):
        assert one.lower >= two.lower
        assert one.upper >= two.upper
    protocol = Protocol(Proposal.of(SMALL).configuration())
    for at, bound in curve[::3]:
        close = protocol.delta(at, gap=1e-3).enclosure
        assert bound.lower <= close.upper * (1 + 1e-9)  # the file rounds to a little more noise
        assert close.lower * (1 - 1e-9) <= bound.upper
        assert bound.relative_gap <= 0.06
    assert found.proof is not None
    middle = dict(curve)[found.claim.eps]
    assert middle.lower <= found.proof.enclosure.upper
    assert found.proof.enclosure.lower <= middle.upper


def test_the_pair_bounds_hold_the_worst_pair() -> None:
    _, found = certified()
    assert found.proof is not None
    bounds = report.pair_bounds(found)
    assert bounds is not None
    assert np.isnan(np.diag(bounds)).all()
    protocol = Protocol(Proposal.of(SMALL).configuration())
    for j, k in np.argwhere(~np.isnan(bounds)).tolist():
        assert protocol.delta_of(Change(j, k), found.claim.eps).enclosure.lower <= bounds[j, k] * (
            1 + 1e-9
        )
    assert bounds[found.proof.worst_change.listed] == np.nanmax(bounds)


@given(st.floats(min_value=1e-300, max_value=1e5), st.integers(2, 6))
def test_a_bound_is_never_shown_on_its_wrong_side(value: float, digits: int) -> None:
    low, high = (_shown(value, digits, side) for side in ("lower", "upper"))
    assert low <= Decimal(value) <= high
    assert high - low <= Decimal(value) * Decimal(10) ** (1 - digits)


def _shown(value: float, digits: int, side: Any) -> Decimal:
    text = "".join(ET.fromstring(number(value, digits, side)).itertext()).replace("−", "-")
    if " × 10" in text:
        mantissa, _, exponent = text.partition(" × 10")
        return Decimal(mantissa).scaleb(int(exponent))
    return Decimal(text.replace(",", ""))


def test_atoms_are_written_compactly() -> None:
    assert atom_text((-1, -1, -1, -1, -1, 5)) == "{5, −1 × 5}"
    assert atom_text((-1, 1)) == "{1, −1}"
    long = atom_text((*range(-20, 0), *range(1, 21)))
    assert long == "{20, −20, 19, −19, 18, −18, 17, −17, 32 other values}"


def test_numbers_for_people() -> None:
    assert label(1e-6) == "10⁻⁶"
    assert label(1.58e-7) == "1.58 × 10⁻⁷"
    assert label(3343.518, 6) == "3,343.52"
    assert label(252043.4, 3) == "252,043"
    assert label(0.0, 3) == "0"


def test_the_style_sheet_is_shipped_and_legible() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert "report/report.css" in project["tool"]["setuptools"]["package-data"]["paramsearch"]
    css = (ROOT / "paramsearch/report/report.css").read_text()
    schemes = re.findall(r"(--paper:[^}]*)", css)
    assert len(schemes) == 3
    for scheme in schemes:
        colour = dict(re.findall(r"--(\w+): #(\w{6})", scheme))
        for name in ("ink", "quiet", "accent", "claim", "good", "bad", "open"):
            for ground in ("paper", "tint"):
                assert contrast(colour[name], colour[ground]) >= 4.5


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1200, 360], ids=["desktop", "phone"])
def test_in_a_browser(browser: Chromium, tmp_path: Path, width: int, dark: bool) -> None:
    for example in (certified, violated, disclosed, rejected):
        path = tmp_path / "report.html"
        path.write_text(page(example), "utf-8")
        browser.open(path, width=width, dark=dark)
        assert browser.ask("matchMedia('(prefers-color-scheme: dark)').matches") is dark
        ink, paper = (
            sum(
                map(int, re.findall(r"\d+", browser.ask(f"getComputedStyle(document.body).{name}")))
            )
            for name in ("color", "backgroundColor")
        )
        assert (ink > paper) is dark
        assert browser.ask("innerWidth") == width
        assert browser.ask("document.documentElement.scrollWidth") <= width
        assert browser.ask(CLIPPED) == []
        browser.ask("document.querySelectorAll('details').forEach(part => part.open = true)")
        assert browser.ask("document.documentElement.scrollWidth") <= width
        loaded = browser.seen("Network.requestWillBeSent")
        assert [event["params"]["request"]["url"] for event in loaded] == [path.as_uri()]
        assert not browser.seen(
            "Log.entryAdded", "Runtime.exceptionThrown", "Runtime.consoleAPICalled"
        )


def test_a_hostile_file_in_a_browser(browser: Chromium, tmp_path: Path) -> None:
    document, found = hostile()
    path = tmp_path / "report.html"
    path.write_text(bare(found, document, source=HOSTILE), "utf-8")
    browser.open(path, width=360, dark=False)
    assert browser.ask("typeof window.pwned") == "undefined"
    assert browser.ask("document.images.length + document.scripts.length") == 0
    assert browser.ask("document.documentElement.scrollWidth") <= 360
    assert not browser.seen("Log.entryAdded", "Runtime.exceptionThrown")
    # were markup to get through, the policy would still stop it
    path.write_text(path.read_text("utf-8").replace("</main>", f"</main>{HOSTILE}"), "utf-8")
    browser.open(path, width=360, dark=False)
    assert browser.ask("document.scripts.length") == 1
    assert browser.ask("typeof window.pwned") == "undefined"


@pytest.mark.parametrize("eps_central", [1e-155, 1e-200, 1e-310])
def test_a_hostile_central_noise_has_a_report(eps_central: float) -> None:
    """Its variance is beyond the range of doubles; its standard deviation is not."""
    proposal = Proposal.of({**SMALL, "eps_central": eps_central})
    cost = cost_section(proposal, Claim.of(proposal))
    assert "RMSE" in noise_section(proposal, honest=1.0) + cost
    assert "inf" not in cost
