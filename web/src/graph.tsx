// The graph of a group: its documents, and the pairs that hold them together.

import { useMemo, useRef, useState } from "preact/hooks";
import type { Cluster, Id, Pair } from "./api";
import { layout } from "./layout";
import { link } from "./route";
import { grouped, line, rounded } from "./text";
import { type Words, useWords } from "./words";

/** A larger group has a table of its pairs and no graph: the lines would hide each other. */
export const GRAPH = 60;
/** Graphs of fewer pairs have the scores beside their lines. */
const WRITTEN = 12;
/** Pairs for each document from which on lines are thin: thick ones would make one spot. */
const DENSE = 3;
/** Half the size of a document, in pixels: 24 px are what a finger hits. */
const HALF = 12;

/** How near is near enough in the run: the least score, or the largest distance. */
export type Limit = { isDistance: boolean; limit: number };

/** A line of the graph, between two documents by their place in the group. */
type Line = { a: number; b: number; pair: Pair | null };

/** How near a pair is: 0 at the limit of the run, 1 for the same. */
function nearness(pair: Pair | null, { isDistance, limit }: Limit): number {
  if (!pair) return 1;
  const share = isDistance ? 1 - (pair.distance ?? 0) / (limit + 1) : ((pair.score ?? limit) - limit) / (1 - limit || 1);
  return Math.min(Math.max(share, 0), 1);
}

function shown(pair: Pair | null, isDistance: boolean, digits: number): string {
  if (!pair) return "=";
  if (isDistance && pair.distance !== undefined) return String(pair.distance);
  return pair.score === undefined ? "" : rounded(pair.score, digits);
}

/** The pairs of the run, and each document of the same text as another with that one. */
function lines(cluster: Cluster, pairs: Pair[]): Line[] {
  const places = new Map<Id, number>(cluster.members.map((member, nth) => [member.id, nth]));
  const all: Line[] = [];
  const has = new Set<string>();
  const add = (one: number | undefined, other: number | undefined, pair: Pair | null) => {
    if (one === undefined || other === undefined || one === other) return;
    const [a, b] = [Math.min(one, other), Math.max(one, other)];
    if (has.has(`${a} ${b}`)) return;
    has.add(`${a} ${b}`);
    all.push({ a, b, pair });
  };
  // The run has pairs of equal texts as well: they are shown as what they are.
  for (const [nth, { removed }] of cluster.members.entries()) {
    const isSame = removed?.reason.startsWith("exact") || removed?.reason.startsWith("same");
    if (isSame && removed?.representative !== undefined) add(nth, places.get(removed.representative), null);
  }
  for (const pair of pairs) add(places.get(pair.a), places.get(pair.b), pair);
  return all;
}

/** What is said of a document or a line, as its name and below the graph. */
function nameOf(cluster: Cluster, node: number, { t }: Words): string {
  const member = cluster.members[node]!;
  const state =
    member.record === cluster.representative_record ? t("graph_representative") : member.removed ? t("graph_gone") : t("stays");
  return t("graph_node", { n: grouped(node + 1), id: line(member.id), state });
}

function nameOfLine(cluster: Cluster, { a, b, pair }: Line, isDistance: boolean, { t }: Words): string {
  const ids = { a: line(cluster.members[a]!.id), b: line(cluster.members[b]!.id) };
  if (!pair) return t("graph_same", ids);
  return t(isDistance ? "graph_edge_distance" : "graph_edge", { ...ids, n: shown(pair, isDistance, 3) });
}

type Props = { cluster: Cluster; pairs: Pair[]; limit: Limit; parameters: Record<string, string>; href: (a: number, b: number) => string };

