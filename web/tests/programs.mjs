// The program under test: runs over corpora, and servers of the page, each stopped at its end.

import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

export const REPOSITORY = resolve(dirname(fileURLToPath(import.meta.url)), "../..");
const BINARY = process.env.NEARSIFT_BIN ?? join(REPOSITORY, "target/debug/nearsift");

export function temporary() {
  const folder = mkdtempSync(join(tmpdir(), "nearsift-page-test-"));
  return { folder, remove: () => rmSync(folder, { recursive: true, force: true }) };
}

export function nearsift(...args) {
  const done = spawnSync(BINARY, args, { encoding: "utf8" });
  if (done.status !== 0 && done.status !== 3) throw new Error(`nearsift ${args.join(" ")}: ${done.stderr}`);
  return done.stdout;
}

/** Starts a server, and waits until it answers. */
async function server(args, address) {
  const child = spawn(BINARY, args, { stdio: ["ignore", "pipe", "pipe"], cwd: REPOSITORY });
  const ended = new Promise((done) => child.once("exit", done));
  let said = "";
  child.stderr.on("data", (data) => (said += data));
  const origin = await address(child);
  for (let attempt = 0; attempt < 200; attempt += 1) {
    try {
      await fetch(`${origin}/page/face.json`);
      return {
        origin,
        stop: async () => {
          child.kill("SIGTERM");
          await ended;
        },
      };
    } catch {
      await new Promise((done) => setTimeout(done, 50));
    }
    if (child.exitCode !== null) break;
  }
  throw new Error(`nearsift ${args.join(" ")}: no answer: ${said}`);
}

/** A run that is shown. */
export function view(run, ...args) {
  return server(["view", run, "--listen", "127.0.0.1:0", ...args], (child) =>
    new Promise((done) => child.stdout.once("data", (data) => done(String(data).trim()))),
  );
}

/** A service; its port is given, so that it can be started again at the same place. */
export function serve(folder, port, ...args) {
  return server(["serve", folder, "--listen", `127.0.0.1:${port}`, ...args], async () => `http://127.0.0.1:${port}`);
}

export function writeLines(path, values) {
  writeFileSync(path, values.map((value) => `${JSON.stringify(value)}\n`).join(""));
}
