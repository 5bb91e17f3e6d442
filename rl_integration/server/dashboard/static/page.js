// The page: asks the server once a second for what is new, and shows it.  It rests while nobody looks.

import { STATES, Scorer } from "./scorer.js";
import { clock, plural, span } from "./words.js";

const EVERY = 1000; // milliseconds between two questions
const LONGEST = 15000; // between two tries of a server that does not answer
const PATIENCE = 10000; // how long an answer may take
const GONE = 30000; // after so long without it, another server's answers are shown
const KEY = "adjudge-token";

const byId = (id) => document.getElementById(id);
const scorers = new Map();
const met = new Set(); // the servers that answered, by when they were started
let started = null; // the one that is shown
let several = false; // whether they answer in turn
let cursor = { tick: 0, sample: 0 };
let timer = 0;
let asking = false;
let pause = EVERY;
let answered = null;

async function ask() {
  clearTimeout(timer);
  const token = sessionStorage.getItem(KEY);
  const shown = !byId("door").hidden; // somebody is about to give a token
  if (asking || document.hidden || (shown && !token)) return;
  asking = true;
  try {
    const answer = await fetch(`/v1/dashboard?tick=${cursor.tick}&sample=${cursor.sample}`, {
      headers: token ? { authorization: `Bearer ${token}` } : {},
      signal: AbortSignal.timeout(PATIENCE),
    });
    if (answer.status === 401) {
      shut(token);
      return;
    }
    if (!answer.ok) throw new Error(`it answered with ${answer.status}`);
    show(await answer.json());
    pause = EVERY;
    notice(several ? "Several servers answer at this address; this page shows one of them." : "");
  } catch (error) {
    pause = Math.min(LONGEST, 2 * pause);
    const since = answered ? ` since ${clock(answered / 1000)}` : "";
    notice(`No answer from the server${since}: what stands below is old. Trying again.`, "stale");
    console.info(error);
  } finally {
    asking = false;
  }
  timer = setTimeout(ask, pause);
}

/** Ask for a token; `token` is the one that was not known. */
function shut(token) {
  sessionStorage.removeItem(KEY);
  byId("door").hidden = false;
  byId("scorers").hidden = true;
  byId("headline").textContent = "Is the reward healthy?";
  byId("subline").textContent = "";
  byId("wrong").textContent = token ? "The server does not know this token." : "";
  byId("token").focus();
}

byId("door").addEventListener("submit", (event) => {
  event.preventDefault();
  const token = byId("token").value.trim();
  if (!/^[!-~]+$/.test(token)) {
    byId("wrong").textContent = "A token has visible ASCII characters alone.";
    return;
  }
  sessionStorage.setItem(KEY, token);
  byId("token").value = "";
  ask();
});

function show(found) {
  byId("door").hidden = true;
  byId("scorers").hidden = false;
  if (started !== found.started) {
    several ||= met.has(found.started);
    if (several && Date.now() - answered < GONE) return;
    met.add(found.started);
    started = found.started;
    const stale = cursor.tick > 0;
    cursor = { tick: 0, sample: 0 };
    scorers.clear();
    byId("scorers").replaceChildren();
    if (stale) return; // what came is what is new since another server's numbers: ask for all of it
  }
  answered = Date.now();
  cursor = { tick: found.tick, sample: found.sample };
  for (const one of found.scorers) {
    if (!scorers.has(one.name)) scorers.set(one.name, added(one.name, found));
    scorers.get(one.name).update(one, found);
  }
  head(found);
}

function added(name, found) {
  const scorer = new Scorer(byId("scorers"), name, found.texts);
  scorer.card.open = found.scorers.length <= 2;
  scorer.card.addEventListener("toggle", () => scorer.card.open && scorer.details());
  return scorer;
}

function head(found) {
  const tones = found.scorers.map((one) => (STATES[one.state] ?? ["", "calm"])[1]);
  const count = (tone) => tones.filter((one) => one === tone).length;
  const all = found.scorers.length;
  let headline;
  if (count("bad")) headline = all === 1 ? "The scorer does not work." : `${plural(count("bad"), "scorer does", "scorers do")} not work.`;
  else if (count("look")) headline = all === 1 ? "The reward is worth a look." : `${plural(count("look"), "reward is", "rewards are")} worth a look.`;
  else if (count("good") === all) headline = all === 1 ? "The reward is healthy." : "All rewards are healthy.";
  else if (count("good")) headline = `${count("good")} of ${all} rewards are healthy; the others have too few samples.`;
  else headline = "Nothing to tell yet.";
  if (found.draining) headline = "The server is closing.";
  const element = byId("headline");
  if (element.textContent !== headline) element.textContent = headline;
  document.title = `${headline.replace(/\.$/, "")} – adjudge`;
  const total = found.scorers.reduce((sum, one) => sum + one.answered, 0);
  byId("version").textContent = found.version;
  byId("subline").textContent =
    `${plural(all, "scorer")} · ${plural(total, "score")} in ${span(found.now - found.started)}`;
  report(found.report);
}

/** Name the run's report: an address of the web as a link, and anything else as the text that it is. */
function report(address) {
  const [place, link] = [byId("report"), byId("report").querySelector("a")];
  const web = /^https?:[/]{2}/i.test(address);
  place.hidden = !address;
  link.hidden = !web;
  if (web) link.href = address;
  place.querySelector("span").textContent = web ? "" : `the run's report: ${address}`;
}

function notice(text, tone = "") {
  byId("notice").hidden = !text;
  if (byId("notice").textContent !== text) byId("notice").textContent = text;
  document.body.classList.toggle("stale", tone === "stale");
}

document.addEventListener("visibilitychange", () => {
  if (!document.hidden) ask();
});
ask();
