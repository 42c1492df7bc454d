/** What must not work, and that nothing comes out of a call that fails half way; answers failures. */
import { readFileSync } from "node:fs";
import { Tape } from "./checks.js";

const { Randomizer, Refused, SystemBits, load } = await import(process.env.CLIENT);
const { content } = JSON.parse(readFileSync(0, "utf8"));
const file = await load(content), wrong = [];
const refused = (what, call) => {
  try {
    wrong.push(`${what} gives ${JSON.stringify(call())}`);
  } catch (error) {
    if (!(error instanceof Refused)) wrong.push(`${what}: ${error}`);
  }
};
refused("a file that was not checked", () => new Randomizer({ ...file }));
refused("other bits", () => new Randomizer(file, new Tape("0")));
class Zeros extends SystemBits {
  peek() {
    return 0;
  }
}
refused("bits that pretend", () => new Randomizer(file, new Zeros()));
refused("no symbol", () => new Randomizer(file).message(99));
refused("no symbol to pack", () => new Randomizer(file).pack([99]));
refused("real values without a range", () => new Randomizer(file).randomizeReal(0.5));
for (const [at, name] of [[1, "one bit"], [30, "thirty bits"]]) {
  let sent = null;
  try {
    sent = new Randomizer(file, new Tape("0".repeat(at)), { notPrivate: true }).randomize(3);
  } catch {
    if (sent !== null) wrong.push(`something was sent after ${name}`);
    continue;
  }
  wrong.push(`${name} were enough`);
}
const truly = crypto.getRandomValues, seen = [];
crypto.getRandomValues = () => {
  throw new Error("no bits");
};
const source = new SystemBits();
for (let i = 0; i < 2; i++) {
  try {
    wrong.push(`bits from nowhere: ${source.peek()}`);
  } catch {}
}
crypto.getRandomValues = truly;
const read = () => {
  for (let i = 0; i < 1023; i++) {
    seen.push(source.peek());
    source.skip(32);
  }
};
read();
crypto.getRandomValues = () => {
  throw new Error("no bits");
};
for (let i = 0; i < 9; i++) {
  try {
    seen.push(source.peek());
    source.skip(32);
  } catch {}
}
crypto.getRandomValues = truly;
read();
if (new Set(seen).size < seen.length - 1) wrong.push("bits were used twice"); // one pair by chance
try {
  file.alphabet[0] = 7;
  wrong.push("a file was changed after it was checked");
} catch {}
Object.defineProperty(globalThis, "crypto", { value: {} }); // as on an insecure page
try {
  await load(content);
  wrong.push("a hash was not checked");
} catch (error) {
  if (!(error instanceof Refused) || !/https.*localhost/.test(error.message)) wrong.push(`${error}`);
}
console.log(JSON.stringify(wrong));
