// Small charts as SVG: lines over time, and bars of values.

import { short, time } from "./words.js";

const SVG = "http://www.w3.org/2000/svg";
const WIDTH = 300;
const HEIGHT = 84;
const TOP = 6; // room above the highest point, so that a line's width is not cut

export function svg(name, attributes, parent) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  parent?.append(element);
  return element;
}

/** The next of 1, 2, 5, 10, 20, ... from a value on: scales that do not twitch. */
function ceiling(value) {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return power * [1, 2, 5, 10].find((factor) => factor * power >= value * 0.999);
}

const BIN = 5; // points that are drawn as one: a burst a second is a fence otherwise
const SPANS = [60, 120, 300, 600]; // points that a chart shows, as many as there are

const MEANS = {
  mean: (values) => values.reduce((sum, value) => sum + value, 0) / values.length,
  most: (values) => Math.max(...values),
};

/** Put points together, by the server's count of them, so that a point stays in its bin as time goes on. */
function binned(column, tick, means) {
  const bins = new Map();
  column.forEach((value, index) => {
    const bin = Math.floor((tick - column.length + 1 + index) / BIN);
    if (!bins.has(bin)) bins.set(bin, []);
    if (value !== null) bins.get(bin).push(value);
  });
  const found = [...bins.values()];
  if (found.length > 1 && (tick % BIN) + 1 < BIN / 2) found.pop(); // a bin that has just begun says little
  return found.map((values) => (values.length ? MEANS[means](values) : null));
}

/** One figure with one or two lines; they have gaps where nothing happened, unless they are `joined`. */
export class Chart {
  constructor(parent, { title, lines, format, joined = false }) {
    const figure = document.getElementById("chart").content.cloneNode(true).firstElementChild;
    this.title = title;
    this.lines = lines;
    this.format = format;
    this.joined = joined;
    this.figure = figure;
    this.drawing = figure.querySelector("svg");
    this.now = figure.querySelector(".now");
    figure.querySelector(".title").textContent = title;
    this.base = svg("line", { class: "base", x1: 0, x2: WIDTH }, this.drawing);
    this.area = svg("path", { class: "area" }, this.drawing);
    this.paths = lines.map((_, at) => svg("path", { class: `line line${at}` }, this.drawing));
    this.pointer = svg("line", { class: "pointer", y1: 0, y2: HEIGHT, visibility: "hidden" }, this.drawing);
    this.at = null;
    this.drawing.addEventListener("pointermove", (event) => this.point(event));
    this.drawing.addEventListener("pointerleave", () => this.point(null));
    parent.append(figure);
  }

  /** Draw columns of equal length, the newest value last; `tick` is its number, `every` the seconds between two. */
  draw(columns, tick, every) {
    const shown = SPANS.find((length) => length >= columns[0].length) ?? SPANS.at(-1);
    const found = columns.map((column, at) => binned(column.slice(-shown), tick, this.lines[at].means));
    this.plot(found, shown / BIN, every * BIN);
  }

  /** Draw columns as they are, over the time of `bins` values that are `every` seconds apart. */
  plot(columns, bins, every) {
    this.columns = columns;
    this.bins = bins;
    this.every = every;
    const values = columns.flat().filter((value) => value !== null);
    const highest = Math.max(0, ...values);
    const lowest = Math.min(0, ...values);
    this.bottom = lowest < 0 ? -ceiling(-lowest) : 0;
    this.top = highest > 0 || !lowest ? ceiling(highest) : 0;
    const zero = this.down(0) + 0.5;
    this.base.setAttribute("y1", zero);
    this.base.setAttribute("y2", zero);
    this.columns.forEach((column, at) => this.paths[at].setAttribute("d", this.path(column)));
    this.area.setAttribute("d", this.filled(this.columns[0]));
    this.figure.querySelector(".from").textContent = `${time(bins * every)} ago`;
    const scale = lowest < 0 ? `${this.format(this.bottom)} to ${this.format(this.top)}` : `top ${this.format(this.top)}`;
    this.figure.querySelector(".top").textContent = highest > 0 || lowest < 0 ? scale : "";
    this.tell();
  }

  down(value) {
    return TOP + (HEIGHT - TOP - 1) * (1 - (value - this.bottom) / (this.top - this.bottom));
  }

