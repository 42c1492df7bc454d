"""What the fuzzer feeds: documents that are nearly right, and files that are not."""

from __future__ import annotations

import copy
import io
import json
import math
import random
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from odd_values import INTEGERS, NUMBERS, OTHERS

from accounting import AccountingError, greedy, halves, hubs, ones, radix
from accounting.model.configuration import Proposal
from accounting.model.mechanism import ExactCentral
from paramsearch.certification.certify import certify
from paramsearch.filling.folder import Folder
from paramsearch.filling.grid import Grid
from paramsearch.parameters.assembly import assemble, uncertified
from paramsearch.parameters.parameter_file import digest, dumps, from_json
from paramsearch.tables.lookup import shipped_folder


@dataclass(frozen=True)
class Case:
    command: str
    document: str
    arguments: list[str]


class Inputs:
    """The documents to begin with are made once."""

    def __init__(self) -> None:
        one = {"atom": [-1, 1], "r": 2.0, "p": 0.5}
        burst = {"atom": [-1, 1], "law": "burst", "rate": 3.0, "p": 0.5, "m": 2}
        two = {"atom": [-1, -1, 2], "r": 5.0, "p": 0.8}
        small = {"max_value": 1, "eps": 1.0, "delta": 0.3, "n": 100, "eps_central": 0.9}
        self.configurations: list[dict[str, Any]] = [
            {**small, "atoms": [one]},
            {**small, "max_value": 2, "delta": 0.5, "atoms": [one, two]},
            {**small, "atoms": [one], "dimension": 7, "eps_central": 0.4, "delta": 0.6},
            {**small, "atoms": [one, {**one, "p": 0.7}, one]},
            {**small, "delta": 0.5, "atoms": [burst]},
            {**small, "atoms": [burst, one]},
        ]
        for family in (greedy(5, [3]), hubs(9)):
            atoms = [{"atom": list(a), "r": 12.0, "p": 0.9} for a in family.atoms]
            self.configurations.append({**small, "max_value": family.max_value, "atoms": atoms})
        self.files: list[dict[str, Any]] = []
        for data in self.configurations[:6]:
            made = certify(uncertified(Proposal.of(data)), tier="fast")
            self.files.append(json.loads(dumps(made)))
        symbols = list(range(4)) * 100
        self.messages = {
            ".txt": "".join(f"{x}\n" for x in symbols).encode(),
            ".csv": b"symbol,id\n" + b"".join(b"%d,m%d\n" % (x, i) for i, x in enumerate(symbols)),
            **_columnar(symbols),
        }

    def case(self, rng: random.Random, folder: Path) -> Case:
        """One command with what it is to read, written into the folder."""
        makers: dict[Callable[[random.Random, Path], Case], int] = {
            self._audit: 30,
            self._certify: 12,
            self._profile: 16,
            self._randomize: 10,
            self._analyze: 26,
            self._lookup: 6,
        }
        return rng.choices(list(makers), list(makers.values()))[0](rng, folder)

    def _document(self, rng: random.Random, folder: Path, kind: str) -> Path:
        path = folder / "document.json"
        path.write_bytes(self.configuration(rng) if kind == "configuration" else self.file(rng))
        return path

    def configuration(self, rng: random.Random) -> bytes:
        if rng.random() < 0.6:
            return json.dumps(_plausible(rng)).encode()
        data = copy.deepcopy(rng.choice(self.configurations))
        for _ in range(_few(rng)):
            if rng.random() < 0.35:
                _odd_atoms(rng, data)
            else:
                mutate(rng, data)
        return _text(rng, data)

    def file(self, rng: random.Random) -> bytes:
        data = copy.deepcopy(rng.choice(self.files))
        if rng.random() < 0.5:
            data = _forged(rng, data)
        else:
            for _ in range(_few(rng)):
                mutate(rng, data)
        if rng.random() < 0.8:
            with suppress(ValueError, TypeError, AttributeError):  # it may have no canonical form
                data["sha256"] = digest(data)
        return _text(rng, data)

    def _audit(self, rng: random.Random, folder: Path) -> Case:
        kind = rng.choice(["configuration", "file"])
        arguments = ["audit", str(self._document(rng, folder, kind)), "--budget", "0.5"]
        arguments += _options(
            rng, ["--eps", "--delta", "--honest", "--gap"], ["--releases", "--lost"]
        )
        arguments += _tier(rng)
        return Case("audit", kind, arguments + _json(rng))

    def _certify(self, rng: random.Random, folder: Path) -> Case:
        kind = rng.choice(["configuration", "file"])
        arguments = ["certify", str(self._document(rng, folder, kind)), "-o", str(folder / "out")]
        arguments += _options(rng, ["--eps", "--delta", "--honest", "--gap"], ["--releases", "--n"])
        return Case("certify", kind, arguments + _tier(rng) + _json(rng))

    def _profile(self, rng: random.Random, folder: Path) -> Case:
        kind = rng.choice(["configuration", "configuration", "file"])
        arguments = ["profile", str(self._document(rng, folder, kind))]
        arguments += _options(rng, ["--eps", "--delta", "--honest", "--gap"], ["--releases"])
        if rng.random() < 0.15:
            arguments += ["--pair", str(_integer(rng)), str(_integer(rng))]
        return Case("profile", kind, arguments + _json(rng))

    def _randomize(self, rng: random.Random, folder: Path) -> Case:
        value = str(rng.choice([0, 1, 1, 2, -1, _number(rng)]))
        arguments = ["randomize", str(self._document(rng, folder, "file")), "--value", value]
        arguments += _options(rng, ["--low", "--high"], ["--coordinate"])
        return Case("randomize", "file", arguments + _json(rng))

    def _analyze(self, rng: random.Random, folder: Path) -> Case:
        document = folder / "document.json"
        changed = rng.random() < 0.25
        document.write_bytes(
            self.file(rng) if changed else json.dumps(rng.choice(self.files)).encode()
        )
        suffix = rng.choice(sorted(self.messages))
        path = folder / f"messages{suffix}"
        content = self.messages[suffix]
        path.write_bytes(content if changed and rng.random() < 0.7 else scrambled(rng, content))
        arguments = ["analyze", str(document), str(path)]
        arguments += _options(rng, ["--low", "--high", "--confidence"], ["--users"])
        arguments += ["--strict"] if rng.random() < 0.1 else []
        return Case("analyze", "file" if changed else suffix[1:], arguments + _json(rng))

    def _lookup(self, rng: random.Random, folder: Path) -> Case:
        problem = {"--n": 100, "--eps": 1.0, "--delta": 1e-6, "--max-value": 1}
        for name in problem:
            if rng.random() < 0.2:
                problem[name] = _number(rng)
        arguments = ["lookup", *(str(x) for pair in problem.items() for x in pair)]
        arguments += _options(rng, ["--max-rmse"], [])
        if rng.random() < 0.4:
            return Case("lookup", "request", arguments + _json(rng))
        place = folder / "table"
        _table(place)
        path = place / rng.choice(["index.parquet", "files/1-1-1e-06-0.9.json"])
        path.write_bytes(scrambled(rng, path.read_bytes()))
        arguments.insert(1, str(place))
        return Case("lookup", "table", [*arguments, "-o", str(folder / "out"), *_json(rng)])


