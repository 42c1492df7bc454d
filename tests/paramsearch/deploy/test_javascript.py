"""The JavaScript client, in Node and in Chromium: the same messages as Python for the same bits,
the same refusals, and the file's law with the platform's own bits.

Each statistical test draws fresh bits and fails with probability 1e-6 if the law is right.
"""

from __future__ import annotations

import base64
import json
import math
import random
import re
import threading
from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rfc8785
from chromium import Chromium
from deploy_vectors import Recorder, refusals
from deployed import file
from documents import blocks
from fuzz_inputs import Inputs
from javascript import SCRIPTS, VECTORS, answer, node, required_node
from places import ROOT, SHIPPED
from program import run
from sampler_laws import ALARM, chi_square
from scipy import stats

from accounting.base.errors import AccountingError
from paramsearch import load, save
from paramsearch.deploy import Analyzer, Codec, Randomizer
from paramsearch.deploy.exact_events import shuffle
from paramsearch.deploy.javascript import client_files
from paramsearch.deploy.samplers import Burst, Choice, Logarithmic, Poisson
from paramsearch.parameters.assembly import for_users
from paramsearch.parameters.parameter_file import ParameterFile, digest, dumps

GUIDE = ROOT / "paramsearch" / "deploy" / "GUIDE.md"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the command writes, with the example."""
    folder = tmp_path_factory.mktemp("client") / "new" / "client"
    parameters = folder.parent.parent / "file.json"
    save(file(), parameters)
    done = run("client", "javascript", parameters, "-o", folder, "--json")
    assert done.returncode == 0, done.stderr
    assert set(json.loads(done.stdout)["files"]) == {path.name for path in folder.iterdir()}
    return folder


def test_the_command_writes_the_module_and_only_with_a_file_a_page(tmp_path: Path) -> None:
    folder = tmp_path / "c"
    assert run("client", "javascript", "-o", folder).returncode == 0
    assert {path.name for path in folder.iterdir()} == set(client_files())
    assert sum(map(len, client_files().values())) <= 32 << 10
    assert len(client_files()["paramsearch.js"]) <= 30_000
    text = client_files()["paramsearch.js"].decode()
    assert not re.search(r"^import|\brequire\(|import\(", text, re.MULTILINE)


def test_what_the_command_refuses_leaves_nothing(tmp_path: Path) -> None:
    folder, bad = tmp_path / "c", tmp_path / "bad.json"
    bad.write_text(next(c["content"] for c in refusals() if c["name"] == "no certificate"))
    for wrong in (
        ("client", "cobol", "-o", folder),
        ("client", "javascript", bad, "-o", folder),
        ("client", "javascript", tmp_path / "none.json", "-o", folder),
        ("client", "javascript", "-o", bad),
        ("client", "javascript"),
    ):
        done = run(*wrong, "--json")
        assert done.returncode == 2, wrong
        assert "Traceback" not in done.stderr
        assert json.loads(done.stdout)["failure"]["exit_code"] == 2
    assert not folder.exists()


def test_the_example_does_not_replace_another_page(tmp_path: Path) -> None:
    save(file(), tmp_path / "file.json")
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "index.html").write_text("mine")
    done = run("client", "javascript", tmp_path / "file.json", "-o", folder)
    assert done.returncode == 2
    assert [path.name for path in folder.iterdir()] == ["index.html"]
    (folder / "index.html").unlink()
    for _ in range(2):  # again over itself
        assert run("client", "javascript", tmp_path / "file.json", "-o", folder).returncode == 0


def test_only_files_of_the_client_are_replaced(tmp_path: Path) -> None:
    """An older version is; whatever else has the name is not, and then nothing is written."""
    for name, content in client_files().items():
        (tmp_path / name).write_bytes(content + b"// an older version\n")
    assert run("client", "javascript", "-o", tmp_path).returncode == 0
    for name, content in client_files().items():
        assert (tmp_path / name).read_bytes() == content
    (tmp_path / "paramsearch.d.ts").unlink()
    (tmp_path / "paramsearch.js").write_text("export const mine = 1;\n")
    done = run("client", "javascript", "-o", tmp_path, "--json")
    assert done.returncode == 2
    assert "move it away" in json.loads(done.stdout)["failure"]["message"]
    assert (tmp_path / "paramsearch.js").read_text() == "export const mine = 1;\n"
    assert [path.name for path in tmp_path.iterdir()] == ["paramsearch.js"]


def test_a_signature_goes_along(tmp_path: Path) -> None:
    save(file(), tmp_path / "file.json")
    (tmp_path / "file.json.sig").write_text("c2lnbmF0dXJl\n")
    done = run("client", "javascript", tmp_path / "file.json", "-o", tmp_path / "site")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "site" / "parameters.json.sig").read_text() == "c2lnbmF0dXJl\n"
    assert "give parameters.json.sig and your public key to load" in done.stdout


@pytest.mark.parametrize("name", ["js", "JavaScript", "typescript"])
def test_other_names_of_the_language(tmp_path: Path, name: str) -> None:
    done = run("client", name, "-o", tmp_path / "c")
    assert done.returncode == 2
    assert "write javascript" in done.stderr


def test_the_vectors_in_node(client: Path) -> None:
    done = node(client, "--test", SCRIPTS / "vectors.test.js")
    assert done.returncode == 0, done.stdout
    assert f"# pass {len(list(VECTORS.iterdir()))}" in done.stdout


def test_the_same_messages_as_python_for_the_same_bits(client: Path) -> None:
    """10,000 random cases on 20 shipped files; half are for few users, who draw noise."""
    required_node()
    chosen = random.Random(20)
    listed = []
    for name in chosen.sample(sorted(path.name for path in SHIPPED.iterdir()), 20):
        shipped = load(SHIPPED / name)
        few = for_users(shipped, max(1, round(shipped.cost.noise_messages / 8)))
        for made, count in ((shipped, 250), (few, 250)):
            recorder = Recorder(name)
            randomizer = Randomizer(made, recorder, not_private=True)
            cases = []
            for _ in range(count):
                value = chosen.randint(0, made.problem.max_value)
                recorder.text = ""
                symbols = randomizer(value)
                cases.append({"value": value, "bits": recorder.text, "symbols": symbols})
            listed.append({"content": dumps(made), "cases": cases})
    assert sum(len(one["cases"]) for one in listed) == 10_000
    assert sum(len(case["symbols"]) > 2 for one in listed for case in one["cases"]) > 1500
    assert answer(client, "cases.js", listed) == []


def burst_file(dimension: int) -> dict[str, Any]:
    """A file of format 5, its certificate made up: only its form and its noise matter here."""
    base = json.loads(dumps(file(dimension, n=10)))
    base["format"] = "correlated-noise-parameters/5"
    long = Fraction(0.997)  # its powers are too long to be written down as fractions
    laws = [("3/4", 1), ("1/3", 3), (f"{long.numerator}/{long.denominator}", 2)]
    for entry, (p, m) in zip(base["atoms"], laws, strict=False):
        rate = Fraction(entry["rate"])
        mean = float(rate * (1 + m * Fraction(p) / (1 - Fraction(p))))
        entry.update(law="burst", p=p, m=m, mean=mean)
        del entry["r"]
    base["atoms"][3]["law"] = "negative-binomial"
    noise = 2 * base["central"]["mean"]
    noise += sum(len(entry["atom"]) * entry["mean"] for entry in base["atoms"])
    cost, n = base["cost"], base["problem"]["n"]
    cost["noise_messages"] = noise = noise * dimension
    cost["messages_per_user"] = 1 + noise / n
    cost["bits_per_user"] = cost["bits_per_message"] * (1 + noise / n)
    return {**base, "sha256": digest(base)}


@pytest.mark.parametrize("dimension", [1, 3])
def test_bursts_are_drawn_as_in_python(client: Path, dimension: int) -> None:
    made = burst_file(dimension)
    terms = [{**made["central"], "atom": [1]}, {**made["central"], "atom": [-1]}, *made["atoms"]]
    rates = [Fraction(term["rate"]) for term in terms]
    events = Poisson(sum(rates, Fraction(0)) * dimension / made["problem"]["n"])
    which = Choice(rates)
    copies = [
        Burst(Fraction(term["p"]), term["m"]) if "m" in term else Logarithmic(Fraction(term["p"]))
        for term in terms
    ]
    codec = Codec(tuple(made["alphabet"]), dimension)
    cases = []
    for case in range(300):
        source = Recorder(f"burst {dimension} {case}")
        symbols = [codec.symbol((0, 2))]
        for _ in range(events.draw(source)):
            term = which.draw(source)
            coordinate = 0
            if dimension > 1:
                coordinate = source.bits(2)
                while coordinate >= dimension:
                    coordinate = source.bits(2)
            sent = [codec.symbol((coordinate, value)) for value in terms[term]["atom"]]
            symbols += sent * copies[term].draw(source)
        shuffle(source, symbols)
        value: Any = [0, 2] if dimension > 1 else 2
        cases.append({"value": value, "bits": source.text, "symbols": symbols})
    assert sum(len(case["symbols"]) > 1 for case in cases) > 100
    content = rfc8785.dumps(made).decode()
    assert answer(client, "cases.js", [{"content": content, "cases": cases}]) == []


def changed(made: dict[str, Any], atom: int, **fields: Any) -> dict[str, str]:
    """The file with other fields in one atom, None for missing ones, sealed again."""
    document = json.loads(json.dumps(made))
    entry = {**document["atoms"][atom], **fields}
    document["atoms"][atom] = {key: value for key, value in entry.items() if value is not None}
    return {"content": json.dumps({**document, "sha256": digest(document)})}


def test_wrong_bursts_are_refused(client: Path) -> None:
    made = burst_file(1)
    wrong = [
        changed(made, 0, m=0),
        changed(made, 0, m=65),
        changed(made, 0, m=1.5),
        changed(made, 0, m=None),
        changed(made, 0, m=2),
        changed(made, 0, law="poisson"),
        changed(made, 0, law=None),
        changed(made, 0, r=1.0),
        changed(made, 0, mean=1.0),
        changed(made, 3, m=1),
        changed(made, 3, r=None),
        changed(made, 3, law=None),
    ]
    found = answer(client, "loading.js", [changed(made, 0), *wrong])
    assert found[0] == ""
    assert all(found[1:])
    assert not any("not refused" in text for text in found)


def variants() -> list[ParameterFile]:
    """One shipped file of every kind that there is."""
    found: dict[Any, ParameterFile] = {}
    for path in sorted(SHIPPED.iterdir()):
        made = load(path)
        found.setdefault(
            (made.format, len(made.certificate.proof) if made.certificate else 0), made
        )
    return [*found.values(), file(), file(7), file(1, 0.9)]


def test_files_of_every_kind_are_accepted(client: Path) -> None:
    files = variants()
    assert answer(client, "loading.js", [{"content": dumps(made)} for made in files]) == [""] * len(
        files
    )


def test_hostile_files_and_bytes(client: Path) -> None:
    good = dumps(file()).encode()
    hostile = [
        {"hex": (b"\xef\xbb\xbf" + good).hex()},
        {"hex": (good + b"\xff").hex()},
        {"content": "[" * 100_000 + "]" * 100_000},
        {"content": '{"a": "\\ud800"}'},
        {"content": '{"__proto__": 1, "format": "correlated-noise-parameters/1"}'},
        {"content": good.decode().replace('"n": 50', '"n": ' + "9" * 100_000)},
        {"content": "null"},
        {"content": "\x00"},
    ]
    found = answer(client, "loading.js", [{"hex": good.hex()}, *hostile])
    assert found[0] == ""
    assert all(found[1:])
    assert not any("not refused" in text for text in found)


@pytest.mark.parametrize(
    "count", [300, pytest.param(10_000, marks=pytest.mark.slow)], ids=["few", "many"]
)
def test_both_clients_use_the_same_files(client: Path, tmp_path: Path, count: int) -> None:
    """Files with odd numbers, half of them consistent; some are no JSON at all."""
    inputs, rng, path = Inputs(), random.Random(count), tmp_path / "file.json"
    hostile, refused = [inputs.file(rng) for _ in range(count)], []
    for content in hostile:
        path.write_bytes(content)
        try:
            Randomizer(load(path))
        except AccountingError:
            refused.append(True)
        else:
            refused.append(False)
    found = []
    for begin in range(0, count, 500):
        part = hostile[begin : begin + 500]
        found += answer(client, "loading.js", [{"hex": content.hex()} for content in part])
    assert [bool(text) for text in found] == refused
    assert 0.2 * count < sum(refused) < 0.8 * count
    assert not any("not refused" in text for text in found)


def test_refusals_name_the_value_and_what_is_wanted(client: Path) -> None:
    good = dumps(file())
    newer = json.loads(good)["format"][:-1] + "9"
    wanted = {
        "[]": "the file is a list: it must be an object",
        "5": "the file = 5 must be an object",
        "null": "the file = null must be an object",
        good.replace('"n": 50', '"n": "50"'): '.n = "50" must be a whole number from 1 to',
        good.replace('"n": 50', '"n": 5.5'): ".n = 5.5 must be a whole number from 1 to",
        good.replace('"n": 50', '"n": {}'): ".n is an object: it must be a whole number from 1 to",
        good.replace('"n": 50', '"n": 0'): ".n = 0 must be a whole number from 1 to",
        good.replace('"n": 50,', ""): "problem.n is missing",
        good.replace('parameters/1"', 'parameters/9"'): f'"{newer}" must be',
    }
    found = answer(client, "loading.js", [{"content": content} for content in wanted])
    for text, words in zip(found, wanted.values(), strict=True):
        assert words in text
    assert "a newer one needs a newer client" in found[-1]


def test_misuse_is_refused_and_nothing_is_sent_half_way(client: Path) -> None:
    assert answer(client, "misuse.js", {"content": dumps(file())}) == []


def test_signatures(client: Path, tmp_path: Path) -> None:
    pytest.importorskip("cryptography")
    path, key = tmp_path / "file.json", tmp_path / "key.pem"
    save(file(), path)
    assert run("sign", path, "--key", key, "--create-key").returncode == 0
    assert run("sign", path, "--key", tmp_path / "other.pem", "--create-key", "-o",
               tmp_path / "other.sig").returncode == 0  # fmt: skip
    content, signature = path.read_text(), (tmp_path / "file.json.sig").read_text()
    public = (tmp_path / "key.pem.pub").read_text()
    flipped = bytearray(base64.b64decode(signature))
    flipped[5] ^= 1
    good, *bad = answer(
        client,
        "loading.js",
        [
            {"content": content, "signature": signature, "publicKey": public},
            {"content": content, "signature": signature},
            {"content": content, "publicKey": public},
            {"content": content, "signature": None, "publicKey": None},
            {"content": content, "sig": signature, "public_key": public},
            {"content": content, "signature": 5, "publicKey": public},
            {"content": content, "signature": "", "publicKey": ""},
            {"content": content, "signature": "?", "publicKey": public},
            {"content": content, "signature": signature, "publicKey": "?"},
            {"content": content, "publicKey": public,
             "signature": base64.b64encode(flipped).decode()},
            {"content": content, "publicKey": public,
             "signature": (tmp_path / "other.sig").read_text()},
            {"content": dumps(file(7)), "signature": signature, "publicKey": public},
        ],
    )  # fmt: skip
    assert good == ""
    assert all(bad)
    assert not any("not refused" in text for text in bad)


def test_the_script_of_the_guide(client: Path) -> None:
    (script,) = (block for block in blocks(GUIDE) if block.name == "send.mjs")
    assert len(script.text.splitlines()) == 5
    (client / script.name).write_text(script.text)
    done = node(client, client / script.name, client / "parameters.json", "3")
    assert done.returncode == 0, done.stderr
    codec = Codec.of(file())
    sent = [codec.message(int(symbol)) for symbol in done.stdout.split()]
    assert (0, 3) in sent
    for wrong in ("4", "1.5", "x"):
        done = node(client, client / script.name, client / "parameters.json", wrong)
        assert done.returncode != 0
        assert done.stdout == ""
        assert "must be a whole number from 0 to 3" in done.stderr
    (client / script.name).unlink()


def test_the_law_of_a_million_users(client: Path) -> None:
    """1,000 times 1,000 users with the value 0.  The value 2 is in one atom only, so a user sends
    NB(r/n, p) of them; the messages of n users sum to a Discrete Laplace number."""
    made = for_users(load(SHIPPED / "2-1-1e-06-0.9.json"), 1000)
    with_two = [entry for entry in made.atoms if 2 in entry.atom]
    assert [entry.atom.count(2) for entry in with_two] == [1]
    found = answer(
        client, "draw.js", {"content": dumps(made), "groups": 1000, "users": 1000, "watched": 2}
    )
    counts = np.repeat(np.arange(len(found["counts"])), found["counts"])
    assert len(counts) == 1_000_000
    r, p = with_two[0].r / 1000, float(1 - Fraction(with_two[0].p))
    assert chi_square(counts, lambda k: stats.nbinom.cdf(k, r, p)) > ALARM
    rate = 2 * Fraction(made.central.rate) + sum(Fraction(entry.rate) for entry in made.atoms)
    silent = math.exp(-float(rate) / 1000)
    assert stats.binomtest(found["silent"], 1_000_000, silent).pvalue > ALARM
    q = float(Fraction(made.central.p))
    sums = np.abs(np.array(found["sums"]))
    assert chi_square(sums, lambda k: 1 - 2 * q ** (k + 1) / (1 + q)) > ALARM


def test_a_mixed_fleet(client: Path) -> None:
    """Half of 100,000 users run Python, half JavaScript; one analyzer adds their messages up."""
    made = for_users(load(SHIPPED / "5-1-1e-06-0.9.json"), 100_000)
    values = [i % 6 for i in range(100_000)]
    sent = answer(client, "fleet.js", {"content": dumps(made), "values": values[::2]})
    server = Analyzer(made, users=100_000)
    server.add(sent)
    server.add(Randomizer(made).batch(values[1::2], allow_few=True).symbols)
    result = server.result(confidence=1 - 1e-9)
    assert result.lower[0] <= sum(values) <= result.upper[0]
    assert result.implausible is None


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture(scope="module")
def address(client: Path) -> Iterator[str]:
    """The example, the checks and the vectors on a server of this machine."""
    (client / "checks.js").write_text((SCRIPTS / "checks.js").read_text())
    for path in VECTORS.iterdir():
        (client / f"vectors_{path.name}").write_text(path.read_text())
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(client)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    thread.join()
    server.server_close()


def ask(browser: Chromium, expression: str) -> Any:
    """The value of a promise."""
    found = browser.call(
        "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True
    )
    assert "exceptionDetails" not in found, found
    return found["result"].get("value")


def visit(browser: Chromium, address: str) -> None:
    browser.events.clear()
    browser.call("Page.navigate", url=address)
    browser.wait(lambda event: event.get("method") == "Page.loadEventFired")


def test_the_vectors_in_chromium(browser: Chromium, address: str) -> None:
    visit(browser, address)
    for path in sorted(VECTORS.iterdir()):
        check = "refusals(module, data.cases)" if path.stem == "refusals" else (
            f"vectors(module, '{path.stem}', data)"
        )  # fmt: skip
        wrong = ask(browser, f"""(async () => {{
            const module = await import('/paramsearch.js');
            const {{ refusals, vectors }} = await import('/checks.js');
            const data = await (await fetch('/vectors_{path.name}')).json();
            return JSON.stringify(await {check});
        }})()""")  # fmt: skip
        assert json.loads(wrong) == [], path.stem


def submit(browser: Chromium, value: str) -> tuple[str, str]:
    """Type a value and press the button; what is shown as sent, and as wrong."""
    found = ask(browser, f"""(async () => {{
        const button = document.querySelector('button');
        while (button.disabled) await new Promise(done => setTimeout(done, 20));
        document.querySelector('[name=value]').value = {json.dumps(value)};
        button.click();
        return ['sent', 'wrong'].map(id => document.getElementById(id).textContent);
    }})()""")  # fmt: skip
    return found[0], found[1]


def test_the_example_page(browser: Chromium, address: str) -> None:
    visit(browser, address)
    sent, wrong = submit(browser, "3")
    assert wrong == ""
    assert "the value 3" in sent
    for value in ("4", "-1", "x", "1.5", ""):
        sent, wrong = submit(browser, value)
        assert sent == ""
        assert wrong or value == ""  # an empty field is not even submitted
    asked = [
        event["params"]["request"]["url"] for event in browser.seen("Network.requestWillBeSent")
    ]
    assert {url.removeprefix(address) for url in asked} <= {
        "", "page.js", "paramsearch.js", "parameters.json", "favicon.ico"
    }  # fmt: skip


def shown_of(browser: Chromium, name: str) -> str:
    """The text of an element, after a while; nothing if it is not visible."""
    return str(ask(browser, f"""(async () => {{
        await new Promise(done => setTimeout(done, 1500));
        const found = document.getElementById('{name}');
        const style = getComputedStyle(found);
        return style.visibility === 'visible' && style.display !== 'none' ? found.textContent : '';
    }})()"""))  # fmt: skip


def test_the_page_opened_as_a_file_says_how_to_serve_it(
    browser: Chromium, address: str, client: Path
) -> None:
    visit(browser, (client / "index.html").as_uri())
    blocked = shown_of(browser, "blocked")
    assert "python3 -m http.server" in blocked
    assert "http://localhost:8000" in blocked
    visit(browser, address)
    assert shown_of(browser, "blocked") == ""
    assert "50 people" in shown_of(browser, "about")


def test_the_page_of_a_file_that_was_changed(browser: Chromium, address: str, client: Path) -> None:
    parameters = client / "parameters.json"
    before = parameters.read_text()
    try:
        parameters.write_text(before.replace('"n": 50', '"n": 51'))
        visit(browser, address)
        shown = ask(browser, """(async () => {
            const wrong = document.getElementById('wrong');
            while (!wrong.textContent) await new Promise(done => setTimeout(done, 20));
            return [wrong.textContent, document.querySelector('button').disabled];
        })()""")  # fmt: skip
    finally:
        parameters.write_text(before)
    assert "sha256" in shown[0]
    assert shown[1] is True
