/**
 * The client of the correlated-noise shuffle protocol: one user's value becomes the user's messages.
 *
 *   const randomizer = new Randomizer(await load(await (await fetch("parameters.json")).text()));
 *   for (const symbol of randomizer.randomize(3)) send(symbol);  // each by itself, to the shuffler
 *
 * Send until acknowledged: who is missing must not depend on the noise.  Only whole numbers lie
 * between bits and messages: noise has the file's law.
 */

/** A file, a value or a platform that cannot be used: nothing may be sent. */
export class Refused extends Error {
  name = "Refused";
}
const refuse = (message) => {
  throw new Refused(message);
};
const must = (holds, message) => holds || refuse(message);

const MOST_MESSAGES = 2 ** 24; // of one user, or of one noise event
const MOST_BITS = 2 ** 16; // working precision of a probability
const LONGEST_EXACT = 2 ** 14; // bits of a denominator of an exact power of p
const LARGEST_FILE = 2 ** 26; // bytes
const CLOSE = 1e-12; // relative distance of derived numbers
const [MAX_31, MAX_53] = [2n ** 31n - 1n, 2n ** 53n - 1n];
const sum = (numbers) => numbers.reduce((total, x) => total + x, 0);

// ---- JSON: objects as Map, whole numbers as BigInt, no duplicate keys

function parse(content) {
  try {
    JSON.parse(content);
  } catch (error) {
    refuse(`the file is not JSON: ${error.message}`);
  }
  const tokens = content.match(/"(?:[^"\\]|\\.)*"|[{}[\]]|[^\s{}[\]",:]+/g);
  let at = 0;
  const textOf = (token) => {
    const found = JSON.parse(token);
    return /\p{Surrogate}/u.test(found) ? refuse("a text has half a surrogate pair") : found;
  };
  const value = (depth) => {
    const token = tokens[at++];
    must(depth <= 64, "the file is nested too deeply");
    if (token === "{") {
      const found = new Map();
      while (tokens[at] !== "}") {
        const key = textOf(tokens[at++]);
        must(!found.has(key), `the key ${key} is given twice`);
        found.set(key, value(depth + 1));
      }
      at++;
      return found;
    }
    if (token === "[") {
      const found = [];
      while (tokens[at] !== "]") found.push(value(depth + 1));
      at++;
      return found;
    }
    if (token[0] === '"') return textOf(token);
    if (/^-?\d+$/.test(token)) return token.length > 4300 ? refuse("too many digits") : BigInt(token);
    const found = JSON.parse(token);
    return Math.abs(found) === Infinity ? refuse(`${token} is not a finite double`) : found;
  };
  return value(0);
}

