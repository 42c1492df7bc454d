// Numbers as texts, elements, and charts with logarithmic axes.

"use strict";

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

const SHAPES = {
  ours: "m-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0-9 0z",
  dominated: "m-3 0a3 3 0 1 0 6 0a3 3 0 1 0-6 0z",
  refined: "m-4-4h8v8h-8z",
  theorem: "m0-5.5l5.5 5.5l-5.5 5.5l-5.5-5.5z",
  ikos: "m0-5.5l5.5 9.5h-11z",
  rappor: "m0 5.5l5.5-9.5h-11z",
  response: "m-4-4l8 8m0-8l-8 8",
  central: "m0-5.5v11m-4.8-8.2l9.6 5.4m0-5.4l-9.6 5.4",
};

/** The sign of a series, with a title for the pointer. */
function mark(series, x, y, words = null, more = "") {
  const title = words === null ? null : svg("title", {}, words);
  const d = `M${x.toFixed(1)} ${y.toFixed(1)}${SHAPES[series]}`;
  return svg("path", { d, class: `mark ${series} ${more}` }, title);
}

/** names: what the series are called, by their keys; joined: whether with lines. */
function legend(list, names, joined) {
  list.replaceChildren(...Object.entries(names).map(([key, name]) => {
    const line = joined ? svg("path", { d: "M0 8h34", class: `line ${key}` }) : null;
    const box = { width: 34, height: 16, viewBox: "0 0 34 16", "aria-hidden": "true" };
    return html("li", {}, svg("svg", box, line, mark(key, 17, 8, null, "exact")), name);
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

function yAxis(y, left, right) {
  return ticks(y.low, y.high, 6).flatMap((tick) => {
    const level = y(tick).toFixed(1);
    return [
      svg("line", { x1: left, x2: right, y1: level, y2: level, class: "grid" }),
      svg("text", { x: left - 7, y: y(tick) + 4.3, "text-anchor": "end" }, tickText(tick)),
    ];
  });
}

function xAxis(x, stops, left, right, foot) {
  const at = stops.map((stop) => ({ x: x(stop.value), text: stop.text }));
  return [
    ...at.map((stop) => svg("line", { x1: stop.x, x2: stop.x, y1: foot, y2: foot + 5, class: "axis" })),
    ...spaced(at).map((stop) => svg("text", { x: stop.x, y: foot + 19, "text-anchor": "middle" }, stop.text)),
    svg("line", { x1: left, x2: right, y1: foot, y2: foot, class: "axis" }),
  ];
}

/** The points that are there, joined with their neighbours. */
function path(points, x, y, series) {
  let d = "", pen = "M";
  for (const point of points) {
    if (point.y !== null) d += `${pen}${x(point.x).toFixed(1)} ${y(point.y).toFixed(1)}`;
    pen = point.y === null ? "M" : "L";
  }
  return d ? svg("path", { d, class: `line ${series}` }) : null;
}

/**
 * A chart as wide as its figure.
 *
 * lines: {series, points: {x, y, words, exact}, loose}, y null for a gap, loose if they are not
 * joined; stops: values and texts of the x axis, or null for round numbers; here: the chosen x;
 * ring: the chosen point; words: what the chart says, for those who do not see it.
 */
function chart(figure, { words, xName, yName, lines, stops, here, ring, height }) {
  const width = Math.max(260, figure.clientWidth), left = 52, right = width - 14;
  const top = 26, foot = height - 44;
  const points = lines.flatMap((line) => line.points).filter((point) => point.y !== null);
  const parts = [];
  if (points.length) {
    const x = scale((stops ?? points).map((p) => p.value ?? p.x), left, right, 0.04);
    const y = scale(points.map((p) => p.y), foot, top, 0.05);
    const round = () => ticks(x.low, x.high, 7).map((value) => ({ value, text: tickText(value) }));
    parts.push(...yAxis(y, left, right), ...xAxis(x, stops ?? round(), left, right, foot));
    if (here) parts.push(svg("line", { x1: x(here), x2: x(here), y1: top, y2: foot, class: "here" }));
    for (const line of lines) if (!line.loose) parts.push(path(line.points, x, y, line.series));
    for (const { series, points: all } of lines) {
      for (const point of all.filter((p) => p.y !== null)) {
        parts.push(mark(series, x(point.x), y(point.y), point.words, point.exact ? "exact" : ""));
      }
    }
    if (ring && ring.y !== null) parts.push(svg("circle", { cx: x(ring.x), cy: y(ring.y), r: 9, class: "ring" }));
  }
  return svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": words }, ...parts,
    svg("text", { x: 0, y: 13, class: "unit" }, yName),
    svg("text", { x: (left + right) / 2, y: height - 6, "text-anchor": "middle" }, xName));
}

/** A figure's heading, if any, its chart, and its numbers, which stay open if they are. */
function fit(figure, { heading = null, drawing, table }) {
  const open = figure.querySelector("details")?.open ? { open: "" } : {};
  const about = { class: "box", tabindex: 0, role: "region", "aria-label": "Numbers of the chart" };
  const details = html("details", open, html("summary", {}, "Numbers"), html("div", about, table));
  figure.replaceChildren(...(heading === null ? [] : [html("h3", {}, heading)]), drawing, details);
}

function numbers(caption, heads, rows) {
  return html("table", {}, html("caption", {}, caption),
    html("thead", {}, html("tr", {}, ...heads.map((head) => html("th", { scope: "col" }, head)))),
    html("tbody", {}, ...rows.map(([first, ...rest]) => html("tr", {},
      html("th", { scope: "row" }, first), ...rest.map((cell) => html("td", {}, cell))))));
}
