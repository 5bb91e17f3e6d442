// One scorer: a line that says how it is, and the details below.

import { Chart, bars } from "./charts.js";
import { Samples, outcomes } from "./samples.js";
import { WholeRun } from "./whole_run.js";
import { plural, share, short, time, whole } from "./words.js";

export const STATES = {
  healthy: ["healthy", "good"],
  learning: ["getting to know it", "calm"],
  idle: ["idle", "calm"],
  look: ["worth a look", "look"],
  failing: ["failing", "bad"],
  resting: ["suspended", "bad"],
  stalled: ["stalled", "bad"],
};

const line = (name, means) => ({ name, means });

const CHARTS = [
  { title: "Scores per second", lines: [line("", "mean")], columns: ["rate"], format: short },
  { title: "Latency", lines: [line("median", "mean"), line("95 %", "most")], columns: ["p50", "p95"], format: time },
  { title: "Waiting samples", lines: [line("", "most")], columns: ["waiting"], format: short },
  { title: "Samples per call", lines: [line("", "mean")], columns: ["batch"], format: short },
];

// The rows of the watch: what it is called, the alarms it belongs to, what is measured, and from where on it alarms.
const SIGNS = [
  ["Samples that could not be judged", ["failed"], (found) => share(found.failed), (limits) => share(limits.failed)],
  ["Values at the maximum", ["constant", "at_maximum"], (found) => share(found.at_maximum), (limits) => share(limits.at_maximum)],
  ["Commonest response to different prompts", ["one_response"], (found) => share(found.one_response), (limits) => share(limits.one_response)],
  ["Long responses given to several prompts", ["repeated"], (found) => share(found.repeated), (limits) => share(limits.repeated)],
  ["Median length, in characters", ["longer", "shorter"], length, (limits) => `× ${short(limits.longer)} or ÷ ${short(limits.longer)}`],
  ["Mark of form that changed most", ["form"], form, (limits) => `± ${share(limits.form)}`],
  ["Value follows length (rank correlation)", ["follows_length"], (found) => short(found.follows_length), (limits) => short(limits.follows_length)],
  ["Groups with one value alone", ["frac_reward_zero_std"], flat, (limits) => share(limits.frac_reward_zero_std)],
  ["Responses cut off at the token limit", ["clipped_ratio"], (found) => share(found.clipped_ratio), (limits) => share(limits.clipped_ratio)],
];

function length(found) {
  if (found.length_then === null) return found.length === null ? "–" : `${short(found.length)}`;
  return `${short(found.length_then)} → ${short(found.length)}`;
}

function form(found) {
  if (found.form === null) return "–";
  return `${found.form.mark}: ${share(found.form.then)} → ${share(found.form.now)}`;
}

function flat(found) {
  if (found.frac_reward_zero_std === null) return found.groups ? `– (${plural(found.groups, "group")})` : "–";
  return `${share(found.frac_reward_zero_std)} of ${whole(found.groups)}`;
}

export class Scorer {
  constructor(parent, name, texts) {
    this.card = document.getElementById("scorer").content.cloneNode(true).firstElementChild;
    this.find = (selector) => this.card.querySelector(selector);
    this.find(".name").textContent = name;
    this.past = {};
    this.generation = null;
    this.charts = CHARTS.map((one) => new Chart(this.find(".charts"), one));
    this.run = new WholeRun(this.find(".run"));
    this.samples = new Samples(this.find(".samples"), texts);
    parent.append(this.card);
  }

  update(found, frame) {
    if (this.generation !== found.generation) {
      this.generation = found.generation;
      this.past = {};
      this.samples.clear();
    }
    for (const [name, column] of Object.entries(found.history)) {
      this.past[name] = [...(this.past[name] ?? []), ...column].slice(-frame.points);
    }
    this.latest = found;
    this.frame = frame;
    this.run.add(found.run, frame.now);
    this.samples.add(found.newest);
    this.line(found);
    if (this.card.open) this.details();
  }

  line(found) {
    const [word, tone] = STATES[found.state] ?? [found.state, "calm"];
    this.card.dataset.tone = tone;
    put(this.find(".state"), word);
    put(this.find(".sentence"), found.sentence);
    const rate = this.past.rate.slice(-10);
    const mean = rate.length ? rate.reduce((sum, value) => sum + value, 0) / rate.length : 0;
    put(this.find(".pace"), `${short(Number(mean.toPrecision(3)))} / s`);
  }

  details() {
    const { latest: found, frame } = this;
    if (!found) return;
    CHARTS.forEach((one, at) => {
      this.charts[at].draw(one.columns.map((name) => this.past[name] ?? []), frame.tick, frame.every);
    });
    this.run.draw();
    this.find(".watch").hidden = this.find(".values").hidden = this.find(".samples").hidden = !found.watch;
    if (found.watch) this.watch(found.watch, frame.limits);
    else outcomes(this.find(".outcomes"), found.reasons, "since the start");
    const foot = [
      `${plural(found.answered, "score")} since the start`,
      `${whole(found.shared)} shared with an equal sample`,
      `${whole(found.refused)} refused`,
      `${whole(found.running)} being scored`,
      found.suspensions ? plural(found.suspensions, "suspension") : "",
      `fingerprint ${found.fingerprint}`,
    ];
    put(this.find(".foot"), foot.filter(Boolean).join(" · "));
  }

  watch({ measures, bars: found, alarms }, limits) {
    outcomes(this.find(".outcomes"), measures.outcomes, `of the last ${whole(measures.window)}`);
    const then = measures.mean_then === null ? "" : `, ${short(measures.mean_then)} at the start`;
    put(this.find(".values small"), measures.mean === null ? "none yet" : `mean ${short(measures.mean)}${then}`);
    if (found.length) bars(this.find(".bars"), found);
    else this.find(".bars").replaceChildren();
    const listed = alarms.length > 1 ? alarms : []; // a single one stands in the line above
    this.find(".alarms").replaceChildren(...listed.map((alarm) => {
      const item = document.createElement("li");
      item.textContent = alarm.sentence;
      return item;
    }));
    const raised = new Set(alarms.map((alarm) => alarm.kind));
    put(this.find(".watch small"), `the last ${plural(measures.window, "sample")}`);
    this.find(".watch tbody").replaceChildren(...SIGNS.map(([name, kinds, now, from]) => {
      const line = document.createElement("tr");
      const head = document.createElement("th");
      const on = kinds.some((kind) => raised.has(kind));
      head.scope = "row";
      head.textContent = name;
      line.append(head);
      line.insertCell().textContent = now(measures);
      line.insertCell().textContent = on ? `yes, from ${from(limits)}` : `from ${from(limits)}`;
      line.classList.toggle("raised", on);
      return line;
    }));
  }
}

/** Change a text only where it differs, so that nothing that is read aloud or selected is disturbed. */
function put(element, text) {
  if (element.textContent !== text) element.textContent = text;
}