/** The canonical JSON of RFC 8785. */
function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical).join()}]`;
  if (Object(value) !== value) return JSON.stringify(value);
  const keys = Object.keys(value).sort();
  return `{${keys.map((key) => `${JSON.stringify(key)}:${canonical(value[key])}`).join()}}`;
}

// ---- What a file may contain: checks take a parsed value and its place, and return the value

const wrong = (value, at, words) => {
  const shown = typeof value === "string" ? JSON.stringify(value) : value;
  const given = Array.isArray(value) ? "is a list: it"
    : Object(value) === value ? "is an object: it"
    : `= ${String(shown).slice(0, 60)}`;
  return refuse(`${at} ${given} must be ${words}`);
};

const whole = (least, most) => (value, at) =>
  typeof value === "bigint" && least <= value && value <= most
    ? Number(value)
    : wrong(value, at, `a whole number from ${least} to ${most}`);
const real = (accepts, words) => (value, at) => {
  const number = typeof value === "bigint" ? Number(value) : value;
  return Number.isFinite(number) && accepts(number) ? number : wrong(value, at, `a number ${words}`);
};
const text = (pattern, words) => (value, at) =>
  typeof value === "string" && pattern.test(value) ? value : wrong(value, at, words);
const list = (check, least, most = 2 ** 26) => (value, at) =>
  Array.isArray(value) && value.length >= least && value.length <= most
    ? Object.freeze(value.map((entry, i) => check(entry, `${at}[${i}]`)))
    : wrong(value, at, `a list of ${least} to ${most} entries`);
const table = (check) => (value, at) => {
  if (!(value instanceof Map)) wrong(value, at, "an object");
  const found = Object.create(null);
  for (const [key, entry] of value) found[key] = check(entry, `${at}.${key}`, key);
  return Object.freeze(found);
};
/** An object with these fields, some of them optional, and no others. */
const record = (fields, ...optional) => (value, at) => {
  const checks = new Map(Object.entries(fields));
  const field = (entry, at, key) => (checks.get(key) ?? refuse(`${at} is unknown here`))(entry, at);
  const found = table(field)(value, at);
  for (const key in fields) must(key in found || optional.includes(key), `${at}.${key} is missing`);
  return found;
};
const nullable = (check) => (value, at) => (value === null ? null : check(value, at));
const oneOf = (...words) => text(new RegExp(`^(?:${words.join("|")})$`), words.join(" or "));

const count = whole(0n, MAX_53);
const int32 = whole(-MAX_31, MAX_31);
const positive = real((x) => x > 0, "above 0");
const notNegative = real((x) => x >= 0, "from 0");
const anyText = text(/^/, "a text");
const change = list(whole(0n, MAX_31), 2, 4);
const gcd = (a, b) => {
  while (b) [a, b] = [b, a % b];
  return a;
};
const parts = (rational) => rational.split("/").map(BigInt);
function rational(value, at) {
  if (typeof value !== "string" || value.length > 1000 || !/^[1-9]\d*\/[1-9]\d*$/.test(value))
    wrong(value, at, "a positive fraction such as 3/4, of at most 1,000 characters");
  return gcd(...parts(value)) === 1n ? value : wrong(value, at, "in lowest terms");
}
function share(value, at) {
  const [a, b] = parts(rational(value, at));
  return a < b ? value : wrong(value, at, "less than 1");
}
function elements(value, at) {
  const atom = list(int32, 2, 2 ** 20)(value, at);
  must(!atom.includes(0), `${at} has a 0, which is never sent`);
  must(sum(atom) === 0, `${at} is not zero-sum`);
  must(atom.every((x, i) => !i || atom[i - 1] <= x), `${at} is not sorted`);
  return atom;
}

const law = oneOf("negative-binomial", "burst"), m = whole(1n, 64n), r = positive, mean = positive;
const entry = record({ atom: elements, law, rate: rational, p: share, m, r, mean }, "law", "m", "r");
const FORMAT = "correlated-noise-parameters/";
const problem = record({
  n: whole(1n, MAX_53),
  max_value: whole(1n, 2n ** 20n),
  eps: real((x) => x >= 0 && x <= 1000, "from 0 to 1000"),
  delta: real((x) => x > 0 && x < 1, "between 0 and 1"),
  adjacency: oneOf("substitution", "zero-out"),
  releases: whole(1n, MAX_31),
  honest: real((x) => x > 0 && x <= 1, "above 0 and at most 1"),
  dimension: whole(2n, MAX_31),
  changes: oneOf("any"),
}, "dimension", "changes");
const certificate = record({
  eps: notNegative,
  delta_lower: notNegative,
  delta_upper: notNegative,
  worst_pair: change,
  proof: table(count),
  precision: count,
  sampler_deviation: notNegative,
  software: table(anyText),
  worst_sequence: list(record({ change, times: whole(1n, 10000n) }), 0),
}, "worst_sequence");
const setting = (value, at) =>
  typeof value === "bigint" ? whole(-MAX_53, MAX_53)(value, at)
  : Object(value) === value ? wrong(value, at, "one value")
  : value;
const parameters = record({
  format: text(new RegExp(`^${FORMAT}[1-5]$`), `${FORMAT}1 to 5; a newer one needs a newer client`),
  problem,
  central: record({ rate: rational, p: share, r, mean, eps_central: positive }),
  atoms: list(entry, 1),
  alphabet: list(int32, 2),
  cost: record({
    noise_messages: positive,
    messages_per_user: positive,
    bits_per_message: count,
    bits_per_user: positive,
  }),
  error: record({ mse: positive, rmse: positive, rmse_over_central: notNegative }),
  certificate: nullable(certificate),
  provenance: record({ tool: anyText, version: anyText, seed: nullable(count), settings: table(setting) }),
  sha256: text(/^[0-9a-f]{64}$/, "64 hexadecimal digits"),
});
const METHODS = [
  "ball", "fast", "comparison", "ball, central noises coupled",
  "ball, central noise as a two-dimensional table of doubles with error bounds",
];

function checked(data) {
  const file = parameters(data, "the file");
  const { problem, certificate: proved } = file, { dimension = 1, max_value: top, releases } = problem;
  const zeroOut = problem.adjacency === "zero-out", sequence = "changes" in problem;
  const bursts = file.atoms.some(({ law }) => law === "burst");
  const format = FORMAT + (bursts ? 5 : zeroOut ? 4 : sequence ? 3 : dimension > 1 ? 2 : 1);
  must(file.format === format, `format = ${file.format} does not fit: this is ${format}`);
  for (const { atom, law, m, r } of file.atoms) {
    const burst = law === "burst", fits = !law !== bursts && !m !== burst && !r === burst;
    const wanted = `${burst ? "m and no r" : "r and no m"}, and ${bursts ? "a" : "no"} law`;
    must(fits, `the ${law ?? "noise"} of atom [${atom.slice(0, 9)}] must have ${wanted}`);
  }
  must(!sequence || (releases > 1 && releases <= 10000), "any changes need 2 to 10000 releases");
  must(proved, "the file has no certificate; `paramsearch certify` adds one");
  must(proved.eps === problem.eps, "certificate.eps is not the problem's");
  const { delta_lower: lower, delta_upper: upper, worst_sequence: made } = proved;
  must(lower <= upper && upper <= problem.delta, "delta_lower <= delta_upper <= delta fails");
  const possible = (listed) => {
    const moved = listed.length > 2, before = listed[0], after = listed.at(-1);
    if (moved && (listed.length < 4 || listed[1] || listed[2])) return false;
    if (before > top || after > top || (zeroOut && (moved || (before && after)))) return false;
    return moved ? dimension > 1 && before > 0 && after > 0 : before !== after;
  };
  must(possible(proved.worst_pair), "certificate.worst_pair is no change of an input");
  must(!made === !sequence, "worst_sequence belongs to changes = any, and only there");
  if (made?.length) {
    const both = [0, -1].every((end) => made.some((step) => step.change.at(end) === 0));
    const fine = made.every((step) => possible(step.change)) && !(zeroOut && both);
    const times = sum(made.map((step) => step.times));
    must(fine && times === releases, "worst_sequence is not one of changes in all releases");
  }
  for (const method in proved.proof) must(METHODS.includes(method), `the proof ${method} is unknown`);
  const pairs = zeroOut ? 2 * top : top * (top + 1) + (dimension > 1 ? top * top : 0);
  must(sum(Object.values(proved.proof)) === pairs, `the proof is not of all ${pairs} ordered pairs`);
  return file;
}

// ---- The numbers that follow from the rationals

const size = (x) => (x ? x.toString(2).length : 0); // in bits
/** a / b as a double between 1/2 and 2 and an exponent of 2. */
function scaled(a, b) {
  const exponent = size(a) - size(b), shift = BigInt(64 - exponent);
  return [Number(shift >= 0n ? (a << shift) / b : a / (b << -shift)) * 2 ** -64, exponent];
}
const double = (a, b) => {
  const [mantissa, exponent] = scaled(a, b), half = exponent >> 1; // no overflow
  return mantissa * 2 ** half * 2 ** (exponent - half);
};
/** -log(a / b) for 0 < a < b. */
function minusLog(a, b) {
  if (2n * a > b) return -Math.log1p(-double(b - a, b));
  const [mantissa, exponent] = scaled(a, b);
  return -(Math.log(mantissa) + exponent * Math.LN2);
}

/** Refuses a file whose numbers are not what its rationals give. */
function consistent({ problem, central, atoms, alphabet, cost, error }) {
  const { n, eps, delta, releases, max_value: top, dimension = 1, adjacency } = problem;
  const same = (section, expected) => {
    for (const [key, wanted] of Object.entries(expected)) {
      const given = section[key], close = Math.abs(given - wanted) <= CLOSE * Math.abs(wanted);
      const cause = `${key} = ${given}, but the parameters give ${wanted}: the file was forged`;
      must(close && wanted < Infinity, cause);
    }
  };
  // huge events are refused, so they must be rare: SPECIFICATION.md
  const rare = Math.log(delta) - Math.log(releases) - eps - 1 - 128 * Math.LN2;
  for (const entry of [central, ...atoms]) {
    const [a, b] = parts(entry.p), [x, y] = parts(entry.rate), rate = double(x, y);
    const { atom = [1], m = 1 } = entry, odds = double(a, b - a), rest = minusLog(b - a, b);
    const tiny = a << 64n < b, r = tiny ? double(x * b, y * a) : rate / rest; // rest = p if tiny
    same(entry, entry.m ? { mean: rate * (1 + m * odds) } : { r, mean: tiny ? rate : r * odds });
    const c = Math.floor(MOST_MESSAGES / atom.length), events = rate * dimension * (atoms.length + 2);
    const tail = c * (Math.log1p(m / c) - minusLog(a, b)) + m * (Math.log1p(c / m) - rest);
    const fits = BigInt(c) * (b - a) > BigInt(m) * a && Math.log(events) + tail <= rare;
    must(fits, `p of [${atom.slice(0, 9)}] is too large: events may have more than 2^24 messages`);
  }
  const [a, b] = parts(central.p);
  same(central, { eps_central: minusLog(a, b) * top });
  const inputs = Array.from({ length: top }, (_, i) => i + 1);
  const used = new Set([-1, ...inputs, ...atoms.flatMap(({ atom }) => atom)]);
  const values = [...used].sort((x, y) => Math.abs(x) - Math.abs(y) || y - x);
  must(values.join() === alphabet.join(), "alphabet is not that of the parameters");
  const ofAtoms = sum(atoms.map(({ atom, mean }) => atom.length * mean));
  const noise = dimension * (2 * central.mean + ofAtoms), perUser = 1 + noise / n;
  const bits = Math.max(1, size(BigInt(dimension) * BigInt(values.length) - 1n));
  same(cost, { noise_messages: noise, messages_per_user: perUser });
  same(cost, { bits_per_message: bits, bits_per_user: bits * perUser });
  const mse = 2 * central.mean * double(b, b - a);
  const touched = adjacency === "substitution" ? Math.min(dimension, 2) : 1;
  const ratio = Math.sqrt(2 * mse) * Math.sinh(eps / (2 * top * touched));
  same(error, { mse, rmse: Math.sqrt(mse), rmse_over_central: ratio });
  must(perUser <= MOST_MESSAGES, `each user would send about ${perUser} messages: too many`);
}

// ---- Reading a file

class ParameterFile {
  constructor(document) {
    const { problem, alphabet, cost } = document, { max_value: maxValue, dimension = 1 } = problem;
    const noise = new Noise(document, dimension), bits = cost.bits_per_message;
    Object.freeze(Object.assign(this, { document, maxValue, dimension, alphabet, bits, noise }));
  }
}

/** Reads a file, text or bytes; with a second argument, checks its signature. */
export async function load(content, signed) {
  const asked = arguments.length > 1, length = content?.byteLength ?? content?.length;
  must(!asked || (signed?.signature?.trim && signed.publicKey?.trim), "no signature or key");
  must(!(length > LARGEST_FILE), "the file is larger than 64 MiB");
  try {
    if (typeof content !== "string")
      content = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(content);
  } catch {
    refuse("the file is not text in UTF-8");
  }
  const document = checked(parse(content)), { sha256, ...rest } = document;
  const subtle = globalThis.crypto?.subtle;
  must(subtle, "no WebCrypto to check the hash: open https:// or http://localhost, or use Node 20");
  const digest = await subtle.digest("SHA-256", utf8(canonical(rest)));
  const found = Array.from(new Uint8Array(digest), (x) => x.toString(16).padStart(2, "0")).join("");
  must(found === sha256, `its sha256 is ${found}, not ${sha256}: the file was changed`);
  if (asked) await verify(subtle, utf8(canonical(document)), signed);
  consistent(document);
  return new ParameterFile(document);
}

const utf8 = (text) => new TextEncoder().encode(text);

function decoded(base64) {
  try {
    return Uint8Array.from(atob(base64.trim()), (x) => x.charCodeAt(0));
  } catch {
    return refuse("the signature, or the public key, is not base64");
  }
}

async function verify(subtle, message, { signature, publicKey }) {
  const der = decoded(publicKey.replace(/-----[^-]*-----/g, ""));
  const key = await subtle
    .importKey("spki", der, "Ed25519", false, ["verify"])
    .catch((error) => refuse(`no Ed25519 public key, or no Ed25519 in WebCrypto: ${error.message}`));
  const good = await subtle.verify("Ed25519", key, decoded(signature), message);
  must(good, "the signature is not one of this file by this key");
}

// ---- Random bits

/** The cryptographic generator of the platform, which every deployment must use. */
export class SystemBits {
  #bytes = new Uint8Array(4096);
  #view = new DataView(this.#bytes.buffer);
  #at = 8 * 4096; // in bits

  /** The next 32 bits as a number, not used up. */
  peek() {
    if (this.#at > 8 * 4096 - 40) this.#refill();
    const byte = this.#at >>> 3, shift = this.#at & 7;
    const word = this.#view.getUint32(byte);
    return shift ? ((word << shift) | (this.#bytes[byte + 4] >>> (8 - shift))) >>> 0 : word;
  }

  /** Uses up bits, at most 32. */
  skip(bits) {
    this.#at += bits;
  }

  #refill() {
    const begin = this.#at >>> 3;
    this.#bytes.copyWithin(0, begin);
    globalThis.crypto.getRandomValues(this.#bytes.subarray(4096 - begin));
    this.#at &= 7; // only now: if there are no new bits, the old ones are not used again
  }
}

// ---- Events with an exact probability

/** A probability 0 < x < 1; bounds(k) are floor(x 2^k) and ceil(x 2^k). */
class Chance {
  constructor(bounds) {
    this.bounds = bounds;
    Object.assign(this, this.word(0));
  }
  /** Bits 32 i + 1 to 32 i + 32 of x as a number, and how many there are before x ends. */
  word(i) {
    const [low, high] = this.bounds(32 * (i + 1));
    const head = Number(low & 0xffffffffn), ends = low === high;
    return { head, ends, length: ends ? 1 + Math.clz32(head & -head) : 32 };
  }
}

const fraction = (a, b) =>
  new Chance((bits) => {
    const top = a << BigInt(bits), low = top / b;
    return [low, low * b === top ? low : low + 1n];
  });

/** Of two fractions, below and above, that depend on the working precision. */
const enclosed = (enclose) =>
  new Chance((bits) => {
    for (let working = bits + 64; working <= MOST_BITS; working *= 2) {
      const [[a, b], [c, d]] = enclose(working);
      const low = (a << BigInt(bits)) / b, high = ((c << BigInt(bits)) + d - 1n) / d;
      if (high - low === 1n) return [low, high];
    }
    return refuse(`a probability cannot be distinguished from a multiple of 2^-${bits}`);
  });

/** Whether the uniform number that begins with the next bits is less than the probability. */
function happens(source, chance) {
  let part = chance;
  for (let i = 1; ; i++) {
    const word = source.peek(), same = Math.clz32(word ^ part.head);
    if (same < part.length) {
      source.skip(same + 1);
      return word < part.head;
    }
    source.skip(part.length);
    if (part.ends) return false;
    part = chance.word(i);
  }
}

/** A uniform number in 0..count-1, where count is at most 2^31. */
function uniform(source, count) {
  const bits = 32 - Math.clz32(count - 1);
  for (;;) {
    const found = bits ? source.peek() >>> (32 - bits) : 0;
    source.skip(bits);
    if (found < count) return found;
  }
}

// ---- Samplers

/** Poisson of rate a / b, as a sum of pieces of rate at most 1, each drawn by its hazards. */
class Poisson {
  constructor(a, b) {
    this.pieces = Number((a + b - 1n) / b);
    [this.a, this.b] = [a, b * BigInt(this.pieces)];
    this.hazards = [];
    this.hazard(0);
  }
  draw(source) {
    let total = 0;
    for (let piece = 0; piece < this.pieces; piece++)
      for (let k = 0; happens(source, this.hazards[k] ?? this.hazard(k)); k++) total++;
    return total;
  }
  /** P(N > k | N >= k) = 1 - 1/S with S = 1 + rate/(k+1) + rate^2/((k+1)(k+2)) + ... */
  hazard(k) {
    return (this.hazards[k] = enclosed((working) => {
      const one = 1n << BigInt(working);
      let [low, high, least, most] = [one, one, one, one];
      for (let j = 1; low > 0n; j++) {
        const divisor = this.b * BigInt(k + j);
        low = (low * this.a) / divisor;
        high = (high * this.a) / divisor + 1n;
        least += low;
        most += high;
      }
      most += high; // each term that is left out is at most half the one before
      return [[least - one, least], [most - one, most]];
    }));
  }
}

/** The powers p^(2^i), 0 <= i <= last, of p = a / b; last is the least M with 2^M (1 - p) >= 1. */
class Powers {
  constructor(a, b) {
    [this.a, this.b] = [a, b];
    this.last = size((b - 1n) / (b - a));
    this.exact = size(b) * 2 ** this.last <= LONGEST_EXACT;
    this.tables = new Map();
  }
  /** Bounds [low, high] of powers and weights of blocks, in units of 1 / one. */
  table(working) {
    if (this.tables.has(working)) return this.tables.get(working);
    const { a, b, last, exact } = this, bits = BigInt(working), top = 2n ** BigInt(last);
    const one = exact ? b ** top : 1n << bits, powers = [];
    let low = (a << bits) / b, high = low + 1n;
    for (let i = 0n; i <= last; i++) {
      if (exact) low = high = a ** 2n ** i * b ** (top - 2n ** i);
      powers.push([low, high]);
      if (!exact) [low, high] = [(low * low) >> bits, ((high * high) >> bits) + 1n];
      if (high > one) high = one;
    }
    const weights = powers.map(([low, high], j) => {
      const [nextLow, nextHigh] = powers[j + 1] ?? [0n, 0n], scale = BigInt(last - j);
      return [(low > nextHigh ? low - nextHigh : 0n) << scale, (high - nextLow) << scale];
    });
    this.tables.set(working, { one, powers, weights });
    return this.tables.get(working);
  }
  /** A probability by its bounds, two fractions, computed from a table. */
  chance(bounds) {
    return this.exact
      ? fraction(...bounds(this.table(0))[0])
      : enclosed((working) => bounds(this.table(working)));
  }
}

/** P(k) = (1 - p) p^k for k = 0, 1, ..., by binary digits. */
class Geometric {
  constructor(powers) {
    const { a, b, last } = powers;
    this.last = last;
    this.digits = [fraction(a, a + b)];
    for (let i = 1; i < last; i++)
      this.digits.push(powers.chance(({ one, powers }) => powers[i].map((x) => [x, one + x])));
    this.again = powers.chance(({ one, powers }) => powers[last].map((x) => [x, one]));
  }
  truncated(source, digits) {
    let k = 0n;
    for (let i = 0; i < digits; i++) if (happens(source, this.digits[i])) k += 1n << BigInt(i);
    return k;
  }
  draw(source) {
    let k = this.truncated(source, this.last);
    while (happens(source, this.again)) k += 1n << BigInt(this.last);
    return k;
  }
}

/** P(k) proportional to p^k / k for k = 1, 2, ..., by rejection. */
class Logarithmic {
  constructor(powers) {
    this.geometric = new Geometric(powers);
    this.stops = Array.from({ length: powers.last }, (_, j) =>
      powers.chance(({ weights }) => {
        const later = (side) => weights.slice(j + 1).reduce((all, bounds) => all + bounds[side], 0n);
        const [low, high] = weights[j];
        return [[low, low + later(1)], [high, high + later(0)]];
      }),
    );
  }
  draw(source) {
    const last = this.stops.length, { geometric } = this;
    for (;;) {
      let block = 0;
      while (block < last && !happens(source, this.stops[block])) block++;
      const least = 1n << BigInt(block);
      const more = block < last ? geometric.truncated(source, block) : geometric.draw(source);
      if (!more || happens(source, fraction(least, least + more))) return least + more;
    }
  }
}

/** 1 + G_1 + ... + G_m with independent geometric G_i. */
class Burst {
  constructor(powers, m) {
    this.geometric = new Geometric(powers);
    this.m = m;
  }
  draw(source) {
    let k = 1n;
    for (let i = 0; i < this.m; i++) k += this.geometric.draw(source);
    return k;
  }
}

/** An index, with probability proportional to its weight, by bisection. */
class Choice {
  constructor(weights) {
    this.sums = [0n];
    for (const weight of weights) this.sums.push(this.sums.at(-1) + weight);
  }
  draw(source) {
    let begin = 0, end = this.sums.length - 1;
    while (end - begin > 1) {
      const middle = (begin + end) >> 1;
      const [left, all] = [middle, end].map((to) => this.sums[to] - this.sums[begin]);
      if (happens(source, fraction(left, all))) end = middle;
      else begin = middle;
    }
    return begin;
  }
}

/** The noise of one user: Poisson many events, each an atom with a number of copies. */
class Noise {
  constructor({ problem, central, atoms }, dimension) {
    const terms = [{ ...central, atom: [1] }, { ...central, atom: [-1] }, ...atoms];
    const rates = terms.map((term) => parts(term.rate));
    const common = rates.reduce((all, [, b]) => (all / gcd(all, b)) * b, 1n);
    const weights = rates.map(([a, b]) => a * (common / b)), laws = new Map();
    this.dimension = dimension;
    this.atoms = terms.map((term) => term.atom);
    this.copies = terms.map(({ p, m }) => {
      const key = `${p} ${m}`, powers = new Powers(...parts(p));
      if (!laws.has(key)) laws.set(key, m ? new Burst(powers, m) : new Logarithmic(powers));
      return laws.get(key);
    });
    this.which = new Choice(weights);
    this.events = new Poisson(this.which.sums.at(-1) * BigInt(dimension), common * BigInt(problem.n));
  }
  /** Calls add(coordinate, value) for every message. */
  draw(source, add) {
    for (let left = this.events.draw(source); left > 0; left--) {
      const which = this.which.draw(source), atom = this.atoms[which];
      const coordinate = this.dimension > 1 ? uniform(source, this.dimension) : 0;
      const copies = this.copies[which].draw(source);
      must(copies * BigInt(atom.length) <= MOST_MESSAGES, "one event has more than 2^24 messages");
      for (let i = 0; i < copies; i++) for (const value of atom) add(coordinate, value);
    }
  }
}

// ---- The randomizer

/** For whole numbers 0..max_value, real numbers, or vectors with one such whole number. */
export class Randomizer {
  #source;
  #index;
  constructor(file, source = new SystemBits(), { notPrivate } = {}) {
    must(file instanceof ParameterFile, "give what load(content) returns");
    const system = Object.getPrototypeOf(source) === SystemBits.prototype;
    must(system || notPrivate, "only the platform's bits protect anybody; notPrivate is for tests");
    this.file = file;
    this.#source = source;
    this.#index = new Map(file.alphabet.map((value, i) => [value, i]));
  }

  /** The symbols that the user sends, in a random order.  Inputs are whole numbers, for vectors
   * [coordinate, number] or 0; others are refused before a draw. */
  randomize(value) {
    const [coordinate, number] = this.#checked(value), symbols = [];
    const add = (at, sent) => symbols.push(at * this.file.alphabet.length + this.#index.get(sent));
    if (number) add(coordinate, number);
    this.file.noise.draw(this.#source, add);
    for (let last = symbols.length - 1; last > 0; last--) {
      const chosen = uniform(this.#source, last + 1);
      [symbols[last], symbols[chosen]] = [symbols[chosen], symbols[last]];
    }
    return symbols;
  }

  #checked(value) {
    const { dimension, maxValue } = this.file;
    const within = (x, most, what) =>
      Number.isInteger(x) && x >= 0 && x <= most ? x : wrong(x, what, `a whole number from 0 to ${most}`);
    if (dimension === 1) return [0, within(value, maxValue, "value")];
    if (value === 0) return [0, 0];
    if (!Array.isArray(value) || value.length !== 2)
      wrong(value, "value", "[coordinate, value], or 0 for zero");
    return [within(value[0], dimension - 1, "coordinate"), within(value[1], maxValue, "value")];
  }

  /** The symbols for a real value in the range that the file was made for, or else in [low, high]. */
  randomizeReal(value, range) {
    return this.randomize(this.round(value, range));
  }

  /** A real value as one of 0..max_value, rounded at random without bias. */
  round(value, { low, high, clip } = {}) {
    [low, high] = this.#range(low, high);
    if (!Number.isFinite(value)) wrong(value, "value", "a finite number");
    if (!clip && (value < low || value > high))
      wrong(value, "value", `in [${low}, ${high}]; clip moves it to the nearest end`);
    const [v, l, h] = [Math.min(Math.max(value, low), high), low, high].map(multiple);
    const exact = (v - l) * BigInt(this.file.maxValue), rest = exact % (h - l);
    const up = rest && happens(this.#source, fraction(rest, h - l));
    return Number(exact / (h - l)) + (up ? 1 : 0);
  }

  #range(low, high) {
    const { settings } = this.file.document.provenance, made = [settings.low, settings.high];
    must(this.file.dimension === 1, "this file is for vectors, not for real values");
    const known = made.every(Number.isFinite) && made[0] < made[1] && made[1] - made[0] < Infinity;
    const ends = known ? made : [low, high];
    const agreed = [low, high].every((x, i) => x === undefined || x === ends[i]);
    must(agreed, `this file is for real values in [${made}]`);
    return ends.every(Number.isFinite) && ends[0] < ends[1] ? ends : refuse("real values need low < high");
  }

  /** The coordinate, 0 for whole numbers, and the value of a symbol. */
  message(symbol) {
    const { alphabet, dimension } = this.file, { length } = alphabet;
    return Number.isInteger(symbol) && symbol >= 0 && symbol < dimension * length
      ? [Math.floor(symbol / length), alphabet[symbol % length]]
      : refuse(`${symbol} is not a symbol`);
  }

  /** Symbols in file.bits bits each, highest first, padded with zeros at the end. */
  pack(symbols) {
    const { bits } = this.file, packed = new Uint8Array(Math.ceil((symbols.length * bits) / 8));
    symbols.forEach((symbol, i) => {
      this.message(symbol);
      for (let at = i * bits, bit = bits - 1; bit >= 0; at++, bit--)
        if (Math.floor(symbol / 2 ** bit) % 2) packed[at >> 3] |= 128 >> (at & 7);
    });
    return packed;
  }
}

/** A double as a whole multiple of 2^-1074. */
function multiple(x) {
  let bits = 1074n;
  for (; !Number.isInteger(x); bits--) x *= 2; // exactly
  return BigInt(x) << bits;
}