  spot(column, index) {
    const across = WIDTH * (1 - (column.length - 1 - index) / Math.max(1, this.bins - 1));
    return `${Math.max(0, across).toFixed(1)} ${this.down(column[index]).toFixed(1)}`;
  }

  path(column) {
    let drawn = false;
    return column.map((value, index) => {
      const begins = value !== null && !drawn;
      drawn = value !== null || (this.joined && drawn);
      if (value === null) return "";
      const alone = begins && (column[index + 1] ?? null) === null;
      return `${begins ? "M" : "L"}${this.spot(column, index)}${alone ? "h0.1" : ""}`;
    }).join("");
  }

  filled(column) {
    if (this.joined || column.length < 2 || column.includes(null)) return "";
    const spots = column.map((_, index) => this.spot(column, index));
    return `M${spots[0].split(" ")[0]} ${HEIGHT}L${spots.join("L")}L${WIDTH} ${HEIGHT}Z`;
  }

  point(event) {
    if (event === null || !this.columns) {
      this.at = null;
      this.pointer.setAttribute("visibility", "hidden");
    } else {
      const box = this.drawing.getBoundingClientRect();
      const across = Math.min(1, Math.max(0, (event.clientX - box.left) / box.width));
      this.at = Math.round((1 - across) * (this.bins - 1));
      this.pointer.setAttribute("visibility", "visible");
      this.pointer.setAttribute("x1", across * WIDTH);
      this.pointer.setAttribute("x2", across * WIDTH);
    }
    if (this.columns) this.tell();
  }

  /** Say the newest values in words, or those under the pointer. */
  tell() {
    const values = this.columns.map((column) => {
      if (this.at !== null) return column[column.length - 1 - this.at] ?? null;
      return column.findLast((value) => value !== null) ?? null;
    });
    const said = values.map((value, at) => `${this.lines[at].name} ${this.format(value)}`.trim());
    const spans = said.map((text, at) => {
      const span = document.createElement("span");
      if (this.lines[at].name) span.className = `key${at}`;
      span.textContent = text;
      return span;
    });
    if (this.at) {
      const ago = document.createElement("small");
      ago.textContent = `${time(Math.round(this.at * this.every))} ago`;
      spans.push(ago);
    }
    this.now.replaceChildren(...spans);
    if (this.at === null) this.drawing.setAttribute("aria-label", `${this.title}: ${said.join(", ")}`);
  }
}

/** The values' histogram; `bars` are [low, high, count]. */
export function bars(parent, found) {
  const most = Math.max(...found.map(([, , count]) => count));
  const total = found.reduce((sum, [, , count]) => sum + count, 0);
  const drawing = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img" });
  const step = WIDTH / Math.max(found.length, 6);
  found.forEach(([low, high, count], at) => {
    const tall = count ? Math.max(1, ((HEIGHT - TOP) * count) / most) : 0;
    const box = { class: "bar", x: at * step + step * 0.06, width: step * 0.88, y: HEIGHT - tall, height: tall };
    const title = low === high ? short(low) : `${short(low)} to ${short(high)}`;
    svg("title", {}, svg("rect", box, drawing)).textContent =
      `${title}: ${count} (${((100 * count) / total).toFixed(1)} %)`;
  });
  svg("line", { class: "base", x1: 0, x2: WIDTH, y1: HEIGHT - 0.5, y2: HEIGHT - 0.5 }, drawing);
  drawing.setAttribute("aria-label", `Histogram of ${total} values from ${short(found[0][0])} to ${short(found.at(-1)[1])}`);
  parent.replaceChildren(drawing, labels(found, step));
}

/** The numbers under the bars: each value's where there are few, else the two ends. */
function labels(found, step) {
  const line = document.createElement("p");
  line.className = "scale";
  line.setAttribute("aria-hidden", "true");
  const discrete = found.every(([low, high]) => low === high);
  if (discrete && found.length <= 12) {
    line.classList.add("under");
    for (const [low] of found) {
      const label = document.createElement("span");
      label.textContent = short(low);
      label.style.width = `${(100 * step) / WIDTH}%`;
      line.append(label);
    }
    return line;
  }
  for (const value of [found[0][0], found.at(-1)[1]]) {
    const label = document.createElement("span");
    label.textContent = short(value);
    line.append(label);
  }
  return line;
}
