// The script of the console. Pages work without it, except for live values. It counts down, follows
// live values, shows times in the visitor's zone, and listens to the keyboard.
"use strict";

const body = document.body;

// The endpoint's clock: its time when the page was made, moved on at its rate.
const clock = { at: Number(body.dataset.now), rate: Number(body.dataset.rate), since: performance.now() };
const now = () => clock.at + (performance.now() - clock.since) * clock.rate;

// Durations as the server writes them: the two largest units.
const units = [["d", 864e5], ["h", 36e5], ["m", 6e4], ["s", 1e3], ["ms", 1]];
function span(ms) {
  for (const [i, [name, length]] of units.entries()) {
    if (ms < length) continue;
    const next = units[i + 1], rest = next && Math.floor((ms % length) / next[1]);
    return Math.floor(ms / length) + name + (rest ? " " + rest + next[0] : "");
  }
  return "0ms";
}

const zoned = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });

function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

const utc = at => at.toISOString().slice(0, 19).replace("T", " ") + " UTC";

// The labels of a time axis: as short as the range allows.
const axis = {
  second: new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit" }),
  minute: new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit" }),
  day: new Intl.DateTimeFormat(undefined, { dateStyle: "medium" }),
  month: new Intl.DateTimeFormat(undefined, { year: "numeric", month: "short" }),
};

// Times in the visitor's zone. The title keeps UTC.
function showTimes(within) {
  for (const e of within.querySelectorAll("time[data-at]")) setText(e, zoned.format(new Date(Number(e.dataset.at))));
  for (const e of within.querySelectorAll("text[data-at]")) {
    const at = new Date(Number(e.dataset.at));
    e.textContent = axis[e.dataset.form].format(at);
    const title = document.createElementNS(e.namespaceURI, "title");
    title.textContent = utc(at);
    e.append(title);
  }
  tick();
}

// Updates the countdowns and the clock. It runs while the page is visible and the clock is not frozen.
function tick() {
  const t = now();
  for (const e of document.querySelectorAll("time[data-until]")) {
    const left = Number(e.dataset.until) - t;
    const whole = Math.abs(left) < 1000 ? Math.abs(left) : Math.floor(Math.abs(left) / 1000) * 1000;
    setText(e, left > 0 ? "in " + span(whole) : span(whole) + " ago");
    e.classList.toggle("over", left <= 0);
  }
  for (const e of document.querySelectorAll("time[data-clock]")) {
    const at = new Date(t);
    setText(e, (faces[e.dataset.clock] || zoned.format)(at));
    if (e.title !== utc(at)) e.title = utc(at);
  }
}

// The forms of a clock. A large one has milliseconds.
const timeOfDay = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", fractionalSecondDigits: 3, hourCycle: "h23" });
const dateLong = new Intl.DateTimeFormat(undefined, { dateStyle: "full" });
const faces = {
  ms: at => at.toISOString().replace("T", " ").replace("Z", " UTC"),
  time: at => timeOfDay.format(at),
  date: at => dateLong.format(at),
};

let ticking;
function run() {
  clearInterval(ticking);
  if (document.hidden || clock.rate === 0) return;
  const fast = document.querySelector("time[data-clock=ms]");
  ticking = setInterval(tick, fast && !matchMedia("(prefers-reduced-motion: reduce)").matches ? 100 : 1000);
}

// Gives an element the contents of another. Equal parts stay, and with them the focus, scroll positions
// and what a visitor has selected or opened.
function becomes(target, fresh) {
  const [old, next] = [[...target.childNodes], [...fresh.childNodes]];
  next.forEach((to, i) => {
    const from = old[i];
    if (!from) target.append(to);
    else if (from.nodeName !== to.nodeName) from.replaceWith(to);
    else if (from.nodeType !== Node.ELEMENT_NODE) setText(from, to.textContent);
    else {
      for (const a of to.attributes) if (from.getAttribute(a.name) !== a.value) from.setAttribute(a.name, a.value);
      for (const a of [...from.attributes]) if (!to.hasAttribute(a.name) && a.name !== "open") from.removeAttribute(a.name);
      becomes(from, to);
    }
  });
  for (const gone of old.slice(next.length)) gone.remove();
}

