// Modules of the page without a browser.

import { readFileSync } from "node:fs";
import { transformWithEsbuild } from "vite";

/** A module of `src` that imports no other. */
export async function load(name) {
  const source = readFileSync(new URL(`../src/${name}`, import.meta.url), "utf8");
  const { code } = await transformWithEsbuild(source, name, { format: "esm" });
  return import(`data:text/javascript;base64,${Buffer.from(code).toString("base64")}`);
}
