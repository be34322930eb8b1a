// Shared by the checks of the examples in JavaScript. Only this file and the checks use mayfly's own API: they move its clock (POST /_mayfly/clock).
import { setTimeout as sleep } from "node:timers/promises";

const endpoint = process.env.AWS_ENDPOINT_URL;
const flaws = [];

export const SOON = 20_000; // ms to wait for the server's background work
export const HOUR = 3600;

// flaw declares a scenario, which returns whether the flaw shows. expected has the wanted result of each program.
export function flaw(number, title, expected, scenario) {
  flaws.push({ number, title, expected, scenario });
}

// run plays all scenarios with each program, prints which flaws show, and ends the process. Only scenarios move the clock, unless frozen is false.
export async function run(programs, { frozen = true } = {}) {
  console.error = () => {}; // the functions' own logs
  console.warn = () => {};
  if (frozen) await clock("freeze");
  let wrong = 0;
  const chosen = process.argv.slice(2);
  for (const { number, title, expected, scenario } of flaws) {
    if (chosen.length > 0 && !chosen.includes(String(number))) continue;
    const shown = {};
    for (const [name, program] of Object.entries(programs)) shown[name] = await scenario(program, name);
    const as = Object.entries(shown).every(([name, shows]) => shows === expected[name]);
    if (!as) wrong++;
    const marks = Object.entries(shown).map(([name, shows]) => `${name}: ${(shows ? "shows" : "-").padEnd(5)}`);
    console.log(`${String(number).padStart(4)}  ${marks.join("  ")}  ${title}${as ? "" : `   <-- expected ${JSON.stringify(expected)}`}`);
  }
  if (wrong > 0) console.log(`${wrong} flaws are not as they should be`);
  process.exit(wrong > 0 ? 1 : 0);
}

export async function clock(action, body) {
  const answer = await fetch(`${endpoint}/_mayfly/clock/${action}`, { method: "POST", body: JSON.stringify(body) });
  if (!answer.ok) throw new Error(`${action}: ${await answer.text()}`);
  return answer.json();
}

// now returns the database's present second.
export async function now() {
  const answer = await fetch(`${endpoint}/_mayfly/clock`);
  return Math.floor((await answer.json()).now_ms / 1000);
}

export const setClock = (seconds) => clock("set", { to_ms: Math.round(seconds * 1000) });

// until waits for a condition that the server brings about in the background. It returns whether the condition holds in time.
export async function until(condition, patience = SOON) {
  for (const end = performance.now() + patience; ; await sleep(20)) {
    if (await condition()) return true;
    if (performance.now() > end) return false;
  }
}

// never returns whether a condition stays false for a second.
export const never = async (condition) => !(await until(condition, 1000));