def _few(rng: random.Random) -> int:
    return rng.choice([1, 1, 1, 2, 2, 3, 5])


def _number(rng: random.Random) -> Any:
    if rng.random() < 0.5:
        return rng.choice(NUMBERS)
    return 10 ** rng.uniform(-12, 12) if rng.random() < 0.7 else rng.random()


def _integer(rng: random.Random) -> int:
    return rng.choice([*INTEGERS, rng.randrange(-10, 10), rng.randrange(1 << 40)])


def _options(rng: random.Random, reals: list[str], integers: list[str]) -> list[str]:
    found = []
    for name in reals:
        if rng.random() < 0.12:
            number = _SENSIBLE[name](rng) if rng.random() < 0.8 else _number(rng)
            found += [name, str(number)]
    for name in integers:
        if rng.random() < 0.12:
            number = rng.choice([1, 2, 3, 10, 100, 10**6])
            found += [name, str(number if rng.random() < 0.8 else _integer(rng))]
    return found


def _decades(low: float, high: float) -> Callable[[random.Random], float]:
    return lambda rng: 10 ** rng.uniform(low, high)


_SENSIBLE: dict[str, Callable[[random.Random], float]] = {
    "--eps": _decades(-12, 7),
    "--delta": _decades(-320, -0.01),
    "--honest": lambda rng: rng.choice([rng.random(), 10 ** rng.uniform(-300, 0)]),
    "--gap": _decades(-9, 0),
    "--low": lambda rng: -rng.choice([0.0, 1.0, 1e-300, 1e300]),
    "--high": lambda rng: rng.choice([1.0, 5e-324, 1e300, 1e308]),
    "--confidence": lambda rng: rng.choice([0.5, 0.95, 1 - 2**-53, 5e-324, 1e-9]),
    "--max-rmse": _decades(-9, 9),
}


