"""Problems that once broke the search, and the limits of what it takes on."""

from __future__ import annotations

import pytest

from accounting import Family, InvalidFamily, InvalidParameter, TooLarge, Undecided
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
    ("eps", "delta", "fraction"), [(1e-6, 1e-6, 0.9), (1.0, 1e-20, 0.9), (1.0, 1e-6, 1e-9)]
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
