"use strict";

const DATA = JSON.parse(document.getElementById("data").textContent);
const AXES = ["n", "eps", "delta", "max_value", "central_fraction"];
const STOPS = Object.fromEntries(AXES.map((axis) => [axis, DATA.axes[axis].map(Number)]));
const SIGNS = { n: "n", eps: "ε", delta: "δ", max_value: "Δ" };
const COSTS = {
  messages: "messages per user",
  extra: "messages per user beyond the first",
  bits: "bits per user",
};
const NAMES = {
  ours: "this table",
  refined: "paper, refined",
  theorem: "paper, theorem",
  ikos: "IKOS split and mix",
  rappor: "fragmented RAPPOR",
  response: "randomized response",
  central: "central discrete Laplace",
  dominated: "this table, beaten in both",
};
const MARKS = {
  ours: "circle", refined: "square", theorem: "diamond", ikos: "up", rappor: "down",
  response: "cross", central: "star", dominated: "small",
};
const CURVES = ["ours", "refined", "theorem", "ikos", "rappor", "response"];
const state = { ...DATA.start, cost: "messages" };

// numbers as texts

function power(exponent) {
  return "10" + String(exponent).replace(/./g, (c) => (c === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[c]));
}

/** A decimal text, such as 9.99453e-07, for people; no digit changes. */
function pretty(text) {
  const [mantissa, exponent] = text.split("e");
  if (exponent === undefined) return text.replace(/^\d{4,}/, (d) => Number(d).toLocaleString("en-US"));
  const ten = power(Number(exponent));
  return mantissa === "1" ? ten : `${mantissa} × ${ten}`;
}

function short(value, digits = 4) {
  if (value === null || value === undefined) return "–";
  if (value >= 1e5 && value < 1e15) return Math.round(value).toLocaleString("en-US");
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e15)) {
    return pretty(String(Number(value.toPrecision(digits)).toExponential()).replace("e+", "e"));
  }
  return Number(value.toPrecision(digits)).toLocaleString("en-US", { maximumFractionDigits: 12 });
}

/** The value at a stop. */
function label(axis, i) {
  return axis === "delta" ? short(STOPS.delta[i], 15) : pretty(DATA.axes[axis][i]);
}

// what the table and the others have at a place, which is an index for each axis

function flat(axes, at) {
  return axes.reduce((i, axis) => i * STOPS[axis].length + at[axis], 0);
}

function allowed(at) {
  return DATA.errors[flat(["eps", "max_value", "central_fraction"], at)];
}

/** For n users, as in Python: the noise is that of all of them. */
function forUsers(row, n) {
  const messages = 1 + row.noise_messages / n;
  return { messages, bits: row.bits_per_message * messages, extra: row.noise_messages / n };
}

function serving(at) {
  const eps = STOPS.eps[at.eps], delta = STOPS.delta[at.delta], top = STOPS.max_value[at.max_value];
  return DATA.rows.filter((row) => row.eps <= eps && row.delta <= delta && row.max_value >= top);
}

/** The cheapest row that serves, the first of equals, or null. */
function found(at) {
  const most = Number(allowed(at));
  let best = null;
  for (const row of serving(at)) {
    const less = best === null || row.noise_messages < best.noise_messages
      || (row.noise_messages === best.noise_messages && row.rmse < best.rmse);
    if (row.rmse <= most && less) best = row;
  }
  return best;
}

function stricter(row, at) {
  const parts = [];
  if (row.eps < STOPS.eps[at.eps]) parts.push(`ε = ${row.eps} instead of ${label("eps", at.eps)}`);
  if (row.delta < STOPS.delta[at.delta]) {
    parts.push(`δ = ${short(row.delta)} instead of ${label("delta", at.delta)}`);
  }
  if (row.max_value > STOPS.max_value[at.max_value]) {
    parts.push(`inputs up to ${row.max_value} instead of ${label("max_value", at.max_value)}`);
  }
  if (row.central_fraction !== STOPS.central_fraction[at.central_fraction]) {
    parts.push(`an RMSE of ${short(row.rmse)} instead of ${short(Number(allowed(at)))}`);
  }
  return parts;
}