def _plausible(rng: random.Random) -> dict[str, Any]:
    """In its domain everywhere, and extreme in some places."""
    top = rng.choice([1, 1, 1, 2, 2, 3, 5, 9, 20, 40, 150])
    build = rng.choice([ones, halves, hubs, lambda k: radix(k, 3), lambda k: greedy(k, [k])])
    if rng.random() < 0.005:
        top, build = 3000, halves
    family = build(top) if top > 1 else ones(1)
    wild = rng.random() < 0.6

    def noise() -> dict[str, Any]:
        if rng.random() < 0.25:
            rate = rng.choice([3.0, 17.0, 10 ** rng.uniform(-12, 9)])
            p = rng.choice([0.5, 0.9, rng.random() or 0.5])
            return {"law": "burst", "rate": rate, "p": p, "m": rng.choice([1, 2, 8, 64])}
        if rng.random() < 0.5:
            r, p = rng.choice([0.5, 1.0, 12.0]), rng.choice([0.5, 0.9, 0.99])
        else:
            r, p = 10 ** rng.uniform(-12, 12), 10 ** rng.uniform(-30, 0)
            p = p if rng.random() < 0.5 else 1 - 10 ** rng.uniform(-14, -1)
        if wild and rng.random() < 0.1:
            r, p = rng.choice([5e-324, 1e-100, 1e308, r]), rng.choice([5e-324, 1 - 2**-53, 1e-300])
        return {"r": r, "p": min(max(p, 5e-324), 1 - 2**-53)}

    same = noise()
    each = rng.random() < 0.5
    atoms = [{"atom": list(a), **(noise() if each else same)} for a in family.atoms]
    if rng.random() < 0.2:
        again = [{"atom": entry["atom"], **noise()} for entry in atoms[: rng.choice([1, 3, 100])]]
        atoms += again * rng.choice([1, 1, 70])
    eps_central = 10 ** rng.uniform(-12, 1.5) * rng.choice([1, top])
    data = {
        "max_value": family.max_value,
        "eps": eps_central * rng.choice([1.0, 1.1, 2.0, 1e-9, 1e9]),
        "delta": rng.choice([0.9, 0.3, 1e-6, 1e-300]),
        "n": rng.choice([1, 100, 10**6, 2**53 - 1]),
        "eps_central": eps_central,
        "atoms": atoms,
    }
    if rng.random() < 0.2:
        data["dimension"] = rng.choice([2, 7, 1000, (1 << 31) - 1])
    return data


def _tier(rng: random.Random) -> list[str]:
    return ["--tier", rng.choice(["auto", "ball", "mixed", "fast", "light", "reference"])]


def _json(rng: random.Random) -> list[str]:
    return ["--json"] if rng.random() < 0.5 else []


def mutate(rng: random.Random, data: Any) -> None:
    """Change one place of a JSON value."""
    places: list[tuple[Any, Any]] = []

    def collect(value: Any) -> None:
        if isinstance(value, (dict, list)):
            keys = list(value) if isinstance(value, dict) else range(len(value))
            for key in keys:
                places.append((value, key))
                collect(value[key])

    collect(data)
    if not places:
        return
    inside, key = rng.choice(places)
    old = inside[key]
    action = rng.random()
    if action < 0.5 and not isinstance(old, (dict, list)):
        inside[key] = _like(rng, old)
    elif action < 0.7:
        inside[key] = _number(rng)
    elif action < 0.78:
        inside[key] = copy.deepcopy(rng.choice(OTHERS))
    elif action < 0.86:
        del inside[key]
    elif isinstance(inside, list):
        inside.extend(copy.deepcopy(old) for _ in range(rng.choice([1, 2, 100])))
    elif isinstance(inside, dict):
        inside[rng.choice(["extra", "format", "dimension", "n", "\ud800"])] = copy.deepcopy(old)


def _like(rng: random.Random, old: Any) -> Any:
    """A value of the same type."""
    if isinstance(old, bool) or old is None:
        return rng.choice([True, False, None])
    if isinstance(old, int):
        return rng.choice([old + 1, old - 1, -old, 2 * old, _integer(rng)])
    if isinstance(old, float):
        return rng.choice([old * 10 ** rng.uniform(-9, 9), math.nextafter(old, 0), _number(rng)])
    text = str(old)
    if "/" in text:
        return _rational(rng)
    return rng.choice([text[::-1], text + "0", text[:-1], "é\0\n" + text])


