// The service over time: documents, memory, rates and latencies, snapshots and health.

import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import { Problem, ask, askText } from "./api";
import { type Collection, CollectionField, routeOf } from "./collections";
import { ProblemBox, Section } from "./parts";
import { bytes, clock, grouped, line, rounded, time } from "./text";
import { useWords } from "./words";

/** Milliseconds between two points, and the points that are kept: twenty minutes. */
const EVERY = 2000;
const POINTS = 600;

type Listed = { collections: Collection[] };

/** Counters by name and labels. */
type Samples = Map<string, { labels: Record<string, string>; value: number }[]>;

/** The lines of an OpenMetrics text. */
export function samples(text: string): Samples {
  const all: Samples = new Map();
  for (const row of text.split("\n")) {
    const found = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? ([^ ]+)/.exec(row);
    if (!found || row.startsWith("#")) continue;
    const labels: Record<string, string> = {};
    for (const [, name, value] of (found[2] ?? "").matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)) {
      if (name) labels[name] = (value ?? "").replace(/\\(.)/g, "$1");
    }
    const name = found[1] ?? "";
    const list = all.get(name) ?? [];
    list.push({ labels, value: Number(found[3]) });
    all.set(name, list);
  }
  return all;
}

function sum(all: Samples, name: string): number {
  return (all.get(name) ?? []).reduce((sum, one) => sum + one.value, 0);
}

type Point = { at: number; requests: number; seconds: number; documents: number; memory: number };

type SlowRequest = {
  method: string;
  route: string;
  collection?: string;
  status: number;
  milliseconds: number;
  body_bytes?: number;
  answered: string;
};

type State = { collections: Collection[]; isReady: boolean; said: string; metrics: Samples; slow: SlowRequest[] };

export function OperateView() {
  const { t } = useWords();
  const [state, setState] = useState<State | null>(null);
  const [points, setPoints] = useState<Point[]>([]);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [name, setName] = useState("default");
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const abort = new AbortController();
    const look = async () => {
      try {
        const { signal } = abort;
        const ready = ask("/readyz", { signal }).then(
          () => "",
          (error: unknown) => {
            if (error instanceof Problem && error.status === 503) return error.detail;
            throw error;
          },
        );
        const [said, listed, text, slow] = await Promise.all([
          ready,
          ask<Listed>("/v1/collections", { signal }),
          askText("/metrics", { signal }),
          ask<{ requests: SlowRequest[] }>("/slow-requests", { signal }),
        ]);
        const collections = listed.collections.filter((one) => "documents" in one);
        const metrics = samples(text);
        setState({ collections, isReady: said === "", said, metrics, slow: slow.requests });
        setProblem(null);
        const point: Point = {
          at: Date.now() / 1000,
          requests: sum(metrics, "nearsift_requests_total"),
          seconds: sum(metrics, "nearsift_request_duration_seconds_sum"),
          documents: collections.reduce((sum, one) => sum + one.documents, 0),
          memory: collections.reduce((sum, one) => sum + one.memory_bytes, 0),
        };
        setPoints((before) => [...before.slice(1 - POINTS), point]);
      } catch (error) {
        if (abort.signal.aborted) return;
        setProblem(error instanceof Problem ? error : new Problem("page", 0, String(error)));
      }
      timer = setTimeout(() => void look(), EVERY);
    };
    void look();
    return () => {
      abort.abort();
      clearTimeout(timer);
    };
  }, []);
  return (
    <div class="operate">
      <h1>{t("operate_title")}</h1>
      {problem && <ProblemBox problem={problem} />}
      {!state && !problem && (
        <p class="waiting" role="status">
          {t("loading")}
        </p>
      )}
      {state && (
        <>
          <p class={`health ${problem ? "bad" : state.isReady ? "good" : "bad"}`} role="status">
            <span class="lamp" aria-hidden="true" />
            {problem ? t("no_service") : state.isReady ? t("ready") : t("not_ready")} {line(state.said)}
          </p>
          <CollectionTable collections={state.collections} />
          <OverTime points={points} />
          <div class="two">
            <RouteTable metrics={state.metrics} />
            <ProblemTable metrics={state.metrics} />
          </div>
          <SlowTable requests={state.slow} />
          <CollectionField collections={state.collections} name={name} onName={setName} />
          <Snapshots key={name} collection={name} />
        </>
      )}
    </div>
  );
}

