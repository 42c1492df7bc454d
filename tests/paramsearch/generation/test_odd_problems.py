"""Problems that once broke the search, and the limits of what it takes on."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import pytest

from accounting import Family, InvalidFamily, InvalidParameter, TooLarge, Undecided
from accounting.estimator.estimate import Estimator
from accounting.model.costs import (
    central_rmse,
    discrete_laplace_deviation,
    largest_central_of,
)
from paramsearch import Request, audit, generate
from paramsearch.parameters.claim import Claim
from paramsearch.search.families.family_draft import FamilyDraft


@pytest.mark.parametrize(
    ("max_value", "eps", "delta", "fraction", "releases"),
    [
        (1, 1.0, 1e-6, 0.05, 2),
        (1, 1.0, 1e-6, 0.1, 10),
        (5, 1.0, 1e-6, 0.01, 1),  # the geometric part of W outlasts its negative binomial
        (2, 1.0, 0.9999, 0.9, 1),
        (2, 60.0, 1e-6, 0.9, 1),
        (1, 0.05, 1e-15, 0.9, 1),
        (3, 8.0, 1e-3, 0.99, 1),
    ],
)
def test_odd_but_possible(
    max_value: int, eps: float, delta: float, fraction: float, releases: int
) -> None:
    made = generate(
        Request(
            n=100,
            eps=eps,
            delta=delta,
            max_value=max_value,
            central_fraction=fraction,
            releases=releases,
            tries=1,
        )
    )
    assert made.file.certificate is not None
    assert made.file.certificate.delta_upper <= delta


@pytest.mark.parametrize(
    ("eps", "delta", "fraction"),
    [
        (1e-6, 1e-6, 0.9),  # once 98 s: the noise of a start grew step by step
        pytest.param(1.0, 1e-20, 0.9, marks=pytest.mark.slow),
        (1.0, 1e-6, 1e-9),
    ],
)
def test_out_of_reach_is_undecided(eps: float, delta: float, fraction: float) -> None:
    with pytest.raises(Undecided, match="take a larger eps"):
        generate(
            Request(n=100, eps=eps, delta=delta, max_value=2, central_fraction=fraction, tries=1)
        )


@pytest.mark.parametrize(
    "wrong", [{"eps": 101.0}, {"delta": 5e-324}, {"releases": 10**9}, {"eps": float("nan")}]
)
def test_limits(wrong: dict[str, float]) -> None:
    with pytest.raises(InvalidParameter):
        Request(**{"n": 100, "eps": 1.0, "delta": 1e-6, "max_value": 2, **wrong})  # type: ignore[arg-type]  # that is what is tested


def test_a_lighter_proof_can_be_asked_another_question() -> None:
    """Its upper bound depends on the claim: a weaker one does not refute the certificate."""
    made = generate(Request(n=1000, eps=0.5, delta=1e-6, max_value=3, method="theorem"))
    found = audit(made.file, Claim.of(made.file, delta=1e-3), tier="light")
    assert found.verdict == "certified"


def test_a_long_chain_of_definitions_is_a_draft() -> None:
    top = 3000
    parts = {top: (), **{m: (-(m + 1),) for m in range(2, top)}}
    parts.update({-(m + 1): (m + 1,) for m in range(2, top)})
    draft = FamilyDraft.of(top, parts)
    assert draft is not None
    assert len(draft.parts) == 2 * top - 3


def test_columns_that_explode_are_too_large() -> None:
    atoms = [(-1, 1)]
    for m in range(2, 60):
        atoms.append(tuple(sorted((m, *([-(m - 1)] * 2 if m > 2 else []), *_ones(m)))))
        atoms.append((-m, m))
    family = Family(59, tuple(atoms))
    with pytest.raises(TooLarge, match="entries beyond"):
        _ = family.columns


def _ones(m: int) -> list[int]:
    rest = -(m - 2 * (m - 1)) if m > 2 else -2
    return [1] * rest if rest > 0 else [-1] * -rest


def test_the_unprotected_value_is_named() -> None:
    with pytest.raises(InvalidFamily, match="value 4 is unprotected"):
        Family(5, ((-1, 1), (-4, 1, 1, 1, 1), (-4, 1, 3), (-1, -1, 2)))


def test_a_file_of_the_paper_cannot_be_resumed() -> None:
    made = generate(Request(n=1000, eps=1.0, delta=1e-6, max_value=2, method="dominance"))
    with pytest.raises(InvalidParameter, match="several noises on one atom"):
        generate(Request(n=1000, eps=1.0, delta=1e-6, max_value=2, tries=1), resume=made.file)


@pytest.mark.parametrize(
    ("wrong", "because"),
    [
        ({"central_fraction": 0.0}, "strictly between 0 and 1"),
        ({"central_fraction": 1.0}, "strictly between 0 and 1"),
        ({"central_fraction": "half"}, "is not a number"),
        ({"max_rmse": 2.7}, "max_rmse = 2.7 is out of reach.* allow at least 2.8"),
        ({"max_rmse": 5e-324, "honest": 0.01}, "out of reach"),
        ({"max_rmse": 0.0}, "greater than 0"),
        ({"max_rmse": float("inf")}, "not finite"),
        ({"max_rmse": 3.5, "honest": 0.5}, "out of reach"),
        ({"max_rmse": 15.0, "releases": 10}, "out of reach"),
        ({"max_error_ratio": 1.0005}, "max_error_ratio = 1.0005 is out of reach"),
        ({"max_error_ratio": 1.2, "honest": 0.5}, "allow at least 1.4"),
        ({"max_error_ratio": 1.0005, "releases": 10}, "out of reach"),
        ({"max_value": 1, "eps": 50.0}, "more than 34 per unit"),
        ({"max_value": 1, "eps": 50.0, "max_rmse": 1e-8}, "more than 34 per unit"),
        ({"releases": 2, "method": "theorem"}, "one release"),
        ({"dimension": 3, "method": "dominance"}, "not for vectors"),
        ({"budget": "long"}, "is not a number"),
        ({"budget": 0.0}, "greater than 0"),
        ({"settings": 7}, "must be a mapping"),
    ],
)
def test_a_request_that_cannot_be_met_is_refused_at_once(
    wrong: dict[str, object], because: str
) -> None:
    with pytest.raises(InvalidParameter, match=because):
        Request(**{"n": 100, "eps": 1.0, "delta": 1e-6, "max_value": 2, **wrong})  # type: ignore[arg-type]  # that is what is tested


@pytest.mark.parametrize(
    ("eps", "top", "releases", "honest", "dimension"),
    [
        (1.0, 2, 1, 1.0, 1),
        (0.1, 50, 1, 0.5, 1),
        (1.0, 2, 2, 1.0, 1),
        (1.0, 5, 1, 1.0, 7),
        (1.0, 2, 10, 1.0, 1),
        (3.0, 20, 30, 0.7, 1),
        (20.0, 1, 3, 1.0, 1),
        (30.0, 1, 1, 1.0, 1),
    ],
)
def test_a_request_refuses_just_the_errors_that_leave_nothing_for_the_atoms(
    eps: float, top: int, releases: int, honest: float, dimension: int
) -> None:
    """The quick checks of a request agree with the largest eps* itself, on both sides."""
    request = Request(
        n=100, eps=eps, delta=1e-6, max_value=top, releases=releases, honest=honest,
        dimension=dimension, central_fraction=0.5,
    )  # fmt: skip
    largest = largest_central_of(request)
    errors = [
        discrete_laplace_deviation(share * largest / top) / math.sqrt(honest)
        for share in (0.9995, 0.9985)
    ]
    unit = central_rmse(request)
    for name, scale in (("max_rmse", 1.0), ("max_error_ratio", unit)):
        refused, accepted = ({"central_fraction": None, name: error / scale} for error in errors)
        with pytest.raises(InvalidParameter, match="out of reach") as failure:
            replace(request, **refused)  # type: ignore[arg-type]  # one of them
        made = replace(request, **accepted)  # type: ignore[arg-type]  # one of them
        assert made.least_central(largest) == pytest.approx(0.9985 * largest, rel=1e-9)
        allowed = re.search(r"allow at least ([0-9.]+)", str(failure.value))
        assert allowed is not None
        replace(request, **{"central_fraction": None, name: float(allowed[1])})  # type: ignore[arg-type]  # one of them


@pytest.mark.parametrize("error", [{"max_rmse": 4.0}, {"max_error_ratio": 1.5}])
def test_an_error_can_be_asked_for_where_there_is_one_atom(error: dict[str, float]) -> None:
    request = Request(n=1000, eps=1.0, delta=1e-6, max_value=1, tries=1, **error)  # type: ignore[arg-type]  # one of them
    made = generate(request)
    most = error.get("max_rmse", 1.5 * central_rmse(request))
    assert made.file.error.rmse <= most * (1 + 1e-9)


def test_noise_beyond_every_table_is_refused_before_long_tables_are_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Starting from the package's file for eps = 0.1, every step of the noise made a longer one."""
    lengths: list[int] = []
    check = Estimator._check_size

    def watched(self: Estimator, outcomes: int, central: float, mean: float) -> None:
        check(self, outcomes, central, mean)
        lengths.append(outcomes)

    monkeypatch.setattr(Estimator, "_check_size", watched)
    with pytest.raises(Undecided, match="take a larger eps"):
        generate(Request(n=100_000, eps=1e-6, delta=1e-6, max_value=1))
    assert max(lengths, default=0) < 1 << 22
