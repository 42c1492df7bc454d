"""The rooms of the house and who may enter which, read off the syntax trees.

Imports count wherever they are: at the top, inside a function, or for the type checker alone.
"""

from __future__ import annotations

import ast
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest
from places import ROOT

PACKAGES = ("accounting", "paramsearch")
MOST_MODULES = 12
"""In one folder."""
KNOWS = {
    "accounting.base": set(),
    "accounting.model": {"accounting.base"},
    "accounting.evaluator": {"accounting.base", "accounting.model"},
    "accounting.estimator": {"accounting.base", "accounting.model", "accounting.evaluator"},
    "accounting.notary": {"accounting.base", "accounting.model"},
    "accounting.reference": {"accounting.base", "accounting.model"},
    "accounting.composition": {"accounting.base", "accounting.model", "accounting.evaluator"},
    "accounting.baselines": {"accounting.base", "accounting.model"},
    "paramsearch.search": {"accounting", "paramsearch.request"},
    "paramsearch.parameters": {
        "accounting.base",
        "accounting.model",
        "paramsearch.files",
        "paramsearch.refusals",
    },
    "paramsearch.deploy": {"accounting.base", "accounting.model", "paramsearch.parameters"},
    "paramsearch.certification": {
        "accounting",
        "paramsearch.parameters",
        "paramsearch.deploy.noise_events",  # nothing is certified that clients refuse
    },
}
"""What a room may import besides itself; a room that is not listed is only bound by the others."""
SPECIFICATION = {
    "accounting.model.mechanism",
    "accounting.model.change",
    "accounting.model.proof",
    "accounting.model.proof_types",
}
"""What all proofs are about, and all that the notary and the reference know of the model."""
HEAVY = {"numba", "scipy", "matplotlib", "clarabel", "cvxpy"}


@cache
def modules() -> dict[str, Path]:
    found = {}
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            parts = path.relative_to(ROOT).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports(path: Path) -> set[str]:
    """Every module that a file imports."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} has a relative import"
            assert node.module is not None
            for name in node.names:
                full = f"{node.module}.{name.name}"
                found.add(full if full in modules() else node.module)
    return found


def inside(module: str, room: str) -> bool:
    return module == room or module.startswith(f"{room}.")


def ours(module: str) -> set[str]:
    return {name for name in imports(modules()[module]) if name.split(".")[0] in PACKAGES}


@cache
def reached(module: str) -> frozenset[str]:
    """Everything that an import of this module may lead to, at once or later."""
    found: set[str] = set()
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            if name in modules():
                waiting += imports(modules()[name])
    return frozenset(found)


def in_room(room: str) -> list[str]:
    return sorted(name for name in modules() if inside(name, room))


def test_no_import_cycles() -> None:
    graph = {name: ours(name) for name in modules()}
    try:
        list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


def test_no_cycles_among_the_folders_of_the_search() -> None:
    """Families know nothing of programs, programs nothing of noise."""
    graph: dict[str, set[str]] = {}
    for name in in_room("paramsearch.search"):
        folder = name.split(".")[2:-1]
        if folder:
            known = {".".join(other.split(".")[2:-1]) for other in ours(name)}
            graph.setdefault(folder[0], set()).update(known - {folder[0], ""})
    order = [name for name in TopologicalSorter(graph).static_order() if name in graph]
    assert order == ["families", "dominance", "noise"]


def test_no_cycles_among_rooms() -> None:
    """A room is a folder, or a module beside the folders."""
    graph: dict[str, set[str]] = {}
    for name in modules():
        room = ".".join(name.split(".")[:2])
        if "." in name and name != "paramsearch.__main__":
            known = {".".join(other.split(".")[:2]) for other in ours(name) if "." in other}
            graph.setdefault(room, set()).update(known - {room})
    try:
        list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


@pytest.mark.parametrize("room", KNOWS)
def test_a_room_imports_only_what_it_may(room: str) -> None:
    assert in_room(room)
    for module in in_room(room):
        for name in ours(module):
            allowed = any(inside(name, other) for other in {room, *KNOWS[room]})
            assert allowed, f"{module} imports {name}"


def test_accounting_knows_nothing_of_searching() -> None:
    for module in in_room("accounting"):
        assert not any(inside(name, "paramsearch") for name in ours(module)), module


@pytest.mark.parametrize("room", ["accounting.notary", "accounting.reference"])
def test_the_other_proofs_share_no_code_with_the_first_or_each_other(room: str) -> None:
    """Not even through a third module: what they reach is the base and what is proved."""
    for module in in_room(room):
        for name in reached(module):
            if name.split(".")[0] in PACKAGES:
                allowed = (
                    inside(name, room) or inside(name, "accounting.base") or name in SPECIFICATION
                )
                assert allowed, f"{module} reaches {name}"


def test_the_base_and_what_is_proved_contain_no_evaluation() -> None:
    for module in [*in_room("accounting.base"), *SPECIFICATION]:
        for name in reached(module):
            if name.split(".")[0] in PACKAGES:
                assert inside(name, "accounting.base") or name in SPECIFICATION, (module, name)


def test_the_reference_computes_with_numpy_and_mpmath_alone() -> None:
    """No compiled kernel, no transform and no ball: flint is what the exact parameters use."""
    for module in in_room("accounting.reference"):
        for name in imports(modules()[module]):
            assert name.split(".")[0] not in {*HEAVY, "flint"}, f"{module} imports {name}"


def test_one_module_knows_numba() -> None:
    for module, path in modules().items():
        names = {name.split(".")[0] for name in imports(path)}
        assert "numba" not in names or module == "accounting.base.jit", module


@pytest.mark.parametrize("module", in_room("paramsearch.deploy"))
def test_a_client_loads_no_evaluator(module: str) -> None:
    for name in reached(module):
        assert name.split(".")[0] not in HEAVY, f"{module} reaches {name}"
        for room in ("evaluator", "estimator", "notary", "reference", "proof", "composition"):
            assert not inside(name, f"accounting.{room}"), f"{module} reaches {name}"
        assert not inside(name, "paramsearch.search"), f"{module} reaches {name}"


def test_nobody_imports_the_command_line() -> None:
    for module in modules():
        if not inside(module, "paramsearch.cli") and module != "paramsearch.__main__":
            assert not any(inside(name, "paramsearch.cli") for name in ours(module)), module


def test_only_the_command_line_prints() -> None:
    allowed = {"accounting.base.jit"}  # one warning about numba's cache, on stderr
    for module, path in modules().items():
        if not inside(module, "paramsearch.cli") and module not in allowed:
            tree = ast.parse(path.read_text(encoding="utf-8"))
            calls = [n.func for n in ast.walk(tree) if isinstance(n, ast.Call)]
            printed = [f for f in calls if isinstance(f, ast.Name) and f.id == "print"]
            assert not printed, module


def test_folders_stay_small() -> None:
    for folder in {path.parent for path in modules().values()}:
        count = len([path for path in folder.glob("*.py") if path.name != "__init__.py"])
        assert count <= MOST_MODULES, f"{folder} has {count} modules"
