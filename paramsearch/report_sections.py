"""The sections of the report that are words and tables."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice

from accounting.configuration import Proposal
from paramsearch.audit import Audit, Verdict
from paramsearch.parameter_file import AtomNoise, CentralNoise, ParameterFile, Problem
from paramsearch.report_text import (
    Html,
    atom_text,
    chance,
    element,
    join,
    number,
    quotient,
    sentence,
    share,
    told,
)

Document = ParameterFile | Proposal
Fact = tuple[str, str]
_LARGEST_TABLE = 2000
"""Rows; a file may hold a million."""
_SIGNS: dict[Verdict, str] = {
    "certified": "M9 17l6 6 12-13",
    "violated": "M10 10l14 14M24 10l-14 14",
    "undecided": "M12.5 13a4.5 4.5 0 1 1 6.500 4.200c-1.300.7-2 1.500-2 3.100M17 25v.6",
}
_CENTRAL = "1 and −1, each"
_METHODS = {
    "ball": "ball arithmetic: each number is an interval that holds the true one",
    "fast": "floating point with proved error bounds",
    "disjoint supports": "every view tells the two inputs apart",
}


def section(name: str, heading: str, *content: str) -> Html:
    title = element("h2", heading, id=name)
    return element("section", title, *content, aria_labelledby=name)


def facts(items: Iterable[Fact]) -> Html:
    """Names and values, one under the other."""
    rows = [element("div", element("dt", name), element("dd", value)) for name, value in items]
    return element("dl", *rows)


def table(
    caption: str, heads: Iterable[str], rows: Iterable[Iterable[str]], kind: str = ""
) -> Html:
    """A table that scrolls in its own box, by keyboard too; the first column names the row."""
    head = element("tr", *(element("th", text, scope="col") for text in heads))
    body = []
    for first, *rest in rows:
        cells = (element("td", text) for text in rest)
        body.append(element("tr", element("th", first, scope="row"), *cells))
    whole = element(
        "table", element("caption", caption), element("thead", head), element("tbody", *body)
    )
    return element(
        "div", whole, class_=f"box {kind}".rstrip(), role="region", tabindex=0, aria_label=caption
    )


def verdict_section(audit: Audit) -> Html:
    """The answer, and what it rests on."""
    sign = element(
        "svg",
        element("circle", cx=17, cy=17, r=15.5),
        element("path", d=_SIGNS[audit.verdict]),
        viewBox="0 0 34 34",
        width=34,
        height=34,
        aria_hidden="true",
    )
    return element(
        "section",
        element("h2", sign, audit.verdict.capitalize(), id="verdict"),
        element("p", sentence(audit.reason), class_="reason"),
        facts(_answer(audit)),
        *_witness(audit),
        class_=f"verdict {audit.verdict}",
        aria_labelledby="verdict",
    )


def _answer(audit: Audit) -> Iterator[Fact]:
    proof, at = audit.proof, join(["at ε = ", number(audit.eps)])
    yield "Claimed", join(["δ ≤ ", number(audit.delta), " ", at])
    if proof is None:
        yield "Proved", "nothing"
        return
    low, high = proof.enclosure.lower, proof.enclosure.upper
    upper = number(high, 5, "upper")
    if low == high:
        yield "Proved", join(["δ = ", upper, " ", at])
    elif proof.exact:
        yield "Proved", join([number(low, 5, "lower"), " ≤ δ ≤ ", upper, " ", at])
    else:
        yield "Proved", join(["δ ≤ ", upper, " ", at, " (no lower bound: more atoms than values)"])
    if 0 < high <= audit.delta:
        yield "Margin", join([number(audit.delta / high, 3, "lower"), " times below the claim"])
    if low > audit.delta:
        yield "Margin", join([number(low / audit.delta, 3, "lower"), " times above the claim"])
    worst = worst_pair(audit)
    if worst is not None:
        yield "Worst change", f"input {worst[0]:,} becomes {worst[1]:,}"


def worst_pair(audit: Audit) -> tuple[int, int] | None:
    """The pair with the largest bound, where the bounds single one out."""
    proof = audit.proof
    if proof is None or (proof.exact and proof.enclosure.lower == 0):
        return None
    return proof.worst_pair


def _witness(audit: Audit) -> list[Html]:
    """For a violation: who sees it, and what holds instead."""
    proof, found = audit.proof, audit.satisfied_eps
    if audit.verdict != "violated" or proof is None:
        return []
    j, k = proof.worst_pair
    if proof.enclosure.lower == 1:
        words = join(
            [
                f"When one user's input changes from {j:,} to {k:,}, every outcome tells "
                "which of the two it was. No ε makes up for that: δ = 1 for all of them."
            ]
        )
        return [element("p", element("strong", "Witness. "), words)]
    if proof.enclosure.lower <= audit.delta:
        return [element("p", "The claimed δ is not what fails: the certificate in the file does.")]
    words = join(
        [
            f"When one user's input changes from {j:,} to {k:,}, δ is at least ",
            number(proof.enclosure.lower, 5, "lower"),
            ", more than the ",
            number(audit.delta),
            " claimed.",
        ]
    )
    holds: Html | str = "The ε that does hold at this δ was not determined."
    if found is not None:
        holds = join(
            [
                "At this δ it satisfies ε = ",
                number(found.upper, 5, "upper"),
                ", and no ε below ",
                number(found.lower, 5, "lower"),
                ".",
            ]
        )
    return [
        element("p", element("strong", "Witness. "), words),
        element("p", element("strong", "What holds instead. "), holds),
    ]


def problem_section(audit: Audit, document: Document) -> Html:
    """The question that was answered; the file may have asked another one."""
    own: Problem | Proposal
    if isinstance(document, ParameterFile):
        own, releases, honest = document.problem, document.problem.releases, document.problem.honest
    else:
        own, releases, honest = document, 1, 1.0
    top = audit.mechanism.max_value
    rows: list[Fact] = [
        ("Users", f"{own.n:,}" if own.n is not None else "not stated"),
        ("Inputs", f"whole numbers from 0 to {top:,}"),
        ("ε", number(audit.eps)),
        ("δ", number(audit.delta)),
        ("Adjacency", "substitution: one user’s input changes from any value to any other"),
        ("Releases", f"{audit.releases:,}, the same change in each" if audit.releases > 1 else "1"),
        (
            "Honest users",
            "all add their noise"
            if audit.honest == 1
            else join([share(audit.honest), " of the users add their noise"]),
        ),
    ]
    asked = (audit.eps, audit.delta, audit.releases, audit.honest)
    given = (own.eps, own.delta, releases, honest)
    notes = []
    if asked != given:
        names = ("ε", "δ", "releases", "honest fraction")
        differ = [
            join([f"{name} = ", number(value) if value is not None else "not stated"])
            for name, value, other in zip(names, given, asked, strict=True)
            if value != other
        ]
        text = [part for claim in differ for part in (claim, ", ")][:-1]
        words = ("The audit was asked about this claim; the file says ", *text, ".")
        notes = [element("p", *words, class_="note")]
    return section("claim", "The claim", facts(rows), *notes)


def cost_section(document: Document) -> Html:
    """Expected values; for a bare configuration, what follows from it."""
    rows: list[Fact]
    expected = element("p", "Messages and bits are expected values.", class_="note")
    if isinstance(document, ParameterFile):
        cost, error = document.cost, document.error
        rows = [
            ("Noise messages", join([number(cost.noise_messages, 6), ", all users together"])),
            ("Messages per user", number(cost.messages_per_user, 6)),
            ("Bits per message", f"{cost.bits_per_message:,}"),
            ("Bits per user", number(cost.bits_per_user, 6)),
            ("RMSE of the sum", number(error.rmse, 5)),
        ]
        if document.problem.eps > 0:
            against = " times the RMSE of the discrete Laplace mechanism at ε = "
            ratio = number(error.rmse_over_central, 5)
            rows += [("Against central", join([ratio, against, number(document.problem.eps)]))]
        return section("cost", "Cost and error", facts(rows), expected)
    noise = _messages(document)
    rows = [("Noise messages", join([number(noise, 6), ", all users together"]))]
    if document.n is not None:
        rows += [("Messages per user", number(1 + noise / document.n, 6))]
    rmse = math.sqrt(0.5) / math.sinh(_step(document) / 2)
    rows += [("RMSE of the sum", number(rmse, 5))]
    return section("cost", "Cost and error", facts(rows), expected)


@dataclass(frozen=True)
class _Entry:
    """The noise of one atom, or the central noise."""

    name: str
    messages: int
    r: float
    p: Html
    mean: float
    rate: Html


def _entries(document: Document) -> Iterator[_Entry]:
    """The central noise, then the atoms."""
    if isinstance(document, ParameterFile):
        yield _written(_CENTRAL, 2, document.central)
        for entry in document.atoms:
            yield _written(atom_text(entry.atom), len(entry.atom), entry)
        return
    step = _step(document)
    q, rate = math.exp(-step), -math.log(-math.expm1(-step))
    yield _Entry(_CENTRAL, 2, 1.0, _double(q), 1 / math.expm1(step), number(rate, 6))
    for elements, r, p in document.atoms:
        mean, rate = r * p / (1 - p), -r * math.log1p(-p)
        yield _Entry(atom_text(elements), len(elements), r, _double(p), mean, number(rate, 6))


def _written(name: str, messages: int, noise: CentralNoise | AtomNoise) -> _Entry:
    p = chance(Fraction(noise.p), exact=noise.p)
    rate = quotient(Fraction(noise.rate), exact=noise.rate)
    return _Entry(name, messages, noise.r, p, noise.mean, rate)


def _double(p: float) -> Html:
    return chance(Fraction(p), exact=repr(p))


def _step(proposal: Proposal) -> float:
    """eps_central / max_value, which a hostile file can make underflow."""
    return max(proposal.eps_central / proposal.max_value, 1e-300)


def _messages(document: Document) -> float:
    """Noise messages over all users: 2 E[central] + the sum of |s| E[D^s]."""
    if isinstance(document, ParameterFile):
        return document.cost.noise_messages
    return math.fsum(entry.messages * entry.mean for entry in _entries(document))


def noise_section(document: Document, *, honest: float) -> Html:
    """Every atom with the law of its noise."""
    total = _messages(document)
    rows = [
        (
            element("span", entry.name, class_="atom"),
            number(entry.r, 6),
            entry.p,
            number(entry.mean, 6),
            entry.rate,
            share(entry.messages * entry.mean / total),
        )
        for entry in islice(_entries(document), _LARGEST_TABLE)
    ]
    more = 1 + len(document.atoms) - len(rows)
    note = (
        "The messages of an atom sum to 0 and are sent together, NB(r, p) times over all users, in "
        "compound Poisson events of the given rate. Point at a number for its exact value."
    )
    if honest != 1:
        note += " This is the noise of all users; the proof counts on that of the honest ones only."
    if more:
        note += f" The first {len(rows) - 1:,} atoms are listed, {more:,} more are in the file."
    heads = ("Atom", "r", "p", "Mean", "Rate", "Share of messages")
    return section(
        "noise",
        "The noise",
        element("p", note),
        table(f"The central noise and {len(document.atoms):,} atoms", heads, rows, "long"),
    )


def proof_section(audit: Audit) -> Html:
    """Which method proved how many pairs."""
    proof = audit.proof
    if proof is None:
        text = "No proof was completed, so there are no bounds to rely on."
        return section("proof", "How it was proved", element("p", text))
    top = audit.mechanism.max_value
    covered = table(
        f"Ordered pairs of inputs, {top * (top + 1):,} in all",
        ("Method", "Pairs", "What it is"),
        [
            (told(method), f"{count:,}", _METHODS.get(method, ""))
            for method, count in proof.covered.items()
        ],
    )
    inside = ", inside both bounds"
    if proof.deviation > audit.delta:
        inside += "; it alone is larger than the claimed δ"
    rows: list[Fact] = [
        ("Precision", f"{proof.precision:,} bits" if proof.precision else "exact: no arithmetic"),
        (
            "Relative gap",
            join(
                [
                    number(proof.enclosure.relative_gap, 2, "upper"),
                    "" if proof.met else ", wider than was asked for",
                ]
            ),
        ),
        ("Sampler deviation", join([number(proof.deviation, 3, "upper"), inside])),
    ]
    if not proof.exact:
        rows += [("Lower bound", "none: there are more atoms than values")]
    what = "δ(ε) is the largest hockey-stick divergence over the ordered pairs of inputs. "
    if proof.enclosure.lower == 1:
        what += "One pair that every outcome tells apart settles it."
    else:
        what += "Every pair is bounded from above"
        what += ", the worst one also from below." if proof.exact else "."
    return section("proof", "How it was proved", element("p", what), facts(rows), covered)


def file_section(document: Document, *, signature: str | None, software: Mapping[str, str]) -> Html:
    """What identifies the file, and what it says about its own making."""
    audited = ", ".join(f"{name} {version}" for name, version in software.items())
    rows: list[Fact] = [("Signature", told(signature) if signature is not None else "not checked")]
    parts: list[Html] = []
    if isinstance(document, ParameterFile):
        rows = [("SHA-256", element("code", document.sha256)), *rows]
        rows += [("Format", element("code", document.format)), *_certificate(document)]
        made = document.provenance
        rows += [("Made by", element("code", told(f"{made.tool} {made.version}")))]
        rows += [("Seed", f"{made.seed:,}" if made.seed is not None else "none")]
        parts = [_settings(made.settings)] if made.settings else []
    else:
        rows += [("Format", "a bare configuration: no hash, no certificate, no provenance")]
    rows += [("Audited with", audited)]
    return section("file", "The file", facts(rows), *parts)


def _certificate(file: ParameterFile) -> Iterator[Fact]:
    found = file.certificate
    if found is None:
        yield "Certificate", "none in the file"
        return
    yield (
        "Certificate",
        join(
            [
                number(found.delta_lower, 5, "lower"),
                " ≤ δ ≤ ",
                number(found.delta_upper, 5, "upper"),
                " at ε = ",
                number(found.eps),
                "; the audit proves δ anew and trusts none of it",
            ]
        ),
    )
    versions = [f"{name} {version}" for name, version in found.software.items()]
    yield "Certified with", element("code", told(", ".join(versions)))


def _settings(settings: Mapping[str, object]) -> Html:
    items = list(settings.items())[:_LARGEST_TABLE]
    rows = [(element("code", told(key)), element("code", told(str(value)))) for key, value in items]
    return table("Settings of the search, as the file tells them", ("Setting", "Value"), rows)
