/** Reads files with cases of bits to symbols; answers what the client does differently. */
import { readFileSync } from "node:fs";
import { randomized } from "./checks.js";

const module = await import(process.env.CLIENT);
const wrong = [];
for (const { content, cases } of JSON.parse(readFileSync(0, "utf8")))
  wrong.push(...randomized(module, await module.load(content), cases, false));
console.log(JSON.stringify(wrong));
