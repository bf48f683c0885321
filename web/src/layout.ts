// Places of the nodes of a small graph in the plane: the same for the same graph, and such that a chain is seen as a chain.

export type Point = { x: number; y: number };

/** An edge between two nodes, by their numbers, and how long it should be. */
export type Edge = { a: number; b: number; length: number };

/** Rounds of the majorization: what 60 nodes need to come to rest. */
const ROUNDS = 160;
/** Rounds in which nodes that overlap are pushed apart. */
const PUSHES = 60;

/** The lengths of the shortest paths between all nodes; parts that nothing connects stand somewhat farther apart than the longest path. */
function shortestPaths(count: number, edges: Edge[]): number[][] {
  const far = Array.from({ length: count }, (_, a) => Array.from({ length: count }, (_, b) => (a === b ? 0 : Infinity)));
  for (const { a, b, length } of edges) far[a]![b] = far[b]![a] = Math.min(far[a]![b]!, length);
  for (let via = 0; via < count; via += 1) {
    for (let a = 0; a < count; a += 1) {
      for (let b = 0; b < count; b += 1) far[a]![b] = Math.min(far[a]![b]!, far[a]![via]! + far[via]![b]!);
    }
  }
  const longest = Math.max(1, ...far.flat().filter((n) => n < Infinity));
  return far.map((row) => row.map((n) => (n === Infinity ? longest + 1 : n)));
}

/** The nodes by their distance from one at the rim: for a chain, the order in which it goes on. */
function fromTheRim(far: number[][]): number[] {
  const first = far[0] ?? [];
  const rim = first.indexOf(Math.max(...first));
  return far.map((_, nth) => nth).sort((a, b) => far[rim]![a]! - far[rim]![b]! || a - b);
}

/** Puts the nodes on a circle in an order, and moves each to where its distances to the others want it, a fixed number of times. */
function majorized(far: number[][], order: number[]): Point[] {
  const count = far.length;
  const radius = Math.max(...far.flat()) / 2;
  const points: Point[] = Array.from({ length: count }, () => ({ x: 0, y: 0 }));
  for (const [nth, node] of order.entries()) {
    const angle = (2 * Math.PI * nth) / count;
    points[node] = { x: radius * Math.cos(angle), y: radius * Math.sin(angle) };
  }
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const [a, own] of points.entries()) {
      let [x, y, weights] = [0, 0, 0];
      for (const [b, other] of points.entries()) {
        if (a === b) continue;
        const wanted = far[a]![b]!;
        const weight = 1 / (wanted * wanted);
        const [dx, dy] = [own.x - other.x, own.y - other.y];
        const is = Math.hypot(dx, dy) || 1e-9;
        x += weight * (other.x + (wanted * dx) / is);
        y += weight * (other.y + (wanted * dy) / is);
        weights += weight;
      }
      points[a] = { x: x / weights, y: y / weights };
    }
  }
  return points;
}

/** How far the distances of places are from those that are wanted. */
function stress(far: number[][], points: Point[]): number {
  let sum = 0;
  for (const [a, own] of points.entries()) {
    for (const [b, other] of points.entries()) {
      if (b <= a) continue;
      const wanted = far[a]![b]!;
      sum += ((Math.hypot(own.x - other.x, own.y - other.y) - wanted) / wanted) ** 2;
    }
  }
  return sum;
}

/** Turned so that the longest extent is level, with the first node on the left and not below the middle. */
function turned(points: Point[]): Point[] {
  const middle = (of: (point: Point) => number) => points.reduce((sum, point) => sum + of(point), 0) / points.length;
  const [mx, my] = [middle((p) => p.x), middle((p) => p.y)];
  let [xx, xy, yy] = [0, 0, 0];
  for (const { x, y } of points) {
    xx += (x - mx) ** 2;
    xy += (x - mx) * (y - my);
    yy += (y - my) ** 2;
  }
  const angle = Math.atan2(2 * xy, xx - yy) / 2;
  const [cos, sin] = [Math.cos(angle), Math.sin(angle)];
  const level = points.map(({ x, y }) => ({ x: (x - mx) * cos + (y - my) * sin, y: (y - my) * cos - (x - mx) * sin }));
  const [flipX, flipY] = [level[0]!.x > 0 ? -1 : 1, level[0]!.y > 0 ? -1 : 1];
  return level.map(({ x, y }) => ({ x: x * flipX, y: y * flipY }));
}

/** Pushes nodes apart that are nearer than `gap`, each pair by half of what lacks. */
function apart(points: Point[], gap: number): void {
  for (let round = 0; round < PUSHES; round += 1) {
    let isFree = true;
    for (const [a, own] of points.entries()) {
      for (let b = a + 1; b < points.length; b += 1) {
        const other = points[b]!;
        const [dx, dy] = [other.x - own.x, other.y - own.y];
        const is = Math.hypot(dx, dy);
        if (is >= gap - 0.01) continue;
        isFree = false;
        // Two at one place part in a direction of their own.
        const [ux, uy] = is > 1e-6 ? [dx / is, dy / is] : [Math.cos(a + b), Math.sin(a + b)];
        const half = (gap - is) / 2;
        own.x -= ux * half;
        own.y -= uy * half;
        other.x += ux * half;
        other.y += uy * half;
      }
    }
    if (isFree) return;
  }
}

export type Layout = { points: Point[]; width: number; height: number };

/**
 * Places of `count` nodes, in pixels: about `wide` wide, `margin` from the rim, and at least `gap` from each other. Edges of length 1 are
 * at most `longest` long.
 */
export function layout(
  count: number,
  edges: Edge[],
  { wide, gap, margin, longest }: { wide: number; gap: number; margin: number; longest: number },
): Layout {
  if (count === 0) return { points: [], width: 0, height: 0 };
  if (count === 1) return { points: [{ x: margin, y: margin }], width: 2 * margin, height: 2 * margin };
  const far = shortestPaths(count, edges);
  const starts = [far.map((_, nth) => nth), fromTheRim(far)].map((order) => majorized(far, order));
  const best = starts.reduce((one, other) => (stress(far, other) < stress(far, one) - 1e-9 ? other : one));
  const points = turned(best);
  const extent = Math.max(...points.map((p) => p.x)) - Math.min(...points.map((p) => p.x)) || 1;
  const scale = Math.min((wide - 2 * margin) / extent, longest);
  for (const point of points) {
    point.x *= scale;
    point.y *= scale;
  }
  apart(points, gap);
  const [left, top] = [Math.min(...points.map((p) => p.x)), Math.min(...points.map((p) => p.y))];
  const round = (n: number) => Math.round(n * 10) / 10;
  const placed = points.map(({ x, y }) => ({ x: round(x - left + margin), y: round(y - top + margin) }));
  return {
    points: placed,
    width: Math.ceil(Math.max(...placed.map((p) => p.x)) + margin),
    height: Math.ceil(Math.max(...placed.map((p) => p.y)) + margin),
  };
}
