import { accessSync, closeSync, constants, openSync, readSync, statSync } from "node:fs";
import { delimiter, join } from "node:path";

const install = "install it as https://github.com/mayflydb/mayfly#install describes, or set MAYFLY_BINARY to its path";

// findBinary returns the path of the program: binary, else MAYFLY_BINARY, else the first mayfly on PATH.
export function findBinary(binary, env = process.env) {
  const named = binary ?? (env.MAYFLY_BINARY || undefined);
  if (named !== undefined) {
    if (!isProgram(named)) {
      const origin = binary === undefined ? "MAYFLY_BINARY" : "the option binary";
      throw new Error(`${origin} names ${JSON.stringify(named)}, which is not an executable file; ${install}`);
    }
    return named;
  }
  const name = process.platform === "win32" ? "mayfly.exe" : "mayfly";
  for (const dir of (env.PATH ?? env.Path ?? "").split(delimiter)) {
    const path = join(dir || ".", name);
    if (isProgram(path) && !isScript(path)) return path;
  }
  throw new Error(`the program mayfly is not on PATH; ${install}`);
}

function isProgram(path) {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

// npm puts this package's own command on PATH under the same name. That one is a script, and starting it here would never end.
function isScript(path) {
  try {
    const file = openSync(path);
    try {
      const start = Buffer.alloc(2);
      readSync(file, start, 0, 2, 0);
      return start.toString("latin1") === "#!";
    } finally {
      closeSync(file);
    }
  } catch {
    return false; // executable, but not readable: a program
  }
}
