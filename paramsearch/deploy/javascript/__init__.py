"""The client in JavaScript: a module with type declarations, and an example page."""

from __future__ import annotations

from importlib import resources

PARAMETERS = "parameters.json"
"""The name under which the example page looks for a parameter file."""
_MODULE = ("paramsearch.js", "paramsearch.d.ts")
_EXAMPLE = ("index.html", "page.js")


def client_files(parameters: bytes | None = None) -> dict[str, bytes]:
    """The files of the client, by name.

    Args:
        parameters: A parameter file; with it, the files include a page that uses it.

    Returns:
        The content of every file.

    >>> list(client_files())
    ['paramsearch.js', 'paramsearch.d.ts']
    """
    names = _MODULE if parameters is None else _MODULE + _EXAMPLE
    folder = resources.files("paramsearch.deploy.javascript")
    found = {name: (folder / name).read_bytes() for name in names}
    return found if parameters is None else {**found, PARAMETERS: parameters}
