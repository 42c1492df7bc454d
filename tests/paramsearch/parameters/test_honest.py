"""The fraction of the users who add noise: never more than was written; old files as before."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from places import EXAMPLES

from accounting.base.balls import ball, precision
from accounting.model.configuration import Proposal
from paramsearch.certification.audit import audit
from paramsearch.certification.certify import certify, claimed_mechanism
from paramsearch.deploy.participation import required_users
from paramsearch.parameters import assembly as certification
from paramsearch.parameters.assembly import uncertified
from paramsearch.parameters.claim import Claim
from paramsearch.parameters.honest_fraction import as_written, claimed_fraction, in_words
from paramsearch.parameters.parameter_file import ParameterFile, dumps, from_json
from paramsearch.parameters.words import file_claim_in_words as in_full

EXAMPLE = Proposal.of(json.loads((EXAMPLES / "sum_to_2.json").read_text()))
ABOVE = [0.9, 0.8, 0.95, 0.1]
"""Doubles above the decimals they are written as."""


@given(st.floats(0, 1, exclude_min=True))
def test_never_more_than_the_double_or_the_decimal(honest: float) -> None:
    meant = as_written(honest)
    assert meant in (Fraction(honest), Fraction(repr(honest)))
    assert meant <= Fraction(honest)
    assert meant <= Fraction(repr(honest))
    assert Fraction(honest) - meant <= Fraction(math.ulp(honest))
    # what is said needs at least the users that were proved
    assert Fraction(in_words(honest, meant)) >= meant
    assert Fraction(in_words(honest, Fraction(honest))) >= Fraction(honest)


@pytest.mark.parametrize("honest", [*ABOVE, 0.7, 0.75, 1.0])
def test_what_is_made_suffices_for_the_fraction_that_was_written(honest: float) -> None:
    file = uncertified(EXAMPLE, honest=honest)
    assert file.problem.honest == honest
    written = Fraction(repr(honest))
    with precision(1024):
        thin = file.mechanism().thinned(min(written, Fraction(honest)))
        assert thin.central.share() >= 1
        for elements, law in EXAMPLE.atoms:
            for noise in thin.atoms[elements]:
                assert noise.p == Fraction(law.p)
                assert noise.shape() >= ball(law.r)
    assert claimed_fraction(file) <= written
    assert claimed_mechanism(file) == thin


def old(honest: float, monkeypatch: pytest.MonkeyPatch) -> ParameterFile:
    """A file as earlier versions made it: for the double."""
    with monkeypatch.context() as patch:
        patch.setattr(certification, "as_written", Fraction)
        draft = uncertified(EXAMPLE, honest=honest)
    with precision(1024):
        assert not draft.mechanism().thinned(as_written(honest)).central.share() >= 1
    return certify(draft)


@pytest.mark.parametrize("honest", ABOVE[:2])
def test_old_files_mean_what_they_meant(honest: float, monkeypatch: pytest.MonkeyPatch) -> None:
    file = old(honest, monkeypatch)
    assert from_json(json.loads(dumps(file)), source="it").sha256 == file.sha256
    assert claimed_fraction(file) == Fraction(honest)
    assert required_users(file) >= Fraction(honest) * file.problem.n
    found = audit(from_json(json.loads(dumps(file)), source="it"))
    assert (found.verdict, found.confirmed, found.proved_for) == (
        "certified",
        True,
        Fraction(honest),
    )
    said = in_full(file).rsplit(", ", 1)[1].split()[0]
    assert Fraction(said) >= Fraction(honest)


def test_new_files_are_audited_for_what_was_written() -> None:
    file = certify(uncertified(EXAMPLE, honest=0.9))
    assert ", 0.9 of the users adding noise (who is missing" in in_full(file)
    found = audit(file)
    assert (found.verdict, found.confirmed, found.proved_for) == (
        "certified",
        True,
        Fraction(9, 10),
    )
    bare = audit(
        replace(EXAMPLE, delta=0.5), Claim.of(replace(EXAMPLE, delta=0.5), honest=0.9), gap=0.1
    )
    assert bare.proved_for == Fraction(9, 10)
