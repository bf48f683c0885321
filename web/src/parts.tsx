// Parts that several views share.

import type { ComponentChildren, JSX } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { type Id, Problem } from "./api";
import { line } from "./text";
import { useWords } from "./words";

/** What a question has come to. */
export type Asked<T> =
  | { state: "loading"; before: T | null }
  | { state: "there"; value: T }
  | { state: "failed"; problem: Problem; before: T | null };

/** Asks whenever `name` changes, and drops answers that come too late. */
export function useAsked<T>(name: string | null, question: (signal: AbortSignal) => Promise<T>) {
  const [asked, setAsked] = useState<Asked<T>>({ state: "loading", before: null });
  const [again, setAgain] = useState(0);
  const last = useRef<T | null>(null);
  // Before the paint, so that what is drawn is never the answer to an earlier question without saying so.
  useLayoutEffect(() => {
    if (name === null) return;
    const abort = new AbortController();
    setAsked({ state: "loading", before: last.current });
    question(abort.signal).then(
      (value) => {
        if (abort.signal.aborted) return;
        last.current = value;
        setAsked({ state: "there", value });
      },
      (error: unknown) => {
        if (abort.signal.aborted) return;
        const problem = error instanceof Problem ? error : new Problem("page", 0, String(error));
        setAsked({ state: "failed", problem, before: last.current });
      },
    );
    return () => abort.abort();
  }, [name, again]);
  return { asked, retry: () => setAgain((n) => n + 1) };
}

export function valueOf<T>(asked: Asked<T>): T | null {
  return asked.state === "there" ? asked.value : asked.before;
}

/** What is said while there is no answer, and when there is none. */
export function Waiting<T>({ asked, retry }: { asked: Asked<T>; retry?: () => void }) {
  const { t } = useWords();
  if (asked.state === "there") return null;
  if (asked.state === "failed") return <ProblemBox problem={asked.problem} retry={retry} />;
  if (asked.before !== null) return null;
  return (
    <p class="waiting" role="status">
      <span class="spinner" aria-hidden="true" /> {t("loading")}
    </p>
  );
}

export function ProblemBox({ problem, retry }: { problem: Problem; retry?: (() => void) | undefined }) {
  const { t } = useWords();
  const own =
    problem.kind === "no-answer"
      ? t("problem_no_answer")
      : problem.kind === "body-too-large" || problem.kind === "document-too-large"
        ? t("problem_too_large")
        : problem.kind === "wrong-key"
          ? t("problem_key")
          : null;
  return (
    <div class="box bad" role="alert">
      <strong>{t("problem")}</strong>
      {own && <p>{own}</p>}
      {problem.detail && <p class="said">{line(problem.detail)}</p>}
      {problem.expected && <p class="said">{t("problem_expected", { what: line(problem.expected) })}</p>}
      {retry && (
        <button type="button" class="button" onClick={retry}>
          {t("retry")}
        </button>
      )}
    </div>
  );
}

export function Empty({ children }: { children: ComponentChildren }) {
  return (
    <div class="empty">
      <svg viewBox="0 0 64 48" aria-hidden="true">
        <rect x="6" y="6" width="34" height="34" rx="6" class="sheet" />
        <rect x="24" y="10" width="34" height="34" rx="6" class="sheet second" />
      </svg>
      <p>{children}</p>
    </div>
  );
}

/** An id: on its own line, cut where it is long, and never of another direction than its own. */
export function IdText({ id }: { id: Id }) {
  return (
    <bdi class="id" title={line(id)}>
      {line(id)}
    </bdi>
  );
}

/** A link where an id is the address of a web page: it opens alone, and tells the other page nothing. */
export function OpenLink({ id }: { id: Id }) {
  const { t } = useWords();
  const text = String(id);
  if (!/^https?:\/\/[^\s]+$/i.test(text)) return null;
  return (
    <a class="open" href={text} target="_blank" rel="noopener noreferrer nofollow" aria-label={t("open_link", { id: line(id) })}>
      ↗
    </a>
  );
}

export function Section({
  title,
  about,
  children,
  class: own = "",
  level = 2,
}: {
  title: ComponentChildren;
  about?: ComponentChildren;
  children: ComponentChildren;
  class?: string;
  level?: 2 | 3;
}) {
  const Heading = `h${level}` as "h2" | "h3";
  return (
    <section class={`card ${own}`}>
      <Heading>{title}</Heading>
      {about && <p class="about">{about}</p>}
      {children}
    </section>
  );
}

export function Field({
  label,
  children,
}: {
  label: string;
  children: ComponentChildren;
}) {
  return (
    <label class="field">
      <span>{label}</span>
      {children}
    </label>
  );
}

/** A bar of parts of a whole. */
export function Shares({ parts, label }: { parts: [string, number][]; label: string }) {
  const all = parts.reduce((sum, [, n]) => sum + n, 0) || 1;
  let at = 0;
  const shapes: JSX.Element[] = [];
  for (const [kind, n] of parts) {
    const width = n === 0 ? 0 : Math.max((n / all) * 1000, 4);
    shapes.push(<rect key={kind} class={kind} x={at} y="0" width={width} height="10" />);
    at += width;
  }
  return (
    <svg class="shares" viewBox={`0 0 ${Math.max(at, 1)} 10`} preserveAspectRatio="none" role="img" aria-label={label}>
      {shapes}
    </svg>
  );
}

/** Where a value lies between 0 and the most, with the threshold. */
export function Scale({
  value,
  threshold,
  most,
  isNear,
  label,
}: {
  value: number;
  threshold: number;
  most: number;
  isNear: boolean;
  label: string;
}) {
  const x = (n: number) => Math.min(Math.max(n / most, 0), 1) * 1000;
  return (
    <svg class="scale" viewBox="0 0 1000 34" role="img" aria-label={label} preserveAspectRatio="none">
      <rect class="track" x="0" y="13" width="1000" height="8" rx="4" />
      <rect class={isNear ? "fill near" : "fill far"} x="0" y="13" width={x(value)} height="8" rx="4" />
      <rect class="limit" x={Math.min(x(threshold), 996)} y="2" width="4" height="30" />
    </svg>
  );
}

/** Reads a file as base64, for servers that find out its charset. */
export async function base64(file: Blob): Promise<string> {
  const bytes = new Uint8Array(await file.arrayBuffer());
  const step = 0x8000;
  let binary = "";
  for (let at = 0; at < bytes.length; at += step) {
    binary += String.fromCharCode(...bytes.subarray(at, at + step));
  }
  return btoa(binary);
}

/** Whether a file begins as no text does: with many zeros or other control characters, and not as UTF-16. */
export async function isBinary(file: Blob): Promise<boolean> {
  const head = new Uint8Array(await file.slice(0, 4096).arrayBuffer());
  const hasMark = (head[0] === 0xff && head[1] === 0xfe) || (head[0] === 0xfe && head[1] === 0xff);
  if (hasMark || head.length === 0) return false;
  const zeros = [0, 0];
  let controls = 0;
  for (const [at, byte] of head.entries()) {
    if (byte === 0) zeros[at % 2]! += 1;
    else if (byte < 32 && (byte < 9 || byte > 13)) controls += 1;
  }
  const [even = 0, odd = 0] = zeros;
  // UTF-16 without a mark has the zeros of Latin letters at every other place.
  const isUtf16 = Math.max(even, odd) > head.length / 4 && Math.min(even, odd) < head.length / 50;
  return (!isUtf16 && even + odd > head.length / 25) || controls > head.length / 10;
}