/** Why no row serves, in the order of `paramsearch lookup`. */
function reason(at) {
  const tests = [
    ["max_value", (row) => row.max_value >= STOPS.max_value[at.max_value], "the largest Δ", Math.max],
    ["eps", (row) => row.eps <= STOPS.eps[at.eps], "the smallest ε", Math.min],
    ["delta", (row) => row.delta <= STOPS.delta[at.delta], "the smallest δ", Math.min],
    ["rmse", (row) => row.rmse <= Number(allowed(at)), "the smallest RMSE", Math.min],
  ];
  let rows = DATA.rows;
  for (const [field, serves, what, pick] of tests) {
    const left = rows.filter(serves);
    if (!left.length) return `${what} among its files that serve otherwise is ${short(pick(...rows.map((row) => row[field])))}`;
    rows = left;
  }
  return "";
}

function other(name, at) {
  const known = DATA.others[name], i = flat(known.axes, at);
  if (known.noise && known.noise[i] !== null) {
    const noise = { noise_messages: known.noise[i], bits_per_message: known.bits_per_message[i] };
    return { ...forUsers(noise, STOPS.n[at.n]), rmse: known.rmse[i] };
  }
  const messages = known.messages?.[i] ?? null;
  const extra = messages === null ? null : messages - 1;
  return { messages, bits: known.bits?.[i] ?? null, extra, rmse: known.rmse[i] };
}

/** What is drawn of a point; a logarithmic axis has no place for nothing. */
function cost(point) {
  const value = point[state.cost];
  return value !== null && value > 0 ? value : null;
}

// elements

function fill(parent, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) parent.setAttribute(key, value);
  parent.append(...children.filter((child) => child !== null));
  return parent;
}

const SVG = "http://www.w3.org/2000/svg";
const html = (tag, attributes = {}, ...children) =>
  fill(document.createElement(tag), attributes, children);
const svg = (tag, attributes = {}, ...children) =>
  fill(document.createElementNS(SVG, tag), attributes, children);

function mark(kind, name, x, y, words = null, more = "") {
  const shapes = {
    circle: "m-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0-9 0z", small: "m-3 0a3 3 0 1 0 6 0a3 3 0 1 0-6 0z",
    square: "m-4-4h8v8h-8z", diamond: "m0-5.5l5.5 5.5l-5.5 5.5l-5.5-5.5z",
    up: "m0-5.5l5.5 9.5h-11z", down: "m0 5.5l5.5-9.5h-11z",
    cross: "m-4-4l8 8m0-8l-8 8", star: "m0-5.5v11m-4.8-8.2l9.6 5.4m0-5.4l-9.6 5.4",
  };
  const title = words === null ? null : svg("title", {}, words);
  const d = `M${x.toFixed(1)} ${y.toFixed(1)}${shapes[kind]}`;
  return svg("path", { d, class: `mark ${name} ${more}` }, title);
}

function legend(place, names, lines) {
  document.getElementById(place).replaceChildren(...names.map((name) => {
    const line = lines && name !== "central" ? svg("path", { d: "M0 8h34", class: `line ${name}` }) : null;
    const sign = svg("svg", { width: 34, height: 16, viewBox: "0 0 34 16", "aria-hidden": "true" },
      line, mark(MARKS[name], name, 17, 8, null, "exact"));
    return html("li", {}, sign, NAMES[name]);
  }));
}

// axes

function ticks(low, high, most) {
  const decades = [];
  for (let e = Math.ceil(Math.log10(low)); e <= Math.floor(Math.log10(high)); e += 1) decades.push(e);
  if (decades.length >= 3) {
    const step = Math.ceil(decades.length / most);
    return decades.filter((_, i) => i % step === 0).map((e) => Number(`1e${e}`));
  }
  const fine = [];
  for (let e = Math.floor(Math.log10(low)); e <= Math.log10(high); e += 1) {
    for (const k of [1, 2, 5]) fine.push(Number(`${k}e${e}`));
  }
  const inside = fine.filter((value) => value >= low && value <= high);
  if (inside.length >= 3) return inside;
  const rough = (high - low) / 4, size = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((k) => k * size).find((s) => s >= rough);
  const even = [];
  for (let i = Math.ceil(low / step); i * step <= high; i += 1) even.push(i * step);
  return even;
}

function tickText(value) {
  const exponent = Math.log10(value);
  if ((value >= 1e4 || value < 1e-2) && Number.isInteger(Math.round(exponent * 1e9) / 1e9)) {
    return power(Math.round(exponent));
  }
  return short(value, 6);
}

