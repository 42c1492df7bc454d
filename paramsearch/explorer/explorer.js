// The explorer: sliders, the file that serves, and the charts.

const DATA = JSON.parse(document.getElementById("data").textContent);
const ZERO_OUT = DATA.adjacency === "zero-out";
const AXES = ["n", "eps", "delta", "max_value", "central_fraction"];
const STOPS = Object.fromEntries(AXES.map((axis) => [axis, DATA.axes[axis].map(Number)]));
const SIGNS = { n: "n", eps: "ε", delta: "δ", max_value: "Δ" };
const COSTS = {
  messages: "messages per user",
  extra: "extra messages per user",
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
const CURVES = ["ours", "refined", "theorem", "ikos", "rappor", "response"];
const POINTS = ["ikos", "rappor", "response", "central"];
const state = { ...DATA.start, cost: "messages" };

// numbers and texts at a place, which is an index for each axis

/** The value at a stop. */
function label(axis, i) {
  return axis === "delta" ? short(STOPS.delta[i], 15) : pretty(DATA.axes[axis][i]);
}

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

/** In what the guarantee of a row is more than was asked for. */
function stricter(row, at) {
  const parts = [];
  if (row.eps < STOPS.eps[at.eps]) parts.push(`ε = ${row.eps} instead of ${label("eps", at.eps)}`);
  if (row.delta < STOPS.delta[at.delta]) {
    parts.push(`δ = ${short(row.delta, 17)} instead of ${label("delta", at.delta)}`);
  }
  if (row.max_value > STOPS.max_value[at.max_value]) {
    parts.push(`inputs up to ${row.max_value} instead of ${label("max_value", at.max_value)}`);
  }
  return parts;
}

function lessError(row, at) {
  return row.central_fraction !== STOPS.central_fraction[at.central_fraction];
}

/** Why no row serves, in the order of `paramsearch lookup`. */
function reason(at) {
  const tests = [
    ["the largest Δ", "max_value", (row) => row.max_value >= STOPS.max_value[at.max_value]],
    ["the smallest ε", "eps", (row) => row.eps <= STOPS.eps[at.eps]],
    ["the smallest δ", "delta", (row) => row.delta <= STOPS.delta[at.delta]],
    ["the smallest RMSE", "rmse", (row) => row.rmse <= Number(allowed(at))],
  ];
  let rows = DATA.rows;
  for (const [what, field, serves] of tests) {
    const left = rows.filter(serves), values = rows.map((row) => row[field]);
    if (!left.length) {
      const best = field === "max_value" ? Math.max(...values) : Math.min(...values);
      return `${what} that is left in the table is ${short(best)}`;
    }
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

// the views

function ours(at) {
  const row = found(at);
  if (row === null) return { messages: null, bits: null, extra: null, exact: false };
  const exact = !stricter(row, at).length && !lessError(row, at);
  return { ...forUsers(row, STOPS.n[at.n]), exact };
}

/** The n of a stop, if it is a power of ten. */
function decade(i) {
  const text = DATA.axes.n[i];
  return text.startsWith("1") ? power(text.length - 1) : "";
}

function drawCurve(axis) {
  const sign = SIGNS[axis], unit = COSTS[state.cost], now = state[axis];
  const places = STOPS[axis].map((_, i) => ({ ...state, [axis]: i }));
  const lines = CURVES.map((series) => ({
    series,
    points: places.map((at, i) => {
      const point = series === "ours" ? ours(at) : other(series, at);
      const y = cost(point);
      const words = `${NAMES[series]}, ${sign} = ${label(axis, i)}: ${short(y, 6)} ${unit}`;
      return { x: STOPS[axis][i], y, words, exact: point.exact };
    }),
  }));
  const chosen = lines.map((line) => `${NAMES[line.series]} ${short(line.points[now].y, 5)}`);
  const figure = byId(`chart-${axis}`);
  const drawing = chart(figure, {
    words: `${unit} over ${sign}, on logarithmic axes. At ${sign} = ${label(axis, now)}: `
      + `${chosen.join(", ")}. All numbers are in the table after it.`,
    xName: sign,
    yName: unit,
    lines: [...lines.slice(1), lines[0]],
    stops: STOPS[axis].map((value, i) => ({ value, text: axis === "n" ? decade(i) : label(axis, i) })),
    here: STOPS[axis][now],
    ring: lines[0].points[now],
    height: 270,
  });
  const rows = places.map((_, i) => [label(axis, i), ...lines.map((line) => short(line.points[i].y, 6))]);
  const table = numbers(unit, [sign, ...CURVES.map((series) => NAMES[series])], rows);
  fit(figure, { heading: `Over ${sign}`, drawing, table });
}

/** Those that no other one beats in error and cost, by error. */
function frontier(points) {
  const front = [];
  for (const point of [...points].sort((a, b) => a.rmse - b.rmse || cost(a) - cost(b))) {
    if (!front.length || cost(point) < cost(front.at(-1))) front.push(point);
  }
  return front;
}

function drawTrade() {
  const n = STOPS.n[state.n], unit = COSTS[state.cost];
  const rows = serving(state).map((row) => ({ row, rmse: row.rmse, ...forUsers(row, n) }));
  const front = frontier(rows), best = found(state);
  const file = ({ row }) => `, ε = ${row.eps}, δ = ${short(row.delta, 17)}, Δ = ${row.max_value}`;
  const place = (series, point, of = "") => ({
    x: point.rmse,
    y: point.rmse === null ? null : cost(point),
    exact: true,
    words: `${NAMES[series]}${of}: RMSE ${short(point.rmse)}, ${short(cost(point), 6)} ${unit}`,
  });
  const shares = STOPS.central_fraction.map((share, i) =>
    [`, ${share} of ε in the sum`, { ...state, central_fraction: i }]);
  const beaten = rows.filter((point) => !front.includes(point));
  const lines = [
    { series: "dominated", loose: true, points: beaten.map((p) => place("dominated", p, file(p))) },
    ...["theorem", "refined"].map((series) => ({
      series, points: shares.map(([of, at]) => place(series, other(series, at), of)),
    })),
    ...POINTS.map((series) => ({ series, points: [place(series, other(series, state))] })),
    { series: "ours", points: front.map((p) => place("ours", p, file(p))) },
  ];
  const figure = byId("chart-trade");
  const drawing = chart(figure, {
    words: `${unit} against the RMSE of the sum, on logarithmic axes: ${rows.length} ${rows.length === 1
      ? "file serves" : "files serve"}, not beaten: ${front.length}. Their numbers are in the table after it.`,
    xName: "RMSE of the sum",
    yName: unit,
    lines,
    stops: null,
    here: null,
    ring: best && place("ours", { rmse: best.rmse, ...forUsers(best, n) }),
    height: 400,
  });
  const cells = (name, point) =>
    [name, short(point.rmse, 5), short(point.messages, 6), short(point.bits, 6)];
  const published = ["refined", "theorem"].flatMap((series) =>
    shares.map(([of, at]) => cells(NAMES[series] + of, other(series, at))));
  const table = numbers("per user", ["", "RMSE", "messages", "bits"], [
    ...front.map((point) => cells(NAMES.ours + file(point), point)),
    ...published,
    ...POINTS.map((series) => cells(NAMES[series], other(series, state))),
  ]);
  fit(figure, { drawing, table });
}

function showSliders() {
  for (const axis of AXES) {
    const error = axis === "central_fraction", input = byId(axis);
    const text = error ? `RMSE ≤ ${pretty(allowed(state))}` : label(axis, state[axis]);
    byId(`${axis}-value`).textContent = text;
    input.value = state[axis];
    const share = error ? `, ${label(axis, state[axis])} of ε in the sum` : "";
    input.setAttribute("aria-valuetext", text + share);
  }
  for (const input of document.getElementsByName("cost")) input.checked = input.value === state.cost;
}

function put(id, value, text) {
  byId(id).value = value;
  byId(id).textContent = text;
}

/** A command whose options do not break over lines. */
function putCommand(id, ...options) {
  const parts = options.flatMap((option, i) => [i ? " " : "", html("span", {}, option)]);
  byId(id).replaceChildren(...parts);
}

function showCommands(row) {
  const value = (axis) => DATA.axes[axis][state[axis]];
  const problem = [`--n ${value("n")}`, `--eps ${value("eps")}`, `--delta ${value("delta")}`,
    `--max-value ${value("max_value")}`, ...(ZERO_OUT ? ["--adjacency zero-out"] : [])];
  const output = "-o parameters.json", folder = DATA.table === null ? [] : [DATA.table];
  const error = `--max-rmse ${allowed(state)}`, share = `--central-fraction ${value("central_fraction")}`;
  putCommand("lookup", "paramsearch lookup", ...folder, ...problem, error, output);
  const law = row !== null && row.noise === "burst" ? ["--noise burst"] : [];
  putCommand("generate", "paramsearch generate", ...problem, share, ...law, output);
  document.querySelector("#get .ready").hidden = row === null;
  byId("generate-note").textContent = row === null
    ? "A search for just these values:" : "A new search, which takes longer, for just these values:";
}

function showMissing() {
  byId("result").className = "verdict undecided missing";
  byId("verdict").textContent = "No file of this table serves";
  byId("distance").textContent =
    `For an RMSE of at most ${pretty(allowed(state))}: ${reason(state)}. The command below makes a file.`;
  byId("summary").textContent = `No file of this table serves: ${reason(state)}.`;
}

function showRow(row) {
  const parts = stricter(row, state), less = lessError(row, state);
  const { messages, bits } = forUsers(row, STOPS.n[state.n]);
  const error = `an RMSE of ${short(row.rmse)} instead of ${short(Number(allowed(state)))}`;
  const verdict = parts.length ? "Certified, and stricter than asked"
    : less ? "Certified, with less error than asked" : "Certified for just this";
  byId("result").className = "verdict certified";
  byId("verdict").textContent = verdict;
  byId("distance").textContent = parts.length || less
    ? `The cheapest file that serves is one for ${[...parts, ...(less ? [error] : [])].join(", ")}.`
    : `The cheapest file for ε = ${row.eps}, δ = ${short(row.delta, 17)}, inputs 0 to ${row.max_value} `
      + "and this error.";
  const tenths = { minimumFractionDigits: 1, maximumFractionDigits: 1 };
  put("noise_messages", row.noise_messages, row.noise_messages.toLocaleString("en-US", tenths));
  put("messages_per_user", messages, short(messages, 6));
  put("bits_per_user", bits, short(bits, 6));
  byId("bits_note").textContent = `per user, ${row.bits_per_message} a message`;
  put("rmse", row.rmse, short(row.rmse, 6));
  put("rmse_over_central", row.rmse_over_central, short(row.rmse_over_central, 4));
  put("delta_lower", row.delta_lower, pretty(row.delta_bounds[0]));
  put("delta_upper", row.delta_upper, pretty(row.delta_bounds[1]));
  put("row_eps", row.eps, String(row.eps));
  put("row_max_value", row.max_value, String(row.max_value));
  const law = row.noise === "burst" ? " in bursts (file format 5)" : "";
  put("atoms", row.atoms, (row.atoms === 1 ? "1 atom" : `${row.atoms} atoms`) + law);
  put("symbols", row.symbols, `${row.symbols} symbols`);
  byId("summary").textContent = `${verdict}: ${short(row.noise_messages, 5)} noise messages, `
    + `${short(messages, 5)} messages and ${short(bits, 5)} bits per user, RMSE ${short(row.rmse)}.`;
  showFile(row);
}

/** The table's file, if it is for the chosen n: each user adds one part in n of the noise. */
function showFile(row) {
  const count = (n) => `${n.toLocaleString("en-US")} ${n === 1 ? "user" : "users"}`;
  const n = STOPS.n[state.n], own = DATA.users[row.file];
  byId("stored").hidden = !isStored(row, n);
  byId("rescaled").hidden = isStored(row, n);
  byId("rescaled").textContent = `The file in the table is for ${count(own)}: ${count(n)} would add `
    + `${short(n / own)} times its noise. This command writes the file for ${count(n)}, with the same `
    + "noise in all and the same certificate:";
  byId("download").textContent = `Download ${baseName(row)}`;
  byId("sha256").textContent = row.sha256;
}

function drawAll() {
  for (const axis of Object.keys(SIGNS)) drawCurve(axis);
  drawTrade();
  byId("extra-note").hidden = state.cost !== "extra";
}

function render() {
  const row = found(state);
  showSliders();
  if (row === null) showMissing();
  else showRow(row);
  showCommands(row);
  drawAll();
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

// the beginning

function choose(field, value) {
  state[field] = value;
  write();
  render();
}

function prepareSlider(axis) {
  const input = byId(axis), count = STOPS[axis].length;
  Object.assign(input, { min: 0, max: count - 1, step: 1, disabled: count === 1 });
  byId(`${axis}-stops`).append(...STOPS[axis].map((_, i) => html("option", { value: i })));
  const ends = axis === "central_fraction" ? ["less error", "fewer messages"]
    : [label(axis, 0), label(axis, count - 1)];
  input.parentElement.querySelector(".ends").append(...ends.map((end) => html("span", {}, end)));
  input.addEventListener("input", () => choose(axis, Number(input.value)));
}

function prepare() {
  AXES.forEach(prepareSlider);
  for (const input of document.getElementsByName("cost")) {
    input.addEventListener("change", () => choose("cost", input.value));
  }
  document.querySelector("form").addEventListener("submit", (event) => event.preventDefault());
  byId("download").addEventListener("click", () => download(found(state), STOPS.n[state.n]));
  for (const button of document.querySelectorAll("[data-copies]")) {
    button.addEventListener("click", () => copy(button));
  }
  const count = DATA.rows.length;
  byId("size").textContent = `, ${count.toLocaleString("en-US")} certified ${count === 1 ? "file" : "files"}`;
  if (ZERO_OUT) byId("change").textContent = "one of them present or absent (zero-out)";
  byId("response-users").textContent = DATA.response_users.toLocaleString("en-US");
  if (DATA.table !== null) byId("table-note").textContent = `Run it where the folder ${DATA.table} is.`;
  const named = (keys) => Object.fromEntries(keys.map((key) => [key, NAMES[key]]));
  legend(byId("curves-legend"), named(CURVES), true);
  legend(byId("trade-legend"), named(["ours", "dominated", ...CURVES.slice(1), "central"]), false);
}

prepare();
read();
render();
addEventListener("hashchange", () => {
  read();
  render();
});
let drawn = innerWidth;
addEventListener("resize", () => { // the height of a phone's window changes whenever it scrolls
  if (innerWidth !== drawn) drawAll();
  drawn = innerWidth;
});
