"""``paramsearch audit FILE --report FILE.html``: an audit as one HTML page.

The page needs no network and contains no script; of when and where it was made it shows the date
alone.  Texts from the audited file are escaped (``html.py``); should that ever fail, a content
security policy forbids the browser to load or run anything.
"""

from __future__ import annotations

import base64
import hashlib
import math
import platform
from calendar import month_name
from collections.abc import Iterator
from datetime import date
from importlib import metadata, resources
from pathlib import Path

import numpy as np

from accounting.base.arrays import FloatArray
from accounting.base.balls import above, ball, below, precision
from accounting.base.enclosure import Enclosure, monotone, readings, with_point
from accounting.base.errors import AccountingError, InvalidParameter
from accounting.base.progress import Progress, silent
from accounting.evaluator.build_view_pairs import changed_pairs
from accounting.proof.directed_rounding import configuration
from accounting.protocol import Protocol
from paramsearch.certification.audit import Audit
from paramsearch.files import write_atomically
from paramsearch.parameters.parameter_file import ParameterFile
from paramsearch.report.charts import (
    ColorScale,
    block_maximum,
    block_size,
    pair_map,
    profile_chart,
    swatch,
)
from paramsearch.report.html import Html, element, number, section, share, table, untrusted
from paramsearch.report.noise import cost_section, losses_section, noise_section
from paramsearch.report.plain_words import glossary_section, summary_section
from paramsearch.report.sections import (
    AuditedFile,
    Document,
    file_section,
    no_lower_bound,
    problem_section,
    proof_section,
    verdict_section,
    worst_change,
)

Curve = list[tuple[float, Enclosure]]
"""Bounds on delta at several eps, in increasing order of eps."""
_LARGEST_DEVIATION = 1e-12
"""Largest deviation of the central noise from NB(1, q), the only one that the fast evaluators
know."""
_SMALLEST_EPS = 1e-9
"""Smallest eps around which the profile is drawn; below it, it is drawn as for 0."""
_LARGEST_EPS = 1e5
"""Largest eps that the fast evaluators are asked about, well within their own limit."""
_BITS = 128
"""Precision of ball arithmetic."""
_TOP_PAIRS = 5
"""Number of changes in the table of the largest bounds."""


