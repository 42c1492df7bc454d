"""What an HTML page says, whether it is whole, and whether it can be read."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from html.parser import HTMLParser


def body(html: str) -> ET.Element:
    """The body, which has to be well-formed XML, too."""
    return ET.fromstring(html[html.index("<body>") : html.index("</html>")])


def words(html: str) -> str:
    return " ".join("".join(body(html).itertext()).split())


def balanced(html: str) -> bool:
    """Every element is closed, in order."""
    seen = _Open()
    seen.feed(html)
    seen.close()
    return seen.whole and not seen.tags


class _Open(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.whole = True

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag != "meta":
            self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        self.whole &= bool(self.tags) and self.tags.pop() == tag


def contrast(one: str, two: str) -> float:
    """WCAG 2."""

    def luminance(colour: str) -> float:
        parts = [c / 255 for c in bytes.fromhex(colour)]
        red, green, blue = (
            c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts
        )
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    low, high = sorted((luminance(one), luminance(two)))
    return (high + 0.05) / (low + 0.05)
