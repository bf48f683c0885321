// What another threshold would do: a histogram with a line that can be moved, and pairs at the line.

import { useEffect, useState } from "preact/hooks";
import { type Curve, type ToReview, ask, path } from "./api";
import { PairTable } from "./groups";
import { Empty, Section, Waiting, useAsked, valueOf } from "./parts";
import { link, parse } from "./route";
import { grouped, rounded } from "./text";
import { useWords } from "./words";

/** Columns of the histogram of scores. */
const COLUMNS = 40;

type Parameters = Record<string, string>;

/** Milliseconds after which a threshold that stays is in the address: browsers take no more than some addresses a second. */
const SETTLED = 250;

/** How many lie at the threshold or nearer. */
function within(counts: number[], curve: Curve, threshold: number): number {
  const at = Math.round(threshold / curve.step);
  const kept = curve.measure === "score" ? counts.slice(at) : counts.slice(0, at + 1);
  return kept.reduce((sum, n) => sum + n, 0);
}

export function ThresholdView({ parameters, canReview }: { parameters: Parameters; canReview: boolean }) {
  const { t } = useWords();
  const { asked, retry } = useAsked("curve", (signal) => ask<Curve>("/v1/run/curve", { signal }));
  const curve = valueOf(asked);
  return (
    <div class="threshold">
      <h1>{t("threshold_title")}</h1>
      <Waiting asked={asked} retry={retry} />
      {curve && curve.pairs.every((n) => n === 0) && <Empty>{t("border_none")}</Empty>}
      {curve && curve.pairs.some((n) => n > 0) && (
        <Movable curve={curve} first={firstOf(parameters, curve)} canReview={canReview} />
      )}
    </div>
  );
}

/** The threshold of the address, where it has one. */
function firstOf(parameters: Parameters, curve: Curve): number {
  const at = Number(parameters["at"] || NaN);
  return Number.isFinite(at) && at >= 0 ? at : curve.limit;
}

type Column = { from: number; to: number; pairs: number };

/** The bins of the curve as columns that can be seen: from the first that has pairs, or the limit. */
function columns(curve: Curve): Column[] {
  if (curve.measure === "distance") {
    const last = Math.max(curve.limit, curve.pairs.findLastIndex((n) => n > 0));
    const width = Math.max(1, Math.ceil((last + 1) / COLUMNS));
    const count = Math.ceil((last + 1) / width);
    return Array.from({ length: count }, (_, nth) => ({
      from: nth * width,
      to: nth * width + width - 1,
      pairs: curve.pairs.slice(nth * width, (nth + 1) * width).reduce((sum, n) => sum + n, 0),
    }));
  }
  const all = 100;
  const width = Math.round(1 / curve.step / all);
  const lowest = Math.min(
    Math.floor(curve.limit * all + 1e-6),
    Math.floor(Math.max(0, curve.pairs.findIndex((n) => n > 0)) / width),
  );
  const result: Column[] = [];
  for (let nth = lowest; nth < all; nth += 1) {
    const end = nth === all - 1 ? curve.pairs.length : (nth + 1) * width;
    const pairs = curve.pairs.slice(nth * width, end).reduce((sum, n) => sum + n, 0);
    result.push({ from: nth / all, to: (nth + 1) / all, pairs });
  }
  return result;
}

