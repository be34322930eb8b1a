#!/usr/bin/env node
// Runs the program with the same arguments, input and output, forwards signals to it, and exits as it exits.
import { spawn } from "node:child_process";
import { findBinary } from "../binary.js";

let binary;
try {
  binary = findBinary();
} catch (error) {
  console.error(`mayfly: ${error.message}`);
  process.exit(127);
}
const child = spawn(binary, process.argv.slice(2), { stdio: "inherit" });
const signals = ["SIGINT", "SIGTERM", "SIGHUP"];
const forward = (signal) => child.kill(signal);
for (const signal of signals) process.on(signal, forward);
child.on("error", (error) => {
  console.error(`mayfly: cannot start ${binary}: ${error.message}`);
  process.exit(126);
});
child.on("exit", (code, signal) => {
  for (const name of signals) process.off(name, forward);
  if (signal) process.kill(process.pid, signal);
  else process.exitCode = code;
});
