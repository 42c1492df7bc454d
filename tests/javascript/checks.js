/** What the vectors demand of the module, for Node and for browsers; each check names what is wrong. */

const hex = (bytes) => [...bytes].map((x) => x.toString(16).padStart(2, "0")).join("");
const same = (found, wanted) => JSON.stringify(found) === JSON.stringify(wanted);

/** Given bits, a text of 0 and 1. */
export class Tape {
  constructor(text) {
    this.text = text;
    this.read = 0;
  }
  peek() {
    return parseInt(this.text.slice(this.read, this.read + 32).padEnd(32, "0"), 2);
  }
  skip(bits) {
    if (this.read + bits > this.text.length) throw new Error("the tape ends");
    this.read += bits;
  }
}

/** Cases of bits to symbols: the same symbols, and exactly these bits are read. */
export function randomized({ Randomizer }, file, cases, real) {
  const wrong = [];
  for (const { value, bits, symbols } of cases) {
    const tape = new Tape(bits);
    const randomizer = new Randomizer(file, tape, { notPrivate: true });
    const found = real ? randomizer.randomizeReal(value) : randomizer.randomize(value);
    if (!same(found, symbols)) wrong.push(`${value}: ${found}, not ${symbols}`);
    if (tape.read !== bits.length) wrong.push(`${value}: ${tape.read} bits of ${bits.length}`);
  }
  return wrong;
}

/** One file of vectors. */
export async function vectors(module, name, data) {
  const { Randomizer, Refused, load } = module;
  const file = await load(JSON.stringify(data.file));
  const wrong = randomized(module, file, data.randomizer, name === "reals");
  const randomizer = new Randomizer(file, new Tape(""), { notPrivate: true });
  for (const value of [...data.refused, NaN, Infinity, undefined, "", {}]) {
    try {
      name === "reals" ? randomizer.randomizeReal(value) : randomizer.randomize(value);
      wrong.push(`${JSON.stringify(value)} is not refused`);
    } catch (error) {
      if (!(error instanceof Refused)) wrong.push(`${JSON.stringify(value)}: ${error}`);
      if (String(error).includes("tape")) wrong.push(`${JSON.stringify(value)}: bits were read`);
    }
  }
  for (const { symbols, packed } of data.encoder)
    if (hex(randomizer.pack(symbols)) !== packed) wrong.push(`packed ${symbols}`);
  for (const { symbols, sums, rejected } of data.analyzer) {
    const found = sums.map(() => 0);
    let strangers = 0;
    for (const symbol of symbols) {
      try {
        const [coordinate, value] = randomizer.message(symbol);
        found[coordinate] += value;
      } catch {
        strangers++;
      }
    }
    if (!same(found, sums) || strangers !== rejected) wrong.push(`sums ${found} ${strangers}`);
  }
  return wrong;
}

/** Files that must be refused, for the right reason. */
export async function refusals({ Refused, load }, cases) {
  const wrong = [];
  for (const { name, content, about } of cases) {
    try {
      await load(content);
      wrong.push(`${name}: not refused`);
    } catch (error) {
      if (!(error instanceof Refused)) wrong.push(`${name}: ${error.stack}`);
      if (!error.message.includes(about)) wrong.push(`${name}: ${error.message}`);
    }
  }
  return wrong;
}