function CollectionTable({ collections }: { collections: Collection[] }) {
  const { t } = useWords();
  return (
    <Section title={t("collections")}>
      <div class="scroll" tabIndex={0} role="group" aria-label={t("collections")}>
        <table>
          <thead>
            <tr>
              <th scope="col">{t("name")}</th>
              <th scope="col" class="number">
                {t("documents")}
              </th>
              <th scope="col" class="number">
                {t("segments")}
              </th>
              <th scope="col" class="number">
                {t("memory")}
              </th>
              <th scope="col" class="number">
                {t("disk")}
              </th>
              <th scope="col">{t("recipe")}</th>
            </tr>
          </thead>
          <tbody>
            {collections.map((one) => (
              <tr key={one.name}>
                <th scope="row">{one.name}</th>
                <td class="number">{grouped(one.documents)}</td>
                <td class="number">{grouped(one.segments)}</td>
                <td class="number">{bytes(one.memory_bytes)}</td>
                <td class="number">{bytes(one.disk_bytes + one.log_bytes)}</td>
                <td>
                  <code>{one.recipe}</code>
                  {one.failed && <p class="said">{line(one.failed)}</p>}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Section>
  );
}

function OverTime({ points }: { points: Point[] }) {
  const { t } = useWords();
  const at = points.map((point) => point.at);
  const rate = points.map((point, nth) => {
    const before = points[nth - 1];
    // A service that was started again counts from 0.
    if (!before || point.requests < before.requests) return null;
    return (point.requests - before.requests) / (point.at - before.at);
  });
  const latency = points.map((point, nth) => {
    const before = points[nth - 1];
    if (!before || point.requests <= before.requests) return null;
    return ((point.seconds - before.seconds) / (point.requests - before.requests)) * 1000;
  });
  const last = rate.at(-1);
  return (
    <Section title={t("over_time")} about={t("over_time_about")}>
      {points.length < 2 ? (
        <p class="soft">{t("waiting_points")}</p>
      ) : (
        <p>
          {t("requests_rate")}: <strong>{last == null ? "·" : rounded(last, 1)}</strong>
        </p>
      )}
      <div class="charts">
        <Chart title={t("requests_rate")} at={at} values={rate} />
        <Chart title={t("latency")} at={at} values={latency} />
        <Chart title={t("documents")} at={at} values={points.map((point) => point.documents)} />
        <Chart title={`${t("memory")}, MB`} at={at} values={points.map((point) => point.memory / 1e6)} />
      </div>
    </Section>
  );
}

function Chart({ title, at, values }: { title: string; at: number[]; values: (number | null)[] }) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  useEffect(() => {
    const own = place.current;
    if (!own) return;
    const colour = (name: string) => getComputedStyle(own).getPropertyValue(name).trim();
    const axis = () => ({
      stroke: () => colour("--soft"),
      grid: { stroke: () => colour("--line"), width: 1 },
      ticks: { show: false },
      font: "12px system-ui, sans-serif",
    });
    const made = new uPlot(
      {
        width: Math.max(own.clientWidth, 200),
        height: 170,
        legend: { show: false },
        cursor: { show: false },
        scales: { y: { range: (_, low, high) => [Math.min(0, low ?? 0), Math.max((high ?? 0) * 1.1, 1)] } },
        axes: [{ ...axis(), values: (_, at) => at.map(clock), space: 90 }, { ...axis(), size: 56 }],
        series: [{}, { stroke: () => colour("--accent"), width: 2, points: { show: false }, spanGaps: true }],
      },
      [at, values],
      own,
    );
    plot.current = made;
    const observer = new ResizeObserver(() => made.setSize({ width: Math.max(own.clientWidth, 200), height: 170 }));
    observer.observe(own);
    return () => {
      observer.disconnect();
      made.destroy();
    };
  }, []);
  useEffect(() => plot.current?.setData([at, values]), [at.length, values]);
  const last = values.findLast((value) => value !== null);
  return (
    <figure class="chart">
      <figcaption>{title}</figcaption>
      <div ref={place} role="img" aria-label={`${title}: ${last == null ? "·" : rounded(last, 1)}`} />
    </figure>
  );
}

function RouteTable({ metrics }: { metrics: Samples }) {
  const { t } = useWords();
  const routes = new Map<string, { count: number; seconds: number }>();
  const add = (name: string, field: "count" | "seconds") => {
    for (const { labels, value } of metrics.get(name) ?? []) {
      const route = `${labels["method"] ?? ""} ${labels["route"] ?? ""}`.trim();
      const own = routes.get(route) ?? { count: 0, seconds: 0 };
      own[field] += value;
      routes.set(route, own);
    }
  };
  add("nearsift_request_duration_seconds_count", "count");
  add("nearsift_request_duration_seconds_sum", "seconds");
  const rows = [...routes].filter(([, own]) => own.count > 0);
  rows.sort(([, a], [, b]) => b.seconds / b.count - a.seconds / a.count);
  return (
    <Section title={t("routes_slow")}>
      <div class="scroll" tabIndex={0} role="group" aria-label={t("routes_slow")}>
        <table>
          <thead>
            <tr>
              <th scope="col">{t("route")}</th>
              <th scope="col" class="number">
                {t("count")}
              </th>
              <th scope="col" class="number">
                {t("mean_ms")}
              </th>
            </tr>
          </thead>
          <tbody>
            {rows.slice(0, 12).map(([route, own]) => (
              <tr key={route}>
                <th scope="row">
                  <code>{route}</code>
                </th>
                <td class="number">{grouped(own.count)}</td>
                <td class="number">{rounded((own.seconds / own.count) * 1000, 2)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Section>
  );
}

/** The slowest requests, one by one. */
function SlowTable({ requests }: { requests: SlowRequest[] }) {
  const { t } = useWords();
  return (
    <Section title={t("slow_requests")} about={t("slow_about")}>
      {requests.length === 0 ? (
        <p class="soft">{t("slow_none")}</p>
      ) : (
        <div class="scroll slow" tabIndex={0} role="group" aria-label={t("slow_requests")}>
          <table>
            <thead>
              <tr>
                <th scope="col">{t("route")}</th>
                <th scope="col" class="number">
                  {t("took_ms")}
                </th>
                <th scope="col" class="number">
                  {t("status")}
                </th>
                <th scope="col" class="number">
                  {t("body_size")}
                </th>
                <th scope="col">{t("collection")}</th>
                <th scope="col">{t("answered")}</th>
              </tr>
            </thead>
            <tbody>
              {requests.map((one, nth) => (
                <tr key={nth}>
                  <th scope="row">
                    <code>
                      {one.method} {one.route}
                    </code>
                  </th>
                  <td class="number">{rounded(one.milliseconds, 1)}</td>
                  <td class="number">{one.status}</td>
                  <td class="number">{one.body_bytes === undefined ? "·" : bytes(one.body_bytes)}</td>
                  <td>{one.collection ?? "·"}</td>
                  <td>{time(one.answered)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </Section>
  );
}

function ProblemTable({ metrics }: { metrics: Samples }) {
  const { t } = useWords();
  const rows = (metrics.get("nearsift_problems_total") ?? []).filter((one) => one.value > 0);
  return (
    <Section title={t("problems_counted")}>
      {rows.length === 0 ? (
        <p class="soft">{t("problems_none")}</p>
      ) : (
        <table>
          <tbody>
            {rows.map(({ labels, value }) => (
              <tr key={JSON.stringify(labels)}>
                <th scope="row">
                  <code>{Object.values(labels).join(" ")}</code>
                </th>
                <td class="number">{grouped(value)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </Section>
  );
}

type SnapshotList = { snapshots: string[] };

function Snapshots({ collection }: { collection: string }) {
  const { t } = useWords();
  const [list, setList] = useState<string[] | null>(null);
  const [taken, setTaken] = useState("");
  const [problem, setProblem] = useState<Problem | null>(null);
  const [isBusy, setIsBusy] = useState(false);
  const route = routeOf(collection, "snapshots");
  const failed = (error: unknown) =>
    setProblem(error instanceof Problem ? error : new Problem("page", 0, String(error)));
  const look = () =>
    ask<SnapshotList>(route).then((found) => setList(found.snapshots), failed);
  useEffect(() => void look(), []);
  if (problem?.kind === "scope-too-small") {
    return (
      <Section title={t("snapshots")}>
        <p class="soft">{t("snapshot_scope")}</p>
      </Section>
    );
  }
  return (
    <Section title={t("snapshots")}>
      {problem && <ProblemBox problem={problem} retry={() => void look()} />}
      {list && list.length === 0 && <p class="soft">{t("snapshots_none")}</p>}
      {list && list.length > 0 && (
        <ul class="plain-list">
          {list.map((name) => (
            <li key={name}>
              <code>{name}</code>
            </li>
          ))}
        </ul>
      )}
      <p role="status">{taken && t("snapshot_taken", { name: taken })}</p>
      <button
        type="button"
        class="button main"
        disabled={isBusy}
        onClick={async () => {
          setIsBusy(true);
          try {
            const made = await ask<{ snapshot: string }>(route, { body: {} });
            setTaken(made.snapshot);
            setProblem(null);
            await look();
          } catch (error) {
            failed(error);
          }
          setIsBusy(false);
        }}
      >
        {t("snapshot_take")}
      </button>
    </Section>
  );
}
