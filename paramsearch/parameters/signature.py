"""Detached Ed25519 signatures over the canonical JSON of a parameter file.

A signature file holds the 64 bytes in base64 on one line.  Keys are PEM, PKCS 8 for the private one
and SubjectPublicKeyInfo for the public one, as ``openssl genpkey -algorithm ed25519`` makes them.
"""

from __future__ import annotations

import base64
import binascii
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from accounting.base import strict_json
from accounting.base.errors import InvalidConfiguration, InvalidParameter
from accounting.base.validation import AnyPath, as_path
from paramsearch.files import write_atomically
from paramsearch.parameters.parameter_file import ParameterFile

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (
        Ed25519PrivateKey,
        Ed25519PublicKey,
    )

_LARGEST_KEY = 1 << 16
_MAKES_ONE = "sign --create-key makes one"


def signature_path(path: AnyPath) -> Path:
    """Return the path of a file's signature by default."""
    path = as_path(path)
    return path.with_name(path.name + ".sig")


def public_path(key: AnyPath) -> Path:
    """Return the path of the public key that belongs to a private key made here."""
    key = as_path(key)
    return key.with_name(key.name + ".pub")


def sign(parameters: ParameterFile, private_key: AnyPath) -> bytes:
    """The content of the signature file."""
    signature = _private(private_key).sign(parameters.canonical())
    return base64.b64encode(signature) + b"\n"


def verify(parameters: ParameterFile, signature: AnyPath, public_key: AnyPath) -> None:
    """Nothing if the signature is good, InvalidConfiguration otherwise."""
    from cryptography.exceptions import InvalidSignature

    key = _public(public_key)
    try:
        content = base64.b64decode(strict_json.read_text(signature).strip(), validate=True)
    except (binascii.Error, ValueError) as error:
        raise InvalidConfiguration(f"{signature} is not a signature in base64: {error}") from error
    try:
        key.verify(content, parameters.canonical())
    except InvalidSignature:
        raise InvalidConfiguration(
            f"the signature {signature} is not one of this file by the key {public_key}"
        ) from None


def create_key(path: AnyPath) -> Path:
    """Write a new private key, readable by its owner only, and its public key beside it."""
    serialization = _library()
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    path, public = as_path(path), public_path(path)
    for existing in (path, public):
        if existing.exists():
            raise InvalidParameter(f"{existing} exists already; a key is never overwritten")
    key = Ed25519PrivateKey.generate()
    secret = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    shown = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    write_atomically(path, secret, private=True)
    write_atomically(public, shown)
    return public


def _library() -> Any:
    try:
        from cryptography.hazmat.primitives import serialization
    except ImportError as error:
        raise InvalidParameter(
            "signatures need the package cryptography: pip install 'paramsearch[sign]', or "
            "'.[sign]' in a clone"
        ) from error
    return serialization


def _private(path: AnyPath) -> Ed25519PrivateKey:
    serialization = _library()
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = _key(path, lambda pem: serialization.load_pem_private_key(pem, None), "private")
    if not isinstance(key, Ed25519PrivateKey):
        raise InvalidParameter(
            f"{path} is a private key of another kind than Ed25519; {_MAKES_ONE}"
        )
    return key


def _public(path: AnyPath) -> Ed25519PublicKey:
    serialization = _library()
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    key = _key(path, serialization.load_pem_public_key, "public")
    if not isinstance(key, Ed25519PublicKey):
        raise InvalidParameter(f"{path} is a public key of another kind than Ed25519; {_MAKES_ONE}")
    return key


def _key(path: AnyPath, decode: Any, wanted: Literal["private", "public"]) -> Any:
    from cryptography.exceptions import UnsupportedAlgorithm

    try:
        pem = strict_json.read_bytes(path, most=_LARGEST_KEY)
    except InvalidConfiguration as error:
        raise InvalidParameter(f"the key: {error}; {_MAKES_ONE}") from error
    try:
        return decode(pem)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        cause = _why_not(pem, wanted)
        raise InvalidParameter(f"{path} cannot be the {wanted} key: {cause}") from error


def _why_not(pem: bytes, wanted: Literal["private", "public"]) -> str:
    """Say what is wrong with the content of a key file that cannot be read, and what to give."""
    if b"-----BEGIN " not in pem:
        return f"it is not PEM, which begins with -----BEGIN {wanted.upper()} KEY-----"
    if wanted == "private" and b"BEGIN PUBLIC KEY" in pem:
        return "it is a public one; give the private one, KEY if this is KEY.pub"
    if wanted == "public" and b"PRIVATE KEY" in pem:
        return (
            "it is a private one, which stays secret; give the public one, KEY.pub if this is KEY"
        )
    if b"ENCRYPTED" in pem:
        return "it is encrypted; give one without a password"
    return f"it is PEM, but no {wanted} key that can be read; {_MAKES_ONE}"
