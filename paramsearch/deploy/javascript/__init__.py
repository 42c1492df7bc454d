"""The client in JavaScript: a module with type declarations, and an example page."""

from __future__ import annotations

from importlib import resources

PARAMETERS = "parameters.json"
"""The name under which the example page looks for a parameter file."""
SIGNATURE = f"{PARAMETERS}.sig"
"""The name of its signature, if it has one."""
_MARKS = {
    "paramsearch.js": b"The client of the correlated-noise shuffle protocol",
    "paramsearch.d.ts": b"A file, a value or a platform that cannot be used",
    "index.html": b"The example page of the correlated-noise shuffle protocol",
    "page.js": b"The example page of the correlated-noise shuffle protocol",
}
"""What every version of a file says in its first lines."""
_BEGINNING = 200
"""Bytes in which a mark is looked for."""
_MODULE = ("paramsearch.js", "paramsearch.d.ts")
_EXAMPLE = ("index.html", "page.js")


def is_ours(name: str, content: bytes) -> bool:
    """Tell whether this content of a file is of this client, perhaps of another version.

    >>> is_ours("paramsearch.js", client_files()["paramsearch.js"]), is_ours("page.js", b"mine")
    (True, False)
    """
    return name in _MARKS and _MARKS[name] in content[:_BEGINNING]


def client_files(
    parameters: bytes | None = None, signature: bytes | None = None
) -> dict[str, bytes]:
    """The files of the client, by name.

    Args:
        parameters: A parameter file; with it, the files include a page that uses it.
        signature: Its signature, which the page does not check.

    Returns:
        The content of every file.

    >>> list(client_files())
    ['paramsearch.js', 'paramsearch.d.ts']
    """
    names = _MODULE if parameters is None else _MODULE + _EXAMPLE
    folder = resources.files("paramsearch.deploy.javascript")
    found = {name: (folder / name).read_bytes() for name in names}
    if parameters is not None:
        found[PARAMETERS] = parameters
        if signature is not None:
            found[SIGNATURE] = signature
    return found
