// Jest's globalTeardown: stops the server of jest-setup.
export default async function teardown() {
  await globalThis[Symbol.for("mayfly.jest")]?.stop();
}
