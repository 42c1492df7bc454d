"""The parameter file: exact round trips, a published schema, and nothing that can be edited."""

from __future__ import annotations

import contextlib
import copy
import json
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import mpmath as mp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from places import EXAMPLES

from accounting import AccountingError, InvalidConfiguration, InvalidParameter, Violated
from accounting.model.configuration import Proposal
from accounting.model.costs import AtomParameters
from accounting.model.laws.negative_binomial import NegativeBinomial
from paramsearch.certification.audit import audit
from paramsearch.certification.certify import certify, claimed_mechanism
from paramsearch.parameters import parameter_file
from paramsearch.parameters.assembly import uncertified
from paramsearch.parameters.claim import Claim
from paramsearch.parameters.file_schema import schema
from paramsearch.parameters.parameter_file import (
    ParameterFile,
    digest,
    dumps,
    from_json,
    load,
    save,
)

EXAMPLE = EXAMPLES / "sum_to_2.json"


@cache
def certified() -> ParameterFile:
    return certify(uncertified(Proposal.of(json.loads(EXAMPLE.read_text()))))


def document() -> dict[str, Any]:
    data: dict[str, Any] = json.loads(dumps(certified()))
    return data


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, (*path, key))
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            yield from leaves(inner, (*path, i))
    else:
        yield path, value


def put(data: Any, path: tuple[Any, ...], value: Any) -> Any:
    out = copy.deepcopy(data)
    inner = out
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return out


def another(value: Any) -> Any:
    if isinstance(value, bool) or value is None:
        return 7
    if isinstance(value, int):
        return value + 1
    if isinstance(value, float):
        return value * 1.01 if value else 1e-9
    if "/" in value and value[0].isdigit():
        smaller = Fraction(value) * Fraction(99, 100)
        return f"{smaller.numerator}/{smaller.denominator}"
    return value[:-1] + ("0" if value[-1] != "0" else "1")


LEAVES = [path for path, _ in leaves(document())]


@pytest.mark.parametrize("path", LEAVES, ids=lambda path: ".".join(map(str, path)))
def test_every_edit_is_caught(path: tuple[Any, ...]) -> None:
    """By the hash; and with a recomputed hash by the audit, wherever it changes a claim."""
    data = document()
    value = next(value for other, value in leaves(data) if other == path)
    edited = put(data, path, another(value))
    with pytest.raises(InvalidConfiguration):
        from_json(edited, source="the file")
    if path[0] in ("sha256", "provenance") or path[:2] == ("certificate", "software"):
        return
    edited["sha256"] = digest(edited)
    try:
        forged = from_json(edited, source="the file")
    except InvalidConfiguration:
        return
    if path in {("problem", "eps"), ("problem", "delta")}:
        return  # another claim, which an audit decides on its merits
    if path[0] == "certificate" and path[1] not in ("eps", "delta_upper", "delta_lower"):
        return  # how it was proved; an audit proves anew
    if path == ("certificate", "delta_upper"):
        return  # larger than it was: still true
    with contextlib.suppress(AccountingError):
        assert audit(forged, explain=False).verdict != "certified"


def test_a_certificate_that_is_too_good() -> None:
    data = document()
    data["certificate"]["delta_upper"] = data["certificate"]["delta_lower"] * 0.9
    data["certificate"]["delta_lower"] = 0.0
    data["sha256"] = digest(data)
    found = audit(from_json(data, source="the file"), explain=False)
    assert (found.verdict, found.claim_verdict) == ("misstated", "certified")
    assert "the certificate says" in found.reason


