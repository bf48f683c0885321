// Both tables of messages are complete and use the same places.

import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { test } from "node:test";
import { load } from "./load.mjs";

const { tables, message } = await load("messages.ts");
const { visible, line } = await load("text.ts");

test("both languages have every message with the same places", () => {
  assert.deepEqual(Object.keys(tables.zh), Object.keys(tables.en));
  const places = (text) => [...text.matchAll(/\{\w+\}/g)].map(([place]) => place).sort();
  for (const key of Object.keys(tables.en)) {
    assert.deepEqual(places(tables.zh[key]), places(tables.en[key]), key);
    assert.ok(tables.zh[key].trim() && tables.en[key].trim(), key);
  }
});

test("Chinese messages are Chinese", () => {
  const alike = Object.keys(tables.en).filter((key) => tables.en[key] === tables.zh[key]);
  assert.deepEqual(alike, ["jaccard"]);
});

test("no message is without use", () => {
  const sources = readdirSync(new URL("../src", import.meta.url)).filter((name) => /\.tsx?$/.test(name) && name !== "messages.ts");
  const text = sources.map((name) => readFileSync(new URL(`../src/${name}`, import.meta.url), "utf8")).join("\n");
  const made = /^theme_/;
  const unused = Object.keys(tables.en).filter((key) => !made.test(key) && !new RegExp(`["\`]${key}["\`]`).test(text));
  assert.deepEqual(unused.filter((key) => !["same_document", "together_as_pair", "together_through_others", "apart_by_rule", "no_pair"].includes(key)), []);
});

test("places are filled once, and with what was given", () => {
  assert.equal(message("en", "compare_with", { id: "{id} $& <b>" }), "Compare with {id} $& <b>");
});

test("characters that mislead are shown", () => {
  assert.equal(visible("a\u202eb\u001b[31m\0\n"), "a⟨U+202E⟩b␛[31m␀\n");
  assert.equal(line("a\nb"), "a b");
  assert.equal(Array.from(line("字".repeat(1000))).length, 201);
});