/** A logarithmic scale from values to pixels, with some room at both ends. */
function scale(values, from, to, room) {
  let low = Math.log(Math.min(...values)), high = Math.log(Math.max(...values));
  const margin = Math.max(room * (high - low), 0.02);
  low -= margin;
  high += margin;
  const at = (value) => from + ((Math.log(value) - low) / (high - low)) * (to - from);
  return Object.assign(at, { low: Math.exp(low), high: Math.exp(high) });
}

/** Labels that do not touch each other; the last one has precedence. */
function spaced(labels) {
  const kept = [];
  for (const [i, item] of labels.entries()) {
    const half = item.text.length * 3.6 + 5;
    const touches = () => kept.length && kept.at(-1).right > item.x - half;
    if (i === labels.length - 1) while (touches()) kept.pop();
    if (!touches()) kept.push({ ...item, right: item.x + half });
  }
  return kept;
}

/**
 * lines: [{name, points: [{x, y, words, exact}]}], y null for a gap; xs: stops with texts, or null
 * for an axis of its own; here: the chosen x; loose: lines whose points are not joined.
 */
function draw(figure, { title, words, xName, xs, lines, here, ring, height, table }) {
  const width = Math.max(260, figure.clientWidth), left = 52, right = 14, top = 26;
  const foot = height - 44;
  const points = lines.flatMap((line) => line.points).filter((point) => point.y !== null);
  const parts = [];
  if (points.length) {
    const x = scale(xs ? xs.map((stop) => stop.value) : points.map((p) => p.x), left, width - right, 0.04);
    const y = scale(points.map((p) => p.y), foot, top, 0.05);
    for (const tick of ticks(y.low, y.high, 6)) {
      const level = y(tick).toFixed(1);
      parts.push(svg("line", { x1: left, x2: width - right, y1: level, y2: level, class: "grid" }));
      parts.push(svg("text", { x: left - 7, y: y(tick) + 4.3, "text-anchor": "end" }, tickText(tick)));
    }
    const stops = xs ?? ticks(x.low, x.high, 7).map((value) => ({ value, text: tickText(value) }));
    for (const stop of stops) {
      parts.push(svg("line", { x1: x(stop.value), x2: x(stop.value), y1: foot, y2: foot + 5, class: "axis" }));
    }
    for (const item of spaced(stops.map((stop) => ({ x: x(stop.value), text: stop.text })))) {
      parts.push(svg("text", { x: item.x, y: foot + 19, "text-anchor": "middle" }, item.text));
    }
    parts.push(svg("line", { x1: left, x2: width - right, y1: foot, y2: foot, class: "axis" }));
    if (here) parts.push(svg("line", { x1: x(here), x2: x(here), y1: top, y2: foot, class: "here" }));
    for (const line of lines) {
      let d = "", pen = "M";
      for (const point of line.points) {
        if (point.y !== null && !line.loose) d += `${pen}${x(point.x).toFixed(1)} ${y(point.y).toFixed(1)}`;
        pen = point.y === null ? "M" : "L";
      }
      if (d) parts.push(svg("path", { d, class: `line ${line.name}` }));
    }
    for (const line of lines) {
      for (const point of line.points.filter((p) => p.y !== null)) {
        const more = point.exact ? "exact" : "";
        parts.push(mark(MARKS[line.name], line.name, x(point.x), y(point.y), point.words, more));
      }
    }
    if (ring && ring.y !== null) parts.push(svg("circle", { cx: x(ring.x), cy: y(ring.y), r: 9, class: "ring" }));
  }
  parts.push(svg("text", { x: 0, y: 13, class: "unit" }, COSTS[state.cost]));
  parts.push(svg("text", { x: (left + width - right) / 2, y: height - 6, "text-anchor": "middle" }, xName));
  const drawing = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": words }, ...parts);
  const open = figure.querySelector("details")?.open;
  const details = html("details", open ? { open: "" } : {},
    html("summary", {}, "Numbers"), html("div", { class: "box", tabindex: 0, role: "region", "aria-label": `Numbers: ${title}` }, table));
  figure.replaceChildren(...(figure.id === "chart-trade" ? [] : [html("h3", {}, title)]), drawing, details);
}

function numbers(caption, heads, rows) {
  return html("table", {}, html("caption", {}, caption),
    html("thead", {}, html("tr", {}, ...heads.map((head) => html("th", { scope: "col" }, head)))),
    html("tbody", {}, ...rows.map(([first, ...rest]) => html("tr", {},
      html("th", { scope: "row" }, first), ...rest.map((cell) => html("td", {}, cell))))));
}

