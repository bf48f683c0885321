// Where the graph of a group puts its nodes.

import assert from "node:assert/strict";
import { test } from "node:test";
import { load } from "./load.mjs";

const { layout } = await load("layout.ts");
const ROOM = { wide: 560, gap: 32, margin: 20, longest: 80 };

const distance = (a, b) => Math.hypot(a.x - b.x, a.y - b.y);
const chain = (order) => order.slice(1).map((node, nth) => ({ a: order[nth], b: node, length: 1 }));
/** All pairs of some nodes. */
const clump = (nodes) => nodes.flatMap((a, nth) => nodes.slice(nth + 1).map((b) => ({ a, b, length: 1 })));

/** The least distance of two nodes. */
function least(points) {
  return Math.min(...points.flatMap((a, nth) => points.slice(nth + 1).map((b) => distance(a, b))));
}

test("a chain is a line, in whatever order its nodes are", () => {
  const order = [5, 2, 7, 0, 3, 6, 1, 4];
  const { points } = layout(8, chain(order), ROOM);
  const ends = distance(points[5], points[4]);
  const way = order.slice(1).reduce((sum, node, nth) => sum + distance(points[order[nth]], points[node]), 0);
  assert.ok(ends > 0.9 * way, `${ends} of ${way}`);
});

test("the same graph is always drawn alike", () => {
  const edges = [...clump([0, 1, 2, 3]), ...chain([3, 4, 5, 6])];
  assert.deepEqual(layout(7, edges, ROOM), layout(7, edges, ROOM));
});

test("two clumps lie apart, and what joins them between them", () => {
  const { points } = layout(9, [...clump([0, 2, 4, 6]), ...clump([1, 3, 5, 7]), { a: 0, b: 8, length: 1 }, { a: 8, b: 1, length: 1 }], ROOM);
  const middle = (nodes) => nodes.reduce((sum, node) => sum + points[node].x, 0) / nodes.length;
  const [one, other] = [middle([0, 2, 4, 6]), middle([1, 3, 5, 7])];
  assert.ok(Math.min(one, other) < points[8].x && points[8].x < Math.max(one, other));
});

test("no two nodes overlap, and all lie within the picture", () => {
  const nodes = Array.from({ length: 60 }, (_, nth) => nth);
  const graphs = { clump: clump(nodes), star: nodes.slice(1).map((b) => ({ a: 0, b, length: 1 })), chain: chain(nodes), parts: [...clump([0, 1, 2]), ...chain([3, 4, 5])], none: [] };
  for (const [name, edges] of Object.entries(graphs)) {
    const { points, width, height } = layout(60, edges, ROOM);
    assert.equal(points.length, 60);
    assert.ok(least(points) >= 24, `${name}: ${least(points)}`);
    assert.ok(points.every(({ x, y }) => x >= 19.9 && y >= 19.9 && x <= width - 19.9 && y <= height - 19.9), name);
  }
});

test("one, two and no nodes have places", () => {
  assert.deepEqual(layout(0, [], ROOM).points, []);
  assert.deepEqual(layout(1, [], ROOM), { points: [{ x: 20, y: 20 }], width: 40, height: 40 });
  assert.ok(least(layout(2, [], ROOM).points) >= 32);
});