// Live values: each event has the HTML of an element, made and escaped by the server. A page that is
// hidden or paused follows nothing.
let source;
let paused = false;
function follow() {
  if (source) source.close();
  source = undefined;
  if (!body.dataset.live || document.hidden || paused) return;
  source = new EventSource(body.dataset.live);
  source.addEventListener("open", () => { // also when the browser has connected again
    for (const e of document.querySelectorAll("[data-fresh]")) e.replaceChildren();
  });
  source.addEventListener("open", () => { // a failure of the connection before is over
    const problem = document.getElementById("problem");
    if (problem) problem.replaceChildren();
  });
  source.addEventListener("replace", event => {
    const line = event.data.indexOf("\n");
    const target = document.getElementById(event.data.slice(0, line));
    if (!target) return;
    const fresh = document.createElement("template");
    fresh.innerHTML = event.data.slice(line + 1);
    becomes(target, fresh.content);
    showTimes(target);
  });
  source.addEventListener("append", event => {
    const line = event.data.indexOf("\n");
    const target = document.getElementById(event.data.slice(0, line));
    if (!target) return;
    const fresh = document.createElement("template");
    fresh.innerHTML = event.data.slice(line + 1);
    showTimes(fresh.content);
    for (const old of [...target.children].slice(Math.max(500 - fresh.content.children.length, 0))) old.remove();
    target.prepend(fresh.content);
  });
  source.addEventListener("clock", event => {
    [clock.at, clock.rate] = event.data.split(" ").map(Number);
    clock.since = performance.now();
    tick();
    run();
  });
}

document.addEventListener("visibilitychange", () => { tick(); run(); follow(); });

// Rows: j and k go through them, Enter opens the link of the chosen one.
function rows() { return [...document.querySelectorAll("table[data-rows] > tbody > tr")]; }
function choose(step) {
  const all = rows();
  if (!all.length) return;
  const at = all.findIndex(r => r.classList.contains("chosen"));
  const next = all[Math.min(Math.max(at + step, 0), all.length - 1)];
  all.forEach(r => r.classList.toggle("chosen", r === next));
  const link = next.querySelector("a");
  if (link) link.focus({ preventScroll: true });
  next.scrollIntoView({ block: "nearest" });
}

let before = ""; // the first key of a pair such as "g t"
document.addEventListener("keydown", event => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest("input, textarea, select, [contenteditable]")) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  const key = event.key;
  const area = before && [...document.querySelectorAll("a[data-keys]")].find(a => a.dataset.keys === before + " " + key);
  before = "";
  if (area) location.assign(area.href);
  else if (key === "g") { before = "g"; setTimeout(() => { before = ""; }, 1500); }
  else if (document.querySelector(`button[data-key="${CSS.escape(key)}"]`)) document.querySelector(`button[data-key="${CSS.escape(key)}"]`).click();
  else if (key === "j") choose(1);
  else if (key === "k") choose(-1);
  else if (key === "?") document.getElementById("help").showModal();
  else if (key === "/") {
    const field = document.querySelector("[data-search]");
    if (!field) location.assign(document.querySelector('a[data-keys="g t"]').href + "#search");
    else {
      field.focus();
      field.select();
    }
  } else return;
  event.preventDefault();
});

document.addEventListener("click", async event => {
  const copy = event.target.closest("[data-copy]");
  if (copy) {
    const code = copy.parentElement.querySelector("code"), text = copy.textContent;
    if (navigator.clipboard) {
      await navigator.clipboard.writeText(code.textContent);
      setText(copy, "Copied");
    } else { // browsers offer it only over TLS and on this machine
      getSelection().selectAllChildren(code);
      setText(copy, "Selected: copy it by key");
    }
    setTimeout(() => setText(copy, text), 1500);
    return;
  }
  const pause = event.target.closest("[data-pause]");
  if (pause) {
    paused = !paused;
    setText(pause, (paused ? "Continue" : "Pause") + " updates");
    follow();
    return;
  }
  const all = event.target.closest("[data-all]");
  if (all) for (const box of document.querySelectorAll("input[name=key]:not(:disabled)")) box.checked = all.checked;
});

