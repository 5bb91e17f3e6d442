// One scorer's whole run: its mean reward, and what could not be judged, by traffic and for each client.

import { Chart } from "./charts.js";
import { share, short } from "./words.js";

const LINES = [{ name: "training" }, { name: "evaluation" }];
const CHARTS = [
  { title: "Mean reward", lines: LINES, format: short, joined: true },
  { title: "Could not be judged", lines: LINES, format: share, joined: true },
];

export class WholeRun {
  constructor(section) {
    this.rows = new Map();
    this.clients = [];
    this.section = section;
    this.charts = CHARTS.map((one) => new Chart(section.querySelector(".charts"), one));
    this.choice = section.querySelector("select");
    this.choice.addEventListener("change", () => this.draw());
  }

  /** Take in what changed; `now` is in seconds since the epoch. */
  add(found, now) {
    if (!found) return; // the server has not looked yet
    if (this.interval !== found.interval) this.rows.clear(); // every row comes anew
    this.interval = found.interval;
    this.now = now;
    for (const row of found.rows) this.rows.set(JSON.stringify(row.slice(0, 3)), row);
    const clients = [...new Set([...this.rows.values()].map((row) => row[2]))].sort();
    if (clients.join("\n") !== this.clients.join("\n")) this.offer(clients);
  }

  offer(clients) {
    const chosen = this.client;
    this.clients = clients;
    const options = clients.map((name, at) => new Option(name || "without a name", at));
    this.choice.replaceChildren(new Option("all clients", ""), ...options);
    this.choice.value = clients.includes(chosen) ? clients.indexOf(chosen) : "";
    this.choice.parentElement.hidden = clients.length < 2;
  }

  /** The client that was chosen; undefined for all. */
  get client() {
    return this.choice.value ? this.clients[this.choice.value] : undefined;
  }

  draw() {
    const { client, interval } = this;
    this.section.hidden = !this.rows.size;
    if (!this.rows.size) return;
    const slots = [...this.rows.values()].map((row) => row[0]);
    const first = slots.reduce((least, slot) => Math.min(least, slot));
    const last = slots.reduce((most, slot) => Math.max(most, slot), Math.floor(this.now / interval));
    const sums = LINES.map(() => Array.from({ length: last - first + 1 }, () => [0, 0, 0, 0]));
    for (const [slot, traffic, name, ...counts] of this.rows.values()) {
      if (client !== undefined && client !== name) continue;
      const sum = sums[traffic === "train" ? 0 : 1][slot - first];
      counts.forEach((count, at) => (sum[at] += count ?? NaN)); // null: too large for a number
    }
    const means = sums.map((line) => line.map(([, scored, , sum]) => (scored && Number.isFinite(sum) ? sum / scored : null)));
    const failed = sums.map((line) => line.map(([answered, , count]) => (answered ? count / answered : null)));
    [means, failed].forEach((columns, at) => this.charts[at].plot(columns, last - first + 1, interval));
  }
}