export function Graph({ cluster, pairs, limit, parameters, href }: Props) {
  const words = useWords();
  const { t } = words;
  const { isDistance } = limit;
  const { edges, drawn } = useMemo(() => {
    const edges = lines(cluster, pairs);
    const lengths = edges.map(({ a, b, pair }) => ({ a, b, length: 1.4 - 0.4 * nearness(pair, limit) }));
    const size = cluster.members.length;
    const wide = size <= 12 ? 310 : 560;
    return { edges, drawn: layout(size, lengths, { wide, gap: 2 * HALF + 8, margin: HALF + 8, longest: 80 }) };
  }, [cluster, pairs, isDistance, limit.limit]);
  const { points, width, height } = drawn;
  const nodes = cluster.members.length;
  // One of all is reached by the tabulator, and the arrows lead from there: nodes are 0 to n - 1, and the lines follow.
  const [at, setAt] = useState(0);
  const [corner, setCorner] = useState(0);
  const [pointed, setPointed] = useState<number | null>(null);
  const items = useRef<((Element & HTMLOrSVGElement) | null)[]>([]);
  const linesOf = (node: number) => edges.flatMap(({ a, b }, nth) => (a === node || b === node ? [nodes + nth] : []));
  const focus = (item: number, node: number) => {
    setAt(item);
    setCorner(node);
    items.current[item]?.focus();
  };
  const onKey = (event: KeyboardEvent) => {
    const steps: Record<string, [string, number]> = {
      ArrowRight: ["node", 1],
      ArrowLeft: ["node", -1],
      ArrowDown: ["line", 1],
      ArrowUp: ["line", -1],
    };
    const [of, step] = steps[event.key] ?? [];
    if (step === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    if (of === "node") {
      const next = (corner + step + nodes) % nodes;
      return focus(next, next);
    }
    const own = linesOf(corner);
    if (own.length === 0) return;
    const place = own.indexOf(at);
    const next = place < 0 ? (step > 0 ? 0 : own.length - 1) : (place + step + own.length) % own.length;
    focus(own[next]!, corner);
  };
  const said = pointed ?? at;
  const isOn = (nth: number) => pointed !== null && (pointed === nodes + nth || edges[nth]!.a === pointed || edges[nth]!.b === pointed);
  const tab = (item: number, node: number) => ({
    ref: (element: (Element & HTMLOrSVGElement) | null) => void (items.current[item] = element),
    tabIndex: item === at ? 0 : -1,
    onFocus: () => {
      setAt(item);
      setCorner(node);
      setPointed(item);
    },
    onBlur: () => setPointed(null),
    onMouseEnter: () => setPointed(item),
    onMouseLeave: () => setPointed(null),
  });
  return (
    <div class="graph">
      <h3 id="graph-title">{t("graph")}</h3>
      <p class="about">{t("graph_about")}</p>
      <div class="scroll">
        <svg
          role="group"
          aria-labelledby="graph-title"
          aria-describedby="graph-keys"
          viewBox={`0 0 ${width} ${height}`}
          width={width}
          height={height}
          class={`${nodes <= 12 ? "small" : ""} ${edges.length > DENSE * nodes ? "dense" : ""}`}
          onKeyDown={onKey}
        >
          {edges.map((edge, nth) => {
            const { a, b, pair } = edge;
            const [from, to] = [points[a]!, points[b]!];
            const ends = { x1: from.x, y1: from.y, x2: to.x, y2: to.y };
            const strength = pair ? `e${Math.min(Math.floor(nearness(pair, limit) * 4), 3)}` : "same";
            const name = nameOfLine(cluster, edge, isDistance, words);
            return (
              <a key={nth} href={href(a, b)} class={`edge ${strength} ${isOn(nth) ? "on" : ""}`} aria-label={name} {...tab(nodes + nth, a)}>
                <line class="reach" {...ends} />
                <line class="stroke" {...ends} />
                {!pair && <line class="within" {...ends} />}
              </a>
            );
          })}
          {edges.length <= WRITTEN && (
            <g class="written" aria-hidden="true">
              {edges.map(({ a, b, pair }, nth) => (
                <text key={nth} x={(points[a]!.x + points[b]!.x) / 2} y={(points[a]!.y + points[b]!.y) / 2}>
                  {shown(pair, isDistance, 2)}
                </text>
              ))}
            </g>
          )}
          {points.map((point, node) => {
            const name = nameOf(cluster, node, words);
            const member = cluster.members[node]!;
            const wanted = JSON.stringify(member.id);
            return (
              <a
                key={node}
                href={link("groups", { ...parameters, member: wanted })}
                class={`node ${member.removed ? "gone" : "stays"} ${wanted === parameters["member"] ? "wanted" : ""}`}
                aria-label={name}
                {...tab(node, node)}
              >
                <Shape x={point.x} y={point.y} isGone={member.removed !== undefined} isFirst={member.record === cluster.representative_record} />
              </a>
            );
          })}
          <g aria-hidden="true">
            {points.map((point, node) => (
              <text key={node} x={point.x} y={point.y}>
                {node + 1}
              </text>
            ))}
          </g>
        </svg>
      </div>
      <p class="graph-said">
        <bdi>{said < nodes ? nameOf(cluster, said, words) : edges[said - nodes] ? nameOfLine(cluster, edges[said - nodes]!, isDistance, words) : ""}</bdi>
      </p>
      <Legend hasSame={edges.some(({ pair }) => !pair)} isDistance={isDistance} />
      <p class="visually-hidden" id="graph-keys">
        {t("graph_keys")}
      </p>
    </div>
  );
}

/** What stays is round, what goes has corners; the one in whose place the others go has a second ring. */
function Shape({ x, y, isGone, isFirst }: { x: number; y: number; isGone: boolean; isFirst: boolean }) {
  return (
    <>
      {isFirst && <circle class="ring" cx={x} cy={y} r={HALF + 4} />}
      {isGone ? (
        <rect class="shape" x={x - HALF + 1} y={y - HALF + 1} width={2 * HALF - 2} height={2 * HALF - 2} rx="2" />
      ) : (
        <circle class="shape" cx={x} cy={y} r={HALF} />
      )}
    </>
  );
}

function Legend({ hasSame, isDistance }: { hasSame: boolean; isDistance: boolean }) {
  const { t } = useWords();
  const sign = (what: preact.ComponentChildren, of: string) => (
    <svg viewBox="0 0 34 34" width="22" height="22" class={of} aria-hidden="true">
      {what}
    </svg>
  );
  const stroke = (strength: string, isSame = false) => (
    <svg viewBox="0 0 34 12" width="34" height="12" class={`edge ${strength}`} aria-hidden="true">
      <line class="stroke" x1="0" y1="6" x2="34" y2="6" />
      {isSame && <line class="within" x1="0" y1="6" x2="34" y2="6" />}
    </svg>
  );
  return (
    <ul class="graph-legend">
      <li>
        {sign(<Shape x={17} y={17} isGone={false} isFirst={true} />, "node stays")} {t("graph_representative")}
      </li>
      <li>
        {sign(<Shape x={17} y={17} isGone={false} isFirst={false} />, "node stays")} {t("stays")}
      </li>
      <li>
        {sign(<Shape x={17} y={17} isGone={true} isFirst={false} />, "node gone")} {t("graph_gone")}
      </li>
      <li>
        {stroke("e0")} {t(isDistance ? "graph_weak_distance" : "graph_weak")}
      </li>
      <li>
        {stroke("e3")} {t("graph_strong")}
      </li>
      {hasSame && (
        <li>
          {stroke("same", true)} {t("same_text")}
        </li>
      )}
    </ul>
  );
}