// A change that cannot be undone is confirmed. Without the field the server asks on a page of its own.
document.addEventListener("submit", event => {
  const question = event.submitter && event.submitter.dataset.confirm;
  if (!question) return;
  if (!confirm(question)) return event.preventDefault();
  const field = Object.assign(document.createElement("input"), { type: "hidden", name: "confirmed", value: "yes" });
  event.target.append(field);
});

// A URL that is shared has only the fields with values.
document.addEventListener("formdata", event => {
  if (event.target.method !== "get") return;
  const data = event.formData;
  for (const [name, value] of [...data]) {
    const filter = /^f[ot](\d)$/.exec(name); // of an attribute without a name
    if (value === "" || filter && !data.get("f" + filter[1])) data.delete(name);
  }
});

// A query that is too long for a URL is sent as a form.
document.addEventListener("submit", event => {
  const form = event.target;
  if (!form.dataset.token || new URLSearchParams(new FormData(form)).toString().length < 11000) return;
  form.method = "post";
  form.append(Object.assign(document.createElement("input"), { type: "hidden", name: "token", value: form.dataset.token }));
});

// Item editors say at once whether their text is JSON.
for (const area of document.querySelectorAll("textarea[data-json]")) {
  area.addEventListener("input", () => {
    let wrong = "";
    try { JSON.parse(area.value); } catch (e) { wrong = e.message; }
    area.setCustomValidity(wrong);
    area.setAttribute("aria-invalid", wrong ? "true" : "false");
    const told = area.form.querySelector(".wrong");
    if (told) setText(told, wrong && "This is not JSON: " + wrong);
  });
}

// Timelines: a drag from one instant to another goes to that range.
for (const chart of document.querySelectorAll("[data-from][data-to] > svg")) {
  const frame = chart.parentElement;
  const [from, to] = [Number(frame.dataset.from), Number(frame.dataset.to)];
  const [left, right] = [Number(chart.dataset.left), Number(chart.dataset.right)]; // of the axis, in the drawing's units
  const mark = chart.querySelector(".drag");
  const shareAt = event => {
    const box = chart.getBoundingClientRect();
    const x = (event.clientX - box.left) / box.width * chart.viewBox.baseVal.width;
    return Math.min(Math.max((x - left) / (right - left), 0), 1);
  };
  let start;
  chart.addEventListener("pointerdown", event => {
    if (event.button) return;
    start = shareAt(event);
    chart.setPointerCapture(event.pointerId);
    event.preventDefault();
  });
  chart.addEventListener("pointermove", event => {
    if (start === undefined) return;
    const [a, b] = [start, shareAt(event)].sort((x, y) => x - y);
    mark.setAttribute("x", left + a * (right - left));
    mark.setAttribute("width", (b - a) * (right - left));
  });
  chart.addEventListener("pointercancel", () => { // the finger scrolls the page
    start = undefined;
    mark.setAttribute("width", 0);
  });
  chart.addEventListener("pointerup", event => {
    if (start === undefined) return;
    const [a, b] = [start, shareAt(event)].sort((x, y) => x - y);
    start = undefined;
    const url = new URL(location.href);
    if ((b - a) * (right - left) < 4) { // a click: the items around the instant
      url.searchParams.set("at", Math.round(from + a * (to - from)));
      if (!url.searchParams.has("from")) { // "the next hour" would be another one after a reload
        url.searchParams.set("from", from);
        url.searchParams.set("to", to);
        url.searchParams.delete("next");
      }
      url.hash = "items";
    } else {
      url.searchParams.set("from", Math.round(from + a * (to - from)));
      url.searchParams.set("to", Math.round(from + b * (to - from)));
      url.searchParams.delete("at");
      url.searchParams.delete("next");
      url.hash = "";
    }
    location.assign(url);
  });
}

showTimes(document);
run();
follow();
if (location.hash === "#search") document.querySelector("[data-search]").focus();