function Movable({ curve, first, canReview }: { curve: Curve; first: number; canReview: boolean }) {
  const { t } = useWords();
  const [threshold, setThreshold] = useState(first);
  // The address keeps the threshold, so that one comes back to it from a comparison.
  useEffect(() => {
    const timer = setTimeout(() => {
      const { view, parameters } = parse(location.hash);
      const at = threshold === curve.limit ? undefined : Number(threshold.toFixed(3));
      if (view === "threshold") history.replaceState(null, "", link(view, { ...parameters, at }));
    }, SETTLED);
    return () => clearTimeout(timer);
  }, [threshold]);
  const isDistance = curve.measure === "distance";
  const shown = (n: number) => (isDistance ? String(n) : rounded(n, 3));
  const bars = columns(curve);
  const low = bars[0]?.from ?? 0;
  const high = isDistance ? (bars.at(-1)?.to ?? 0) : 1;
  const most = Math.max(1, ...bars.map((bar) => bar.pairs));
  const width = 1000 / bars.length;
  const span = high - low || 1;
  // Of distances a column is a number of bits, and the line stands behind the last that counts.
  const x = isDistance ? ((threshold + 1) / (high + 1)) * 1000 : ((threshold - low) / span) * 1000;
  const figures: [number, string][] = [
    [within(curve.pairs, curve, threshold), t("t_pairs")],
    [within(curve.removed, curve, threshold), t("t_removed")],
    [within(curve.clusters, curve, threshold), t("t_groups")],
  ];
  const flag = isDistance ? `--max-distance ${threshold}` : `--min-score ${threshold.toFixed(3).replace(/0+$/, "").replace(/\.$/, "")}`;
  return (
    <>
      <Section title={isDistance ? t("histogram_label_distance") : t("histogram_label")} about={t("threshold_about")}>
        <div class="histogram">
          <svg
            viewBox="0 0 1000 260"
            preserveAspectRatio="none"
            role="img"
            aria-label={isDistance ? t("histogram_label_distance") : t("histogram_label")}
          >
            {bars.map((bar, nth) => {
              const height = bar.pairs === 0 ? 0 : Math.max((bar.pairs / most) * 250, 3);
              const counts = isDistance ? bar.to <= threshold : bar.from >= threshold - 1e-9;
              return (
                <rect
                  key={nth}
                  class={counts ? "counts" : "out"}
                  x={nth * width + 1}
                  y={260 - height}
                  width={Math.max(width - 2, 1)}
                  height={height}
                >
                  <title>{t("histogram_bar", { from: shown(bar.from), to: shown(bar.to), n: grouped(bar.pairs) })}</title>
                </rect>
              );
            })}
            <rect class="limit" x={Math.min(Math.max(x - 2, 0), 996)} y="0" width="4" height="260" />
          </svg>
          <input
            type="range"
            aria-label={t("threshold_value")}
            aria-valuetext={shown(threshold)}
            min={low}
            max={high}
            step={curve.step}
            value={threshold}
            onInput={(event) => setThreshold(Number(event.currentTarget.value))}
          />
          <div class="ends soft">
            <span>{shown(low)}</span>
            <span>{shown(high)}</span>
          </div>
        </div>
        <div class="threshold-line">
          <label class="field inline">
            <span>{t("threshold_value")}</span>
            <input
              type="number"
              min={low}
              max={high}
              step={curve.step}
              value={isDistance ? threshold : Number(threshold.toFixed(3))}
              onInput={(event) => {
                const given = Number(event.currentTarget.value);
                if (event.currentTarget.value !== "" && given >= low && given <= high) setThreshold(given);
              }}
            />
          </label>
          <span class="soft">{t("threshold_own", { n: curve.limit })}</span>
          <button type="button" class="button" onClick={() => setThreshold(curve.limit)}>
            {t("threshold_reset")}
          </button>
        </div>
        <ul class="live" aria-live="polite">
          {figures.map(([n, what]) => (
            <li key={what}>
              <strong>{grouped(n)}</strong> {what}
            </li>
          ))}
        </ul>
        <p class="about">{t("t_estimate")}</p>
        <p>
          {t("command")}: <code>nearsift dedup … {flag}</code>
        </p>
      </Section>
      <AtThreshold threshold={threshold} isDistance={isDistance} canReview={canReview} />
    </>
  );
}

type AtProps = { threshold: number; isDistance: boolean; canReview: boolean };

function AtThreshold({ threshold, isDistance, canReview }: AtProps) {
  const { t } = useWords();
  const at = isDistance ? threshold : Math.round(threshold * 100) / 100;
  const address = path("/v1/run/borderline", { threshold: at, len: 20 });
  const { asked, retry } = useAsked(address, (signal) => ask<ToReview[]>(address, { signal }));
  const pairs = valueOf(asked);
  return (
    <Section title={t("border_pairs")}>
      <Waiting asked={asked} retry={retry} />
      {pairs && pairs.length === 0 && <p>{t("border_none")}</p>}
      {pairs && pairs.length > 0 && (
        <>
          {canReview && (
            <p>
              <a class="button" href={link("review", { at })}>
                {t("review_these")}
              </a>
            </p>
          )}
          <PairTable
            pairs={pairs}
            isDistance={isDistance}
            href={(pair) => link("compare", { a: JSON.stringify(pair.a), b: JSON.stringify(pair.b) })}
          />
        </>
      )}
    </Section>
  );
}
