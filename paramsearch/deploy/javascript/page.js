/** The example page of the correlated-noise shuffle protocol. */

import { Randomizer, load } from "./paramsearch.js";

const at = (id) => document.getElementById(id);

function start(file) {
  const randomizer = new Randomizer(file);
  const { problem, provenance, sha256 } = file.document;
  const { low, high } = provenance.settings;
  const real = typeof low === "number" && typeof high === "number" && file.dimension === 1;
  const inputs = real ? `real numbers from ${low} to ${high}` : `whole numbers from 0 to ${file.maxValue}`;
  at("about").textContent =
    `For ${problem.n.toLocaleString("en")} ${problem.n === 1 ? "person" : "people"} with ${inputs}` +
    (file.dimension > 1 ? `, each in one of ${file.dimension} coordinates` : "") +
    `; the file's content has the SHA-256 ${sha256.slice(0, 16)}…`;
  at("coordinate").hidden = file.dimension === 1;
  at("form").querySelector("button").disabled = false;
  at("form").addEventListener("submit", (event) => {
    event.preventDefault();
    at("sent").textContent = at("wrong").textContent = "";
    try {
      const fields = new FormData(event.target);
      const [value, coordinate] = ["value", "coordinate"].map((name) => number(fields.get(name)));
      const symbols = real
        ? randomizer.randomizeReal(value)
        : randomizer.randomize(file.dimension > 1 ? [coordinate, value] : value);
      const lines = symbols.map((symbol) => `${symbol}: ${describe(randomizer.message(symbol))}`);
      at("sent").textContent = lines.join("\n") || "no message at all: the value is 0, and no noise was drawn";
    } catch (error) {
      at("wrong").textContent = `Nothing is sent: ${error.message}`;
    }
  });
  const describe = ([coordinate, value]) =>
    file.dimension > 1 ? `the value ${value} in coordinate ${coordinate}` : `the value ${value}`;
}

/** Nothing but a plain number; an empty field is none. */
const number = (text) => (/^\s*[-+]?[\d.]+(e[-+]?\d+)?\s*$/i.test(text) ? Number(text) : NaN);

at("blocked").hidden = true;
at("about").textContent = "Reading the parameters …";
try {
  const answer = await fetch("parameters.json", { cache: "no-cache" });
  if (!answer.ok) throw new Error(`parameters.json: ${answer.status}`);
  start(await load(await answer.arrayBuffer()));
} catch (error) {
  at("about").textContent = "";
  at("wrong").textContent = `The parameters cannot be used: ${error.message}`;
}