def test_round_trip_is_exact(tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    save(certified(), path)
    assert load(path) == certified()
    assert dumps(load(path)) == path.read_text()
    assert [item.name for item in tmp_path.iterdir()] == ["file.json"]


def test_white_space_and_order_are_free() -> None:
    data = document()
    shuffled = {key: data[key] for key in reversed(data)}
    assert from_json(json.loads(json.dumps(shuffled, indent=7)), source="it") == certified()


@given(
    r=st.floats(0.5, 100),
    p=st.floats(0.01, 0.999),
    eps_central=st.floats(0.05, 3),
    eps=st.floats(0, 5),
    delta=st.floats(1e-12, 0.5),
    n=st.integers(1, 2**53 - 1),
    honest=st.floats(0.05, 1),
)
@settings(max_examples=60, deadline=None)
def test_rationals_never_have_less_noise(
    r: float, p: float, eps_central: float, eps: float, delta: float, n: int, honest: float
) -> None:
    """Rate and p are at least what was asked for, hardly more, and survive the file exactly."""
    atoms = (AtomParameters((-1, 1), NegativeBinomial(r, p)),)
    proposal = Proposal(1, atoms, eps_central, eps, delta, n)
    file = uncertified(proposal, honest=honest)
    assert from_json(json.loads(dumps(file)), source="it") == file
    ((noise,),) = claimed_mechanism(file).atoms.values()
    central = claimed_mechanism(file).central
    assert noise.p == Fraction(p)
    assert noise.rate is not None
    with mp.workdps(80):
        wanted = -mp.mpf(r) * mp.log(1 - mp.mpf(p))
        got = mp.mpf(noise.rate.numerator) / noise.rate.denominator
        assert wanted <= got <= wanted * (1 + mp.mpf(2) ** -60)
        q, rate = central.p, central.rate
        assert q is not None
        assert rate is not None
        got = mp.mpf(q.numerator) / q.denominator
        wanted = mp.exp(-mp.mpf(eps_central))
        assert wanted <= got <= wanted * (1 + mp.mpf(2) ** -50)
        # of the double and of the decimal that is written for it, the smaller fraction suffices
        total = (
            mp.mpf(rate.numerator) / rate.denominator * min(mp.mpf(honest), mp.mpf(repr(honest)))
        )
        wanted = -mp.log(1 - got)
        assert wanted <= total <= wanted + mp.mpf(2) ** -125
        assert file.error.mse == pytest.approx(
            float(2 * got / (1 - got) ** 2 / mp.mpf(honest)), rel=1e-12
        )
        assert file.cost.noise_messages == pytest.approx(
            float(2 * (got / (1 - got) + mp.mpf(r) * mp.mpf(p) / (1 - mp.mpf(p))) / mp.mpf(honest)),
            rel=1e-12,
        )


def test_the_published_schema() -> None:
    """It is what the package would make, it accepts our files, and it refuses what we refuse."""
    shipped = json.loads(Path(parameter_file.__file__).with_suffix(".schema.json").read_text())
    assert shipped == schema()
    validator = jsonschema.Draft202012Validator(shipped)
    validator.check_schema(shipped)
    validator.validate(document())
    for change in (
        {"surplus": 1},
        {"format": "correlated-noise-parameters/2"},
        {"atoms": []},
        {"sha256": "0"},
    ):
        with pytest.raises(jsonschema.ValidationError):
            validator.validate({**document(), **change})


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("format",), "correlated-noise-parameters/2", "format"),
        (("problem", "adjacency"), "add-remove", "adjacency"),
        (("problem", "eps"), "1", "eps"),
        (("problem", "eps"), -1.0, "eps"),
        (("problem", "delta"), 0.0, "delta"),
        (("atoms", 0, "p"), "2/1", "not less than 1"),
        (("atoms", 0, "p"), "2/4", "lowest terms"),
        (("atoms", 0, "rate"), "1/0", "rate"),
        (("atoms", 0, "atom"), [1, -1], "not sorted"),
        (("atoms", 0, "atom"), [-1, 2], "not zero-sum"),
        (("atoms", 0, "surplus"), 1, "surplus"),
    ],
)
def test_refusals_name_the_place(path: tuple[Any, ...], value: Any, message: str) -> None:
    edited = put(document(), path, value)
    edited["sha256"] = digest(edited)
    with pytest.raises(InvalidConfiguration, match=message):
        from_json(edited, source="the file")


def test_honest_fraction_is_certified_for_that_fraction() -> None:
    """Everybody adds more, so that what the fraction adds is what was asked for."""
    proposal = Proposal.of(json.loads(EXAMPLE.read_text()))
    plain, thin = certified(), certify(uncertified(proposal, honest=0.8))
    assert thin.certificate is not None
    assert plain.certificate is not None
    assert thin.certificate.delta_lower <= plain.certificate.delta_upper
    assert plain.certificate.delta_lower <= thin.certificate.delta_upper
    assert thin.cost.noise_messages == pytest.approx(plain.cost.noise_messages / 0.8, rel=1e-12)
    assert audit(thin).verdict == "certified"
    assert audit(thin, Claim.of(thin, honest=0.5), explain=False).verdict == "violated"


def test_refusals_to_certify() -> None:
    proposal = Proposal.of(json.loads(EXAMPLE.read_text()))
    with pytest.raises(Violated, match="above the claimed"):
        certify(uncertified(replace(proposal, delta=1e-8)))
    with pytest.raises(InvalidParameter, match="honest"):
        uncertified(proposal, honest=0.0)
    silent = Proposal.of({**json.loads(EXAMPLE.read_text()), "max_value": 3})
    with pytest.raises(Violated, match="input 3 becomes 0"):
        certify(uncertified(silent))
