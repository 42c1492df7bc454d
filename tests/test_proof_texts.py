"""The proof texts: statements are numbered without gaps, and whatever cites one names it rightly.

In a text, lemmas and theorems are numbered by kind, in the order in which they stand; those of
floating_point.md are F1, F2, ...  A citation names its text right before or after the number, as in
"releases.md, Lemma 2" or "Lemma 2 of releases.md", or it means the text that it stands in; in a
program it then means the only text that the program's first lines name.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from places import ROOT

TEXTS = {
    path.name if path.name != "README.md" else f"{path.parent.name}/README.md": path
    for path in sorted((ROOT / "accounting").rglob("*.md"))
    if path.parent != ROOT / "accounting" and path.name != "CHECK.md"
}
"""By the names under which they are cited."""
NOTATION = ROOT / "accounting" / "notation.md"
BUDGET = "floating_point.md"
STATEMENT = re.compile(r"^\*\*(Lemma |Theorem |F)(\d+)\b", re.MULTILINE)
SECTION = re.compile(r"^## (\d+)\. ", re.MULTILINE)
NUMBERS = r"F?\d+(?:(?:, | and | or | to |–|-)F?\d+)*"
TEXT = r"(?:[\w`\[(./-]*?)(?P<{}>\w+\.md)(?:[`\])]|\(\S*?\))*"
CITED = re.compile(
    rf"(?:{TEXT.format('before')},? (?:the proof of |section \d+,? )?\(?)?"
    rf"\b(?P<kind>Lemma|Lemmas|Theorem|Theorems|section|sections) (?P<numbers>{NUMBERS})\b"
    rf"(?: (?:of|in) {TEXT.format('after')}|\]\([\w/.]*?(?P<link>\w+\.md)\))?"
)
ROUNDING = re.compile(r"(?<![\w#&])F(\d{1,2})\b(?:[–-]F(\d{1,2})\b)?")
OWN = re.compile(r"^(Lemma|Theorem) (\d+)\.  ", re.MULTILINE)
"""A statement in the first lines of a program."""
ELSEWHERE = re.compile(r"Hoeffding|specification|SPECIFICATION|GUIDE|Zubkov")
"""Near citations of what is no text of ours."""


@dataclass(frozen=True)
class Citation:
    text: str
    kind: str
    number: int
    where: str


@cache
def statements(text: str) -> dict[str, list[int]]:
    """The numbers of lemmas, theorems, rounding lemmas and sections, in order."""
    content = TEXTS[text].read_text(encoding="utf-8")
    found: dict[str, list[int]] = defaultdict(list)
    for kind, number in STATEMENT.findall(content):
        found[kind.strip()].append(int(number))
    found["section"] = [int(number) for number in SECTION.findall(content)]
    return dict(found)


def sources() -> list[Path]:
    found = [*TEXTS.values(), ROOT / "accounting" / "README.md"]
    for room in ("accounting", "paramsearch", "tests", "benchmarks"):
        found += (ROOT / room).rglob("*.py")
    return sorted(path for path in found if path != Path(__file__))


def one_line(content: str) -> str:
    """Comments and strings over several lines as single lines."""
    return re.sub(r"\s*\n\s*(?:# ?)?", " ", content)


def numbers(cited: str) -> list[int]:
    plain = cited.replace("F", "")
    ends = re.fullmatch(r"(\d+)(?: to |–|-)(\d+)", plain)
    if ends:
        return list(range(int(ends[1]), int(ends[2]) + 1))
    return [int(number) for number in re.findall(r"\d+", plain)]


def named(path: Path, content: str) -> str:
    """The text that a citation without a name means."""
    for name, place in TEXTS.items():
        if path == place:
            return name
    module = re.match(r'"""(.*?)"""', content, re.DOTALL)
    texts = re.findall(r"\w+\.md", module[1]) if module else []
    texts = [text for text in dict.fromkeys(texts) if text in TEXTS]
    return texts[0] if len(texts) == 1 else ""


def citations(path: Path) -> list[Citation]:
    content = path.read_text(encoding="utf-8")
    flat, default, found = one_line(content), named(path, content), []
    own = {(kind, int(number)) for kind, number in OWN.findall(content)}
    for match in CITED.finditer(flat):
        around = flat[max(0, match.start() - 60) : match.end() + 20]
        name = match["before"] or match["after"] or match["link"]
        text = f"{path.parent.name}/README.md" if name == "README.md" else name or default
        kind = match["kind"].removesuffix("s")
        if match["numbers"].startswith("F"):
            continue  # below
        if (kind == "section" and name is None) or ELSEWHERE.search(around):
            continue
        cited = [(kind, n) for n in numbers(match["numbers"])]
        found += [Citation(text, *one, around) for one in cited if text or one not in own]
    if "accounting" in path.parts[len(ROOT.parts) :]:
        for match in ROUNDING.finditer(flat):
            last = int(match[2] or match[1])
            around = flat[max(0, match.start() - 40) : match.end() + 20]
            found += [Citation(BUDGET, "F", n, around) for n in range(int(match[1]), last + 1)]
    return found


@pytest.mark.parametrize("text", TEXTS)
def test_statements_are_numbered_without_gaps(text: str) -> None:
    for kind, found in statements(text).items():
        assert found == list(range(1, len(found) + 1)), f"{kind} in {text}"


def test_the_texts_have_the_statements_that_are_expected() -> None:
    """That nothing is found would mean that the patterns are wrong."""
    assert len(statements(BUDGET)["F"]) == 9
    assert len(statements("releases.md")["Lemma"]) >= 8
    assert len(statements("exact_view.md")["Theorem"]) >= 4
    assert statements("notary.md")["section"] == list(range(1, 8))
    assert statements("reference/README.md")["Lemma"] == [1, 2, 3, 4, 5]


def test_every_statement_that_is_cited_exists() -> None:
    for path in sources():
        for cited in citations(path):
            assert cited.text in TEXTS, f"{path}: of which text? ...{cited.where}..."
            known = statements(cited.text).get(cited.kind, [])
            assert cited.number in known, f"{path}: not in {cited.text}: ...{cited.where}..."


def test_citations_are_found_and_checked() -> None:
    """The patterns of this file, on the ways in which texts and programs cite."""
    ways = {
        "(releases.md, Lemmas 2 and 8)": [("releases.md", 2), ("releases.md", 8)],
        "Lemma 4 of\n    discretisation.md": [("discretisation.md", 4)],
        "[`bursts.md`](../model/laws/bursts.md), Lemma 1)": [("bursts.md", 1)],
        "exact_view.md, the proof of Theorem 2": [("exact_view.md", 2)],
        "(composition/releases.md, Theorem 1)": [("releases.md", 1)],
        "notary.md, section 5, Lemma 5": [("notary.md", 5)],
        "[Theorem 3](evaluator/exact_view.md)": [("exact_view.md", 3)],
    }
    for text, expected in ways.items():
        found = [
            (match["before"] or match["after"] or match["link"], n)
            for match in CITED.finditer(one_line(text))
            for n in numbers(match["numbers"])
        ]
        assert found == expected, text
    assert numbers("3 to 5") == numbers("F3–F5") == [3, 4, 5]
    everywhere = [cited for path in sources() for cited in citations(path)]
    assert len(everywhere) > 250
    assert len({cited.text for cited in everywhere}) >= 9


def test_every_proof_text_names_the_notation_and_the_notation_is_a_table() -> None:
    symbols = re.findall(r"^\| ([^|]+) \|", NOTATION.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(symbols) > 25
    single = [s.strip() for row in symbols[2:] for s in row.replace("\\", "").split(",")]
    assert len(single) == len(set(single)), "a symbol is listed twice"
    for text, path in TEXTS.items():
        if statements(text).keys() - {"section"}:
            assert "notation.md" in path.read_text(encoding="utf-8"), text


@pytest.mark.parametrize("text", TEXTS)
def test_letters_of_the_table_have_no_second_meaning(text: str) -> None:
    """Not one of those that they once had."""
    second = {
        "e": ["e_{", "κe", "me)", "i)e ", "i)e,", "i)e}", "-2ie", "-2me"],
        "u": ["u_i", "u^(", "Σ_u", "ω·u that", "e^ε = u"],
        "h": ["h_c", "h_t", "h_1", "h̃", "h(u)", "h_d"],
        "κ": ["κ'", "κ_i", "κ_∞", "κ * "],
        "T": ["T_λ", "T̂", "‖T‖"],
        "D": ["D_i", "D^m", "D(x)", "D^s"],
        "M": ["M_f", "M_t", "M̂"],
        "λ": ["Poisson(λ", "rate λ", "λ(1-p)"],
        "‖·‖": ["‖₂"],
    }
    content = TEXTS[text].read_text(encoding="utf-8")
    for letter, uses in second.items():
        for use in uses:
            assert use not in content, f"{letter}: {use}"