def _rational(rng: random.Random) -> str:
    top, bottom = (
        rng.choice([1, 2, 3, 10**9, 10**50, 10**300, 10**499, rng.getrandbits(60) + 1, 1 << 192])
        + rng.choice([0, 0, 1])
        for _ in range(2)
    )
    value = Fraction(top, bottom)
    return f"{value.numerator}/{value.denominator}"


def _odd_atoms(rng: random.Random, data: dict[str, Any]) -> None:
    """Other sets of atoms, often ones that are no family."""
    if not isinstance(data.get("atoms"), list):
        return
    top = rng.choice([1, 2, 3, 4, 6, 40, 1000, 1 << 20])
    for _ in range(rng.choice([1, 1, 2, 5, 30])):
        values = [rng.choice([-1, 1, -2, 2, 3, rng.randint(-top, top) or 1]) for _ in range(3)]
        values.append(-sum(values))
        atom = [value for value in values if value] or [-1, 1]
        if abs(values[-1]) < 200 and rng.random() < 0.5:
            atom = [*values[:-1], *[1 if values[-1] > 0 else -1] * abs(values[-1])] or atom
        noise = {"r": 10 ** rng.uniform(-3, 3), "p": rng.choice([0.5, 0.9, rng.random()])}
        data["atoms"].append({"atom": atom, **noise})
    if rng.random() < 0.5:
        data["max_value"] = rng.choice([1, 2, 3, 5, 9, 40])


def _forged(rng: random.Random, data: dict[str, Any]) -> dict[str, Any]:
    """A consistent file with other rationals, where that is possible."""
    file = from_json(data, source="it")
    central = ExactCentral(p=Fraction(file.central.p), rate=Fraction(file.central.rate))
    if rng.random() < 0.3:
        p = Fraction(_rational(rng))
        central = ExactCentral(p=p / (1 + p), rate=Fraction(_rational(rng)))
    atoms = []
    for entry in file.atoms:
        noise = entry.exact()
        if rng.random() < 0.5:
            p = Fraction(_rational(rng))
            noise = replace(noise, p=p / (1 + p), rate=Fraction(_rational(rng)))
        atoms.append((entry.atom, noise))
    try:
        found = assemble(file.problem, central, atoms, file.provenance, file.certificate)
    except AccountingError:
        return data
    made: dict[str, Any] = json.loads(dumps(found))
    return made


def _text(rng: random.Random, data: Any) -> bytes:
    try:
        content = json.dumps(data).encode()
    except ValueError:  # an integer of thousands of digits
        content = b"{}"
    return scrambled(rng, content) if rng.random() < 0.1 else content


def scrambled(rng: random.Random, content: bytes) -> bytes:
    """Some bytes changed, cut or repeated."""
    found = bytearray(content)
    for _ in range(_few(rng)):
        at = rng.randrange(len(found) + 1)
        action = rng.random()
        if action < 0.3:
            found[at : at + 1] = bytes([rng.randrange(256)])
        elif action < 0.6:
            size = rng.choice([2, 4, 8])
            number = rng.choice([*INTEGERS, 1 << 62, rng.getrandbits(60)])
            found[at : at + size] = (number % (1 << 8 * size)).to_bytes(size, "little")
        elif action < 0.7:
            del found[at:]
        elif action < 0.85:
            del found[at : at + rng.choice([1, 4, 64])]
        else:
            found[at:at] = found[at : at + rng.choice([1, 8, 256])] * rng.choice([1, 1, 50])
        if not found:
            break
    return bytes(found)


def _columnar(symbols: list[int]) -> dict[str, bytes]:
    names = [f"m{i % 37}" for i in range(len(symbols))]
    table = pa.table({"symbol": pa.array(symbols, pa.int16()), "id": names})
    parquet, arrow = io.BytesIO(), io.BytesIO()
    pq.write_table(table, parquet, compression="none", store_schema=False)
    with pa.ipc.new_file(arrow, table.schema) as writer:
        writer.write_table(table)
    return {".parquet": parquet.getvalue(), ".arrow": arrow.getvalue()}


def _table(place: Path) -> None:
    (place / "files").mkdir(parents=True)
    shutil.copy(shipped_folder() / "files" / "1-1-1e-06-0.9.json", place / "files")
    grid = Grid(eps=(1.0,), delta=(1e-6,), max_value=(1,), central_fraction=(0.9,))
    folder = Folder(place, grid)
    folder.write_index()
    folder.close()
