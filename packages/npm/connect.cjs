"use strict";
// A server that listens, for code that has not started it. It is CommonJS so that tests of Jest can load it too.

// connect returns a server that another process has started, such as the global set-up of a test runner.
function connect({ url = process.env.AWS_ENDPOINT_URL, region = process.env.AWS_REGION ?? "us-east-1" } = {}) {
  if (!url) throw new Error("connect needs a url, or AWS_ENDPOINT_URL in the environment");
  return new Endpoint(url, region);
}

async function call(url, body) {
  const answer = await fetch(url, body && { method: "POST", body: JSON.stringify(body) });
  const text = await answer.text();
  if (answer.ok) return JSON.parse(text);
  let reason = text;
  try {
    reason = JSON.parse(text).error ?? text;
  } catch {} // not JSON: the text is the reason
  throw new Error(`mayfly's clock: ${reason.trim()} (HTTP ${answer.status})`);
}

// Endpoint is a server that listens.
class Endpoint {
  constructor(url, region) {
    this.url = url;
    this.clock = new Clock(this);
    this._region = region;
    Object.defineProperty(this, "_region", { enumerable: false });
  }

  get port() {
    return Number(new URL(this.url).port);
  }

  get clientConfig() {
    return { endpoint: this.url, region: this._region, credentials: { accessKeyId: "any", secretAccessKey: "any" } };
  }

  get env() {
    return {
      AWS_ENDPOINT_URL: this.url,
      AWS_REGION: this._region,
      AWS_DEFAULT_REGION: this._region,
      AWS_ACCESS_KEY_ID: "any",
      AWS_SECRET_ACCESS_KEY: "any",
    };
  }

  reset() {
    return call(`${this.url}/_mayfly/reset`, {});
  }
}

class Clock {
  #server;

  constructor(server) {
    this.#server = server;
  }

  #request(path, body) {
    return call(`${this.#server.url}/_mayfly/clock${path}`, body);
  }

  state() {
    return this.#request("");
  }

  async now() {
    return new Date((await this.state()).now_ms);
  }

  freeze() {
    return this.#request("/freeze", {});
  }

  rate(rate) {
    return this.#request("/rate", { rate });
  }

  set(to, { limit } = {}) {
    return this.#request("/set", { ...(typeof to === "number" ? { to_ms: to } : { to: instant(to) }), limit });
  }

  advance(by, { limit } = {}) {
    return this.#request("/advance", { ...(typeof by === "number" ? { by_ms: by } : { by }), limit });
  }
}

function instant(time) {
  const text = time instanceof Date ? time.toISOString() : time;
  if (Number.isNaN(Date.parse(text))) throw new RangeError(`invalid time ${JSON.stringify(text)}; use 2030-01-01T12:00:00Z`);
  return text;
}

exports.connect = connect;
exports.Endpoint = Endpoint;
exports.instant = instant;
