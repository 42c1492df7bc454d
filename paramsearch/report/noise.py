"""The sections of the report on the noise and on its cost."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice

from accounting.base.enclosure import counted
from accounting.base.errors import InternalError
from accounting.model.configuration import Proposal
from accounting.model.costs import discrete_laplace_deviation, noise_messages
from accounting.model.laws.burst import Burst
from paramsearch.certification.audit import Audit
from paramsearch.parameters.claim import Claim
from paramsearch.parameters.expected_cost import EXCEEDED, ExpectedCost
from paramsearch.parameters.parameter_file import ParameterFile
from paramsearch.parameters.sections import AnyAtomNoise, BurstNoise, CentralNoise
from paramsearch.report.html import (
    LARGEST_TABLE,
    Fact,
    Html,
    atom_text,
    element,
    facts,
    join,
    number,
    probability,
    quotient,
    section,
    share,
    table,
)

Document = ParameterFile | Proposal
_CENTRAL = "1 and −1, each"


def cost_section(document: Document, claim: Claim) -> Html:
    """Expected cost and error; for a bare configuration, as far as they follow from it."""
    found = ExpectedCost.of(document, claim)
    rows: list[Fact]
    if found is None:
        if isinstance(document, ParameterFile):
            raise InternalError("the cost of a parameter file is missing: please report the file")
        noise = document.dimension * _messages(document)
        rows = [("Noise messages", join([number(noise, 6), ", all users together"]))]
        rows += [(_rmse(document), number(discrete_laplace_deviation(_step(document)), 5))]
    else:
        cost = found.cost
        rows = [
            ("Noise messages", join([number(cost.noise_messages, 6), ", all users together"])),
            ("Noise events", join([number(found.events, 6), ", all users together"])),
            ("Largest upload", _largest_upload(found)),
            ("Messages per user", number(cost.messages_per_user, 6)),
            ("Bits per message", f"{cost.bits_per_message:,}"),
            ("Bits per user", number(cost.bits_per_user, 6)),
            (_rmse(document), number(found.error.rmse, 5)),
        ]
        if found.over_central is not None:
            against = " times the RMSE of the discrete Laplace mechanism at ε = "
            if document.dimension > 1:
                against = against.replace("mechanism", "mechanism for two coordinates")
            ending = " for as many releases together" if found.releases > 1 else ""
            ratio = number(found.over_central, 5)
            rows += [("Against central", join([ratio, against, number(found.eps), ending]))]
    words = "Messages, events and bits are expected values; the largest upload is a bound."
    expected = element("p", words, class_="note")
    return section("cost", "Cost and error", facts(rows), expected)


def _largest_upload(found: ExpectedCost) -> Html | str:
    if found.largest_upload is None:
        return "not computed: it may be larger than a client could send"
    most = counted(found.largest_upload, "message")
    return join(
        [
            f"at most {most}, ",
            share(found.largest_share),
            " of the noise; larger with probability at most ",
            number(EXCEEDED),
        ]
    )


def losses_section(audit: Audit) -> list[Html]:
    """What holds if users with noise are lost, where the audit was asked about that."""
    lost, claim = audit.lost, audit.claim
    if lost is None:
        return []
    bound: Html | str = "nothing is proved: δ ≤ 1"
    if lost.delta_upper < 1:
        bound = join(["δ ≤ ", number(lost.delta_upper, 5, "upper")])
    rows: list[Fact] = [
        ("Users with noise who are lost", f"{lost.users:,}, in every release"),
        ("Noise events, expected", number(lost.noise_events, 6)),
        ("Lost whatever they drew", join([bound, " at ε = ", number(claim.eps)])),
    ]
    if not lost.holds and lost.searched is not None:
        eps: Html | str = "none was found" if lost.searched else "not searched to the end"
        if lost.satisfied_eps is not None:
            eps = join(["ε = ", number(lost.satisfied_eps, 5, "upper")])
        rows += [("What then holds at this δ", eps)]
    rows += [
        (
            "Lost because of what they drew",
            join(
                [
                    "nothing holds: with a single lost user δ is at least ",
                    number(lost.worst_way, 5, "lower"),
                    " at every ε",
                ]
            ),
        )
    ]
    note = (
        "Most users draw no noise, so losing the few who did is far worse than losing as many "
        "others. The bound for users who are lost whatever they drew is an upper bound only. The "
        "verdict is about that case; the bounds, the curve and the map on this page are about the "
        "case that nobody is lost."
    )
    return [section("losses", "If users with noise are lost", element("p", note), facts(rows))]


def _rmse(document: Document) -> str:
    return "RMSE of the sum" if document.dimension == 1 else "RMSE of each coordinate"


@dataclass(frozen=True)
class _Entry:
    """A row of the table of noises: the noise of one atom, or the central noise."""

    name: str
    messages: int
    law: str
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
    yield _Entry(_CENTRAL, 2, _law(1.0), _double(q), 1 / math.expm1(step), number(rate, 6))
    for elements, noise in document.atoms:
        name = atom_text(elements)
        if noise is None:
            yield _Entry(name, len(elements), "no noise", join(["–"]), 0.0, join(["–"]))
        elif isinstance(noise, Burst):
            law, rate = _law(noise.m, bursts=True), noise.rate
            yield _Entry(name, len(elements), law, _double(noise.p), noise.mean, number(rate, 6))
        else:
            law, rate = _law(noise.r), -noise.r * math.log1p(-noise.p)
            yield _Entry(name, len(elements), law, _double(noise.p), noise.mean, number(rate, 6))


def _law(parameter: float, *, bursts: bool = False) -> str:
    return f"bursts, m = {parameter:.0f}" if bursts else f"NB, r = {parameter:,.6g}"


def _written(name: str, messages: int, noise: CentralNoise | AnyAtomNoise) -> _Entry:
    p = probability(Fraction(noise.p), exact=noise.p)
    rate = quotient(Fraction(noise.rate), exact=noise.rate)
    law = _law(noise.m, bursts=True) if isinstance(noise, BurstNoise) else _law(noise.r)
    return _Entry(name, messages, law, p, noise.mean, rate)


def _double(p: float) -> Html:
    return probability(Fraction(p), exact=repr(p))


def _step(proposal: Proposal) -> float:
    """eps_central / max_value; a hostile file can make it underflow."""
    return max(proposal.eps_central / proposal.max_value, 1e-300)


def _messages(document: Document) -> float:
    """Expected noise messages of all users in one coordinate: 2 E[central] + sum of |s| E[D^s]."""
    if isinstance(document, ParameterFile):
        return document.cost.noise_messages / document.dimension
    return noise_messages(_step(document), document.atoms)


def noise_section(document: Document, *, honest: float) -> Html:
    """The table of all noises with their laws."""
    total = _messages(document)
    rows = [
        (
            element("span", entry.name, class_="atom"),
            entry.law,
            entry.p,
            number(entry.mean, 6),
            entry.rate,
            share(entry.messages * entry.mean / total),
        )
        for entry in islice(_entries(document), LARGEST_TABLE)
    ]
    more = 1 + len(document.atoms) - len(rows)
    note = (
        "The messages of an atom sum to 0 and are sent together, in compound Poisson events of the "
        "given rate, all users together. With NB their number is negative binomial with r and p; "
        "with bursts every event has 1 + NB(m, p) of them. Point at a number for its exact value."
    )
    if document.dimension > 1:
        note += f" Each of the {document.dimension:,} coordinates has noise of its own."
    if honest != 1:
        note += " This is the noise of all users; the proof counts on that of the honest ones only."
    if more:
        note += f" The first {len(rows) - 1:,} atoms are listed, {more:,} more are in the file."
    heads = ("Atom", "Law", "p", "Mean", "Rate", "Share of messages")
    return section(
        "noise",
        "The noise",
        element("p", note),
        table(f"The central noise and {len(document.atoms):,} atoms", heads, rows, "long"),
    )
