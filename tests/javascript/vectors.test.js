import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { test } from "node:test";
import { refusals, vectors } from "./checks.js";

const module = await import(process.env.CLIENT);
const read = (name) => JSON.parse(readFileSync(`${process.env.VECTORS}/${name}`, "utf8"));

for (const name of readdirSync(process.env.VECTORS)) {
  test(name, async () => {
    const data = read(name);
    assert.equal(data.version, 1);
    const wrong = data.cases
      ? await refusals(module, data.cases)
      : await vectors(module, name.replace(".json", ""), data);
    assert.deepEqual(wrong, []);
  });
}
