// The service through openapi-fetch, with the types that openapi-typescript generates.
//
//     node fetch_client.js URL KEY

import assert from "node:assert/strict";
import createClient from "openapi-fetch";
import type { components, paths } from "./schema.js";

type Schemas = components["schemas"];

const [url, key] = process.argv.slice(2) as [string, string];
const letters = (step: number) =>
  Array.from({ length: 199 }, (_, n) => String.fromCodePoint(0x4e00 + ((step * (n + 1) * (n + 1)) % 5000))).join("");
const text = "黄河之水天上来，奔流到海不复回。" + letters(7919);
const near = text.replace("天上", "山中");
const other = letters(104_729);
const id = "http://a.example/页?q=1&r=%2F";

/// The answer, which must be a good one.
function good<T>(answer: { data?: T; error?: Schemas["ProblemDetails"]; response: Response }): T {
  assert.equal(answer.error, undefined);
  assert.ok(answer.data !== undefined, `${answer.response.status}`);
  return answer.data;
}

async function run(evidence: Schemas["Evidence"], made: Omit<Schemas["NewCollection"], "name">) {
  const isDistance = made.max_distance !== undefined;
  const headers = { authorization: `Bearer ${key}` };
  const client = createClient<paths>({ baseUrl: url, headers });
  const path = { name: `fetch-${evidence}` };
  const params = { path };
  const collection = good(await client.POST("/v1/collections", { body: { ...path, ...made } }));
  assert.deepEqual([collection.name, collection.documents], [path.name, 0]);

  const check = async (body: Schemas["Check"]): Promise<Schemas["Checked"]> =>
    good(await client.POST("/v1/collections/{name}/check", { params, body }));
  const added = await check({ text, id, insert: true, source: "a.example" });
  assert.deepEqual(
    [added.verdict, added.insert, added.matches, added.truncated, added.evidence],
    ["new", "added", [], false, evidence],
  );
  for (const [asked, isSame] of [[text, true], [near, false]] as const) {
    const found = await check({ text: asked });
    assert.deepEqual([found.verdict, found.evidence, found.insert], ["duplicate", evidence, undefined]);
    const [match] = found.matches;
    assert.ok(match !== undefined && found.matches.length === 1);
    assert.deepEqual([match.id, match.source], [id, "a.example"]);
    const [value, none]: (number | null | undefined)[] =
      isDistance ? [match.distance, match.score] : [match.score, match.distance];
    assert.deepEqual([typeof value, none], ["number", undefined]);
    assert.equal(value === (isDistance ? 0 : 1), isSame);
  }
  const again = await check({ text: near, id: "again", insert: true });
  assert.deepEqual([again.verdict, again.insert], ["duplicate", "near"]);

  const documents = [{ id: "other", text: other }, { id: "near", text: near }, { id: "", text: other }];
  const batch = { documents, unless_near: true, existing: "keep" } as const;
  const stored = good(await client.POST("/v1/collections/{name}/documents", { params, body: { ...batch, documents } }));
  assert.deepEqual([stored.stored, stored.not_stored], [1, 2]);
  assert.deepEqual(stored.outcomes.map((one) => one.outcome), ["added", "near", "refused"]);
  assert.deepEqual([stored.outcomes[1]?.near?.id, stored.outcomes[1]?.near?.evidence], [id, evidence]);
  assert.deepEqual(stored.outcomes[2]?.problem?.pointer, "/documents/2/id");

  const pages = { a: { text }, b: { text: near } };
  const compared = good(await client.POST("/v1/collections/{name}/compare", { params, body: pages }));
  assert.deepEqual([compared.near_duplicates, compared.same_text], [true, false]);
  assert.deepEqual([typeof compared.distance, typeof compared.score], ["number", isDistance ? "undefined" : "number"]);
  assert.ok((compared.verified?.cosine ?? 0) > 0.9 && (compared.features?.features_a ?? 0) > 100);

  const one = { params: { path: { ...path, id } } };
  assert.equal(good(await client.GET("/v1/collections/{name}/documents/{id}", one)).id, id);
  assert.equal(good(await client.DELETE("/v1/collections/{name}/documents/{id}", one)).outcome, "removed");
  const gone = await client.GET("/v1/collections/{name}/documents/{id}", one);
  assert.deepEqual([gone.error?.status, gone.error?.type], [404, "urn:nearsift:problem:no-document"]);

  const nobody = await createClient<paths>({ baseUrl: url }).GET("/v1/collections");
  assert.deepEqual([nobody.response.status, nobody.error?.type], [401, "urn:nearsift:problem:no-key"]);
  assert.equal(good(await client.DELETE("/v1/collections/{name}", { params })).deleted, path.name);
}

await run("sketch", { recipe: "sketch", min_score: 0.5 });
await run("fingerprint", { recipe: "simhash64", max_distance: 16 });
await run("text", { recipe: "sketch", keep_texts: true });