// the views

function ours(at) {
  const row = found(at);
  if (row === null) return { messages: null, bits: null, extra: null, rmse: null, exact: false };
  const exact = stricter(row, at).length === 0;
  return { ...forUsers(row, STOPS.n[at.n]), rmse: row.rmse, exact };
}

/** The n of a stop, if it is a power of ten. */
function decade(i) {
  const text = DATA.axes.n[i];
  return text.startsWith("1") ? power(text.length - 1) : "";
}

function drawCurve(axis) {
  const places = STOPS[axis].map((_, i) => ({ ...state, [axis]: i }));
  const lines = CURVES.map((name) => ({
    name,
    points: places.map((at, i) => {
      const point = name === "ours" ? ours(at) : other(name, at);
      const y = cost(point);
      const words = `${NAMES[name]}, ${SIGNS[axis]} = ${label(axis, i)}: ${short(y, 6)} ${COSTS[state.cost]}`;
      return { x: STOPS[axis][i], y, words, exact: point.exact };
    }),
  }));
  const now = state[axis], title = `Over ${SIGNS[axis]}`;
  const chosen = lines.map((line) => `${NAMES[line.name]} ${short(line.points[now].y, 5)}`).join(", ");
  draw(document.getElementById(`chart-${axis}`), {
    title,
    words: `${COSTS[state.cost]} over ${SIGNS[axis]}, on logarithmic axes. At ${SIGNS[axis]} = ${label(axis, now)}: ${chosen}. All numbers follow in a table.`,
    xName: SIGNS[axis],
    xs: STOPS[axis].map((value, i) => ({ value, text: axis === "n" ? decade(i) : label(axis, i) })),
    lines: [...lines.slice(1), lines[0]],
    here: STOPS[axis][now],
    ring: lines[0].points[now],
    height: 270,
    table: numbers(COSTS[state.cost], [SIGNS[axis], ...CURVES.map((name) => NAMES[name])],
      places.map((_, i) => [label(axis, i), ...lines.map((line) => short(line.points[i].y, 6))])),
  });
}

function drawTrade() {
  const n = STOPS.n[state.n];
  const rows = serving(state).map((row) => ({ row, ...forUsers(row, n), rmse: row.rmse }));
  rows.sort((a, b) => a.rmse - b.rmse || cost(a) - cost(b));
  const front = [];
  for (const point of rows) if (!front.length || cost(point) < cost(front.at(-1))) front.push(point);
  const place = (name, point, of) => ({
    x: point.rmse, y: point.rmse === null ? null : cost(point), exact: true,
    words: `${NAMES[name]}${of}: RMSE ${short(point.rmse)}, ${short(cost(point), 6)} ${COSTS[state.cost]}`,
  });
  const file = (row) => `, ε = ${row.eps}, δ = ${short(row.delta)}, Δ = ${row.max_value}`;
  const fractions = STOPS.central_fraction.map((share, i) => [share, { ...state, central_fraction: i }]);
  const lines = [
    { name: "dominated", loose: true, points: rows.filter((p) => !front.includes(p)).map((p) => place("dominated", p, file(p.row))) },
    ...["theorem", "refined"].map((name) => ({
      name, points: fractions.map(([share, at]) => place(name, other(name, at), `, ${share} of ε in the sum`)),
    })),
    ...["ikos", "rappor", "response", "central"].map((name) => ({ name, points: [place(name, other(name, state), "")] })),
    { name: "ours", points: front.map((point) => place("ours", point, file(point.row))) },
  ];
  const best = found(state);
  const ring = best === null ? null : place("ours", { ...forUsers(best, n), rmse: best.rmse }, "");
  const cells = (name, point) => [name, short(point.rmse, 5), short(point.messages, 6), short(point.bits, 6)];
  draw(document.getElementById("chart-trade"), {
    title: "Cost against error",
    words: `${COSTS[state.cost]} against the RMSE of the sum, on logarithmic axes: ${rows.length} files serve, ${front.length} of them are not beaten. All numbers follow in a table.`,
    xName: "RMSE of the sum", xs: null, lines, here: null, ring, height: 400,
    table: numbers("Per user", ["", "RMSE", "messages", "bits"], [
      ...front.map((point) => cells(`this table${file(point.row)}`, point)),
      ...["refined", "theorem"].flatMap((name) => fractions.map(([share, at]) => cells(`${NAMES[name]}, ${share} of ε in the sum`, other(name, at)))),
      ...["ikos", "rappor", "response", "central"].map((name) => cells(NAMES[name], other(name, state))),
    ]),
  });
}