def curve(audit: Audit, progress: Progress = silent) -> Curve | None:
    """Monotone bounds on delta from eps 0 to twice the audited eps (to 1 if that is 0).

    It is None if the fast evaluators do not take the parameters.  All points but the audited eps
    have few digits, so that they can be shown exactly.
    """
    mechanism, eps, releases = audit.mechanism, audit.claim.eps, audit.claim.releases
    top = mechanism.max_value
    points = 25 if top <= 32 else 17 if top <= 100 else 9
    last = 2 * eps if eps > _SMALLEST_EPS else 1.0
    grid = [float(f"{last * i / (points - 1):.4g}") for i in range(points)]
    if eps > _SMALLEST_EPS:
        grid[points // 2] = eps
    found = []
    try:
        less, more = _evaluators(audit, last, same_change=audit.claim.same_change)
        for i, at in enumerate(grid):
            progress(f"profile for the report, {i + 1} of {points}")
            below_it, above_it = readings(at)  # the page shows decimals
            upper = lower = less.delta(below_it, gap=0.05, absolute=1e-30).enclosure
            if less != more or below_it < above_it:
                lower = more.delta(above_it, gap=0.05, absolute=1e-30).enclosure
            with precision(_BITS):
                extra = mechanism.deviation(above_it, releases, audit.claim.adjacency)
                low, high = below(ball(lower.lower) - extra), above(ball(upper.upper) + extra)
            found.append(Enclosure(max(0.0, low), min(1.0, high)))
    except AccountingError:
        return None
    return list(zip(grid, monotone(found), strict=True))


def pair_bounds(audit: Audit, progress: Progress = silent) -> FloatArray | None:
    """Upper bounds on delta: entry [j, k] is for the input j becoming k, NaN where there is no such
    change.

    With several releases, it is for the same change in all of them.  For vectors, it is the larger
    one of the change within a coordinate and the change to another coordinate.  It is None if the
    fast evaluators do not take the parameters.
    """
    mechanism, eps, releases = audit.mechanism, audit.claim.eps, audit.claim.releases
    try:
        less, _ = _evaluators(audit, eps, same_change=True)
        progress("all pairs for the report")
        found = less.delta(readings(eps)[0], absolute=1e-30).upper
    except AccountingError:
        return None
    with precision(_BITS):
        extra = above(mechanism.deviation(eps, releases, audit.claim.adjacency))
    top = mechanism.max_value
    bounds = np.full((top + 1,) * 2, math.nan)
    raised = np.minimum(np.nextafter(found + extra, math.inf) if extra else found, 1.0)
    j, k = changed_pairs(top, audit.claim.adjacency).T
    # first the changes within a coordinate, then those from one coordinate to another
    single, moves = np.split(raised, [len(j)])
    bounds[j, k] = single
    if len(moves):
        bounds[1:, 1:] = np.fmax(bounds[1:, 1:], moves.reshape(top, top))
    return bounds


def _evaluators(audit: Audit, eps: float, *, same_change: bool) -> tuple[Protocol, Protocol]:
    """Protocols with slightly less and slightly more noise, for upper and for lower bounds."""
    if not _has_geometric_noise(audit):
        raise InvalidParameter("the central noise is not NB(1, q)")
    if eps > _LARGEST_EPS:
        raise InvalidParameter(f"eps = {eps} leaves the range of the fast evaluators")
    less, more = (configuration(audit.mechanism, noise=side) for side in ("less", "more"))
    covered = audit.claim.releases, same_change, audit.claim.adjacency
    return Protocol(less, *covered), Protocol(more, *covered)


def _has_geometric_noise(audit: Audit) -> bool:
    with precision(_BITS):
        return above(audit.mechanism.central.deviation()) <= _LARGEST_DEVIATION


def write(
    path: Path,
    audit: Audit,
    document: Document,
    file: AuditedFile,
    *,
    progress: Progress = silent,
) -> None:
    """Compute what the drawings show, and write the page to a file."""
    page = render(
        audit,
        document,
        file,
        curve=curve(audit, progress),
        pairs=pair_bounds(audit, progress),
    )
    write_atomically(path, page.encode())


def render(
    audit: Audit,
    document: Document,
    file: AuditedFile,
    *,
    curve: Curve | None,
    pairs: FloatArray | None,
) -> str:
    """The page."""
    name = untrusted(Path(file.source).name)
    style = resources.files("paramsearch").joinpath("report", "report.css").read_text("utf-8")
    seal = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    version = metadata.version("paramsearch")
    software = {
        "paramsearch": version,
        "python-flint": metadata.version("python-flint"),
        "Python": platform.python_version(),
    }
    body = element(
        "body",
        element(
            "header",
            element("p", "Privacy audit of"),
            element("h1", name),
            element(
                "p",
                "Audited on ",
                element("time", _in_words(file.audited_on), datetime=file.audited_on.isoformat()),
                *_fingerprints(document, file, rejected=audit.verdict == "rejected"),
                class_="identity",
            ),
        ),
        element(
            "main",
            verdict_section(audit),
            summary_section(audit, _users(document)),
            element(
                "div",
                problem_section(audit, document),
                cost_section(document, audit.claim),
                class_="two",
            ),
            *losses_section(audit),
            element("div", *_drawings(audit, curve, pairs), class_="two"),
            noise_section(document, honest=audit.claim.honest),
            proof_section(audit),
            file_section(document, file, audit, software=software),
            glossary_section(),
        ),
        element("footer", element("p", f"paramsearch {version}")),
    )
    head = (
        '<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        f"style-src 'sha256-{seal}'; base-uri 'none'; form-action 'none'\">\n"
        f"{element('title', f'{audit.verdict.capitalize()}: {name}')}\n<style>{style}</style>\n"
    )
    return f'<!doctype html>\n<html lang="en">\n<head>\n{head}</head>\n{body}\n</html>\n'


def _fingerprints(document: Document, file: AuditedFile, *, rejected: bool) -> Iterator[Html | str]:
    """What identifies the file: the hash of its content, which clients show, and of its bytes."""
    if isinstance(document, ParameterFile) and not rejected:
        yield from (" · SHA-256 of its content: ", element("code", document.sha256))
    yield from (" · SHA-256 of its bytes: ", element("code", file.sha256))


def _in_words(day: date) -> str:
    return f"{day.day} {month_name[day.month]} {day.year}"


def _users(document: Document) -> int | None:
    return document.problem.n if isinstance(document, ParameterFile) else document.n


def _drawings(audit: Audit, curve: Curve | None, pairs: FloatArray | None) -> list[Html]:
    if curve is None and pairs is None:
        return [section("profile", "Privacy profile", element("p", _absent(audit)))]
    return [_profile(audit, curve), _pairs(audit, pairs)]


def _profile(audit: Audit, found: Curve | None) -> Html:
    if found is None:
        return section("profile", "Privacy profile", element("p", _absent(audit)))
    proved = audit.proof.enclosure if audit.proof is not None else None
    found = _with_proof(found, audit)
    drawing = profile_chart(found, eps=audit.claim.eps, delta=audit.claim.delta, proved=proved)
    legend = [("upper", "upper bound"), ("lower", "lower bound"), ("claim", "the claim")]
    legend += [("proved", "proved at its ε")] if proved is not None else []
    signs = element("ul", *(element("li", swatch(kind), text) for kind, text in legend))
    words = [f"Proved at the {len(found)} dots; the lines between them guide the eye."]
    if audit.proof is not None and not audit.proof.exact:
        words += [f" There is no lower bound: {no_lower_bound(audit.proof)}."]
    elif all(bound.lower > 0 for _, bound in found):
        gap = max(bound.relative_gap for _, bound in found)
        words += [" The two bounds differ by at most ", share(gap), "."]
    rows = [
        (number(at), number(bound.lower, 5, "lower"), number(bound.upper, 5, "upper"))
        for at, bound in found
    ]
    numbers = table("δ(ε), bounds", ("ε", "δ at least", "δ at most"), rows)
    return section(
        "profile",
        "Privacy profile",
        element("figure", drawing, element("figcaption", signs, element("p", *words))),
        element("details", element("summary", "The numbers"), numbers),
    )


def _with_proof(found: Curve, audit: Audit) -> Curve:
    """The curve with the bounds of the proof at its eps, and what follows for the other points."""
    if audit.proof is None:
        return found
    return with_point(found, audit.claim.eps, audit.proof.enclosure)


def _pairs(audit: Audit, bounds: FloatArray | None) -> Html:
    vectors = audit.mechanism.dimension > 1
    heading = "Every change of input"
    if bounds is None:
        return section("pairs", heading, element("p", _absent(audit)))
    if audit.proof is not None:  # no change exceeds what was proved for all of them
        bounds = np.minimum(bounds, audit.proof.enclosure.upper)
    worst = worst_change(audit)
    size = block_size(len(bounds))
    cells = block_maximum(bounds, size)
    darkest = 10 ** ColorScale.of(cells).low
    words = [
        "Upper bounds of δ at ε = ",
        number(audit.claim.eps),
        " from the fast evaluators, none above what was proved; those far below the largest may be "
        "loose.",
    ]
    mixed = audit.claim.any_sequence
    if audit.claim.releases > 1:
        words += [f" Each change is made in all {audit.claim.releases:,} releases."]
    if mixed:
        words += [" Different changes in different releases can give a larger δ: see the verdict."]
    if vectors:
        words += [" A value becomes another in its coordinate or in another; the larger bound."]
    if size > 1:
        words += [f" A cell shows the largest of {size} × {size} changes."]
    if worst is not None:
        which = "with which the worst sequence begins" if mixed else "that is worst"
        words += [f" Outlined: the change {which}, {worst.before:,} to {worst.after:,}."]
    if ((cells > 0) & (cells < darkest)).any():
        words += [" The darkest color is for ", number(darkest, 2), " and less."]
    flat = np.where(np.isnan(bounds), -1.0, bounds).ravel()
    first = np.argsort(-flat, kind="stable")[:_TOP_PAIRS]
    rows = [
        (f"{i // len(bounds):,} becomes {i % len(bounds):,}", number(float(flat[i]), 4, "upper"))
        for i in first.tolist()
        if flat[i] >= 0
    ]
    largest = table("The largest bounds", ("Input", "δ at most"), rows)
    return section(
        "pairs",
        heading,
        element(
            "figure",
            pair_map(bounds, worst=worst),
            element("figcaption", element("p", *words)),
        ),
        element("details", element("summary", "The largest ones"), largest),
    )


def _absent(audit: Audit) -> str:
    """Say why there is no drawing."""
    if audit.proof is not None and audit.proof.enclosure.lower == 1:
        return "A message without noise gives its input away: δ = 1 for every ε."
    if not _has_geometric_noise(audit):
        return (
            "Not drawn: the noise of the honest users on +1 and −1 differs from the geometric law "
            "that the fast evaluators need."
        )
    return "Not drawn: the fast evaluators do not take these parameters."
