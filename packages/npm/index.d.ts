/// <reference lib="esnext.disposable" />

export interface StartOptions {
  /** Path of the program. Default: the environment variable MAYFLY_BINARY, else mayfly on PATH. */
  binary?: string;
  /** Directory of the data, made if it does not exist. Default: everything stays in memory. */
  dataDir?: string;
  /** First instant of a new database: a Date, or RFC 3339 such as "2030-01-01T00:00:00Z". Default: now. */
  start?: string | Date;
  /** Freeze the clock before start returns; with start and in memory, at exactly that instant. */
  frozen?: boolean;
  /** Region of ARNs, of clientConfig and of env. Default: "us-east-1". */
  region?: string;
  /** Further flags of mayfly serve. */
  args?: string[];
  /** Milliseconds until start fails. Default: 30000. */
  timeout?: number;
}

/** The state of the clock, as docs/clock.md describes it. */
export interface ClockState {
  now: string;
  now_ms: number;
  frozen: boolean;
  rate: number;
  offset_ms: number;
  standing: boolean;
  control: boolean;
}

export interface ClockMove extends ClockState {
  from: string;
  from_ms: number;
  /** The number of items that expired on the way. */
  expired: number;
  /** The limit passed before everything due had happened. */
  unfinished: boolean;
  /** If unfinished: the consumers that were still at work. */
  busy?: unknown;
}

export interface MoveOptions {
  /** Real time to wait at most until everything due has happened, such as "1m". Default: "10s". */
  limit?: string;
}

export interface Clock {
  /** Returns the present instant of the database. */
  now(): Promise<Date>;
  /** Returns the whole state of the clock. */
  state(): Promise<ClockState>;
  /** Stops the clock. */
  freeze(): Promise<ClockState>;
  /** Runs the clock at a multiple of real time: 1 is normal speed, 0 freezes it. */
  rate(rate: number): Promise<ClockState>;
  /** Moves the clock forward to a Date, RFC 3339 or milliseconds since 1970. */
  set(to: string | Date | number, options?: MoveOptions): Promise<ClockMove>;
  /** Moves the clock forward by a duration such as "1h30m", or by milliseconds. */
  advance(by: string | number, options?: MoveOptions): Promise<ClockMove>;
}

/** A server that listens. */
export interface Endpoint {
  /** http://127.0.0.1: and the port. */
  readonly url: string;
  readonly port: number;
  /** Configuration for a client of the AWS SDK v3. */
  readonly clientConfig: {
    endpoint: string;
    region: string;
    credentials: { accessKeyId: string; secretAccessKey: string };
  };
  /** AWS_ENDPOINT_URL and the other variables that point a program at the server. */
  readonly env: Record<string, string>;
  readonly clock: Clock;
  /** Deletes everything, and puts the clock back to its start. */
  reset(): Promise<ClockState>;
}

/** A server that start has started. */
export interface Server extends Endpoint, AsyncDisposable {
  /** Process id of the program. */
  readonly pid: number;
  /** The end of the program's log. */
  readonly stderr: string;
  /** Returns when the program is gone. */
  stop(): Promise<void>;
}

/** Starts mayfly on a free port, and returns when it is ready. A failure carries the program's stderr. */
export function start(options?: StartOptions): Promise<Server>;

export interface ConnectOptions {
  /** Address of the server. Default: AWS_ENDPOINT_URL. */
  url?: string;
  /** Region of clientConfig and of env. Default: AWS_REGION, else "us-east-1". */
  region?: string;
}

/** Returns a server that another process has started, such as the global set-up of a test runner. */
export function connect(options?: ConnectOptions): Endpoint;