function put(id, value, text) {
  const element = document.getElementById(id);
  element.value = value;
  element.textContent = text;
}

function showSliders() {
  for (const axis of AXES) {
    const input = document.getElementById(axis);
    let text = axis === "central_fraction" ? `RMSE ≤ ${pretty(allowed(state))}` : label(axis, state[axis]);
    document.getElementById(`${axis}-value`).textContent = text;
    if (axis === "central_fraction") text += `, ${DATA.axes[axis][state[axis]]} of ε in the sum`;
    input.value = state[axis];
    input.setAttribute("aria-valuetext", text);
  }
  for (const input of document.querySelectorAll("[name=cost]")) input.checked = input.value === state.cost;
}

function showResult() {
  const row = found(state), n = DATA.axes.n[state.n];
  const result = document.getElementById("result"), distance = document.getElementById("distance");
  const problem = `--n ${n} --eps ${DATA.axes.eps[state.eps]} --delta ${DATA.axes.delta[state.delta]} --max-value ${DATA.axes.max_value[state.max_value]}`;
  const share = DATA.axes.central_fraction[state.central_fraction];
  document.getElementById("generate").textContent = `paramsearch generate ${problem} --central-fraction ${share} -o parameters.json`;
  document.querySelector("#get .ready").hidden = row === null;
  result.className = `verdict ${row === null ? "undecided missing" : "certified"}`;
  const verdict = document.getElementById("verdict"), summary = document.getElementById("summary");
  if (row === null) {
    verdict.textContent = "No file of this table serves";
    distance.textContent = `With an RMSE of at most ${pretty(allowed(state))}: ${reason(state)}. The command below makes a file.`;
    summary.textContent = `No file of this table serves; ${reason(state)}.`;
    document.getElementById("generate-note").textContent = "A search for just these values:";
    return;
  }
  const parts = stricter(row, state), cost = forUsers(row, STOPS.n[state.n]);
  verdict.textContent = parts.length ? "Certified, and stricter than asked" : "Certified for just this";
  distance.textContent = parts.length ? `The cheapest file that serves is made for ${parts.join(", ")}.` : `The cheapest file for (ε, δ) = (${row.eps}, ${short(row.delta)}), inputs 0 to ${row.max_value} and this error.`;
  put("noise_messages", row.noise_messages, row.noise_messages.toLocaleString("en-US", { minimumFractionDigits: 1, maximumFractionDigits: 1 }));
  put("messages_per_user", cost.messages, short(cost.messages, 6));
  put("bits_per_user", cost.bits, short(cost.bits, 6));
  document.getElementById("bits_note").textContent = `per user, ${row.bits_per_message} a message`;
  put("rmse", row.rmse, short(row.rmse, 6));
  put("rmse_over_central", row.rmse_over_central, short(row.rmse_over_central, 4));
  put("delta_lower", row.delta_lower, pretty(row.delta_bounds[0]));
  put("delta_upper", row.delta_upper, pretty(row.delta_bounds[1]));
  put("row_eps", row.eps, String(row.eps));
  put("row_max_value", row.max_value, String(row.max_value));
  put("atoms", row.atoms, row.atoms === 1 ? "1 atom" : `${row.atoms} atoms`);
  put("symbols", row.symbols, `${row.symbols} symbols`);
  summary.textContent = `${verdict.textContent}: ${short(row.noise_messages, 5)} noise messages, ${short(cost.messages, 5)} messages and ${short(cost.bits, 5)} bits per user, RMSE ${short(row.rmse, 4)}.`;
  document.getElementById("download").textContent = `Download ${baseName(row)}`;
  document.getElementById("sha256").textContent = row.sha256;
  const folder = DATA.table === null ? "" : ` ${DATA.table}`;
  document.getElementById("lookup").textContent = `paramsearch lookup${folder} ${problem} --max-rmse ${allowed(state)} -o parameters.json`;
  document.getElementById("generate-note").textContent = "A new search, which takes longer, for just these values:";
}

function drawAll() {
  for (const axis of Object.keys(SIGNS)) drawCurve(axis);
  drawTrade();
  document.getElementById("extra-note").hidden = state.cost !== "extra";
}

function show() {
  showSliders();
  showResult();
  drawAll();
}

// files and commands

const baseName = (row) => row.file.split("/").at(-1);

/** The file of a row, as it is in the table's folder. */
async function fileBytes(row) {
  const packed = Uint8Array.from(atob(DATA.files[row.file]), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

async function download() {
  const row = found(state);
  const address = URL.createObjectURL(new Blob([await fileBytes(row)], { type: "application/json" }));
  html("a", { href: address, download: baseName(row) }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

async function copy(button) {
  const code = document.getElementById(button.dataset.copies);
  try {
    await navigator.clipboard.writeText(code.textContent);
  } catch {
    getSelection().selectAllChildren(code); // where a page may not write: ready for the keyboard
    document.getElementById("copied").textContent = "The command is selected.";
    return;
  }
  button.textContent = "Copied";
  document.getElementById("copied").textContent = "The command is copied.";
  setTimeout(() => { button.textContent = "Copy"; }, 1500);
}

// the address keeps the choice, by values and not by places, which another table may change

function write() {
  const fields = AXES.map((axis) => `${axis}=${DATA.axes[axis][state[axis]]}`);
  history.replaceState(null, "", `#${fields.join("&")}&cost=${state.cost}`);
}

function read() {
  const fields = new URLSearchParams(location.hash.slice(1));
  for (const axis of AXES) {
    const i = fields.has(axis) ? STOPS[axis].indexOf(Number(fields.get(axis))) : -1;
    if (i >= 0) state[axis] = i;
  }
  if (Object.hasOwn(COSTS, fields.get("cost"))) state.cost = fields.get("cost");
}

function prepare() {
  for (const axis of AXES) {
    const input = document.getElementById(axis), count = STOPS[axis].length;
    Object.assign(input, { min: 0, max: count - 1, step: 1, disabled: count === 1 });
    document.getElementById(`${axis}-stops`).append(...STOPS[axis].map((_, i) => html("option", { value: i })));
    const ends = axis === "central_fraction" ? ["less error", "fewer messages"] : [label(axis, 0), label(axis, count - 1)];
    input.parentElement.querySelector(".ends").append(...ends.map((end) => html("span", {}, end)));
    input.addEventListener("input", () => {
      state[axis] = Number(input.value);
      write();
      show();
    });
  }
  for (const input of document.querySelectorAll("[name=cost]")) {
    input.addEventListener("change", () => {
      state.cost = input.value;
      write();
      show();
    });
  }
  document.querySelector("form").addEventListener("submit", (event) => event.preventDefault());
  document.getElementById("download").addEventListener("click", download);
  for (const button of document.querySelectorAll("[data-copies]")) button.addEventListener("click", () => copy(button));
  document.getElementById("table-note").textContent = DATA.table === null ? "" : `Run it where the table's folder ${DATA.table} is.`;
  legend("curves-legend", CURVES, true);
  legend("trade-legend", ["ours", "dominated", ...CURVES.slice(1), "central"], false);
  const users = DATA.response_users.toLocaleString("en-US");
  const notes = [
    ["This table", "certified files, found by search; the cheapest one that serves the choice, as paramsearch lookup finds it."],
    ["The paper", "the correlated noise protocol by the parameters of Ghazi, Kumar, Manurangsi, Pagh and Sinha (2021), for the same error: those of its theorem, and refined by its dominance program."],
    ["Split and mix", "Ishai, Kushilevitz, Ostrovsky and Sahai (2006) with the constants of Balle, Bell, Gascón and Nissim (2020); the error is that of the central mechanism."],
    ["RAPPOR", "fragmented, and optimistic: the least noise that one explicit pair of datasets allows."],
    ["Response", `generalised randomized response, one message, optimistic in the same way; its error, which is in the last chart only, is that for ${users} users whatever n.`],
    ["Central", "discrete Laplace noise added by a trusted party, with ε alone."],
  ];
  document.getElementById("notes").append(...notes.map(([name, text]) => html("div", {}, html("dt", {}, name), html("dd", {}, text))));
}

prepare();
read();
show();
addEventListener("hashchange", () => { read(); show(); });
let drawn = innerWidth;
addEventListener("resize", () => {
  if (innerWidth !== drawn) drawAll();
  drawn = innerWidth;
});
