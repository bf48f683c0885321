// Two documents side by side: the decision in a sentence, what differs, and the figures with what they mean.

import { useEffect, useRef, useState } from "preact/hooks";
import {
  type Compared,
  type Comparison,
  type Id,
  type Judgement,
  type Label,
  type Measures,
  type Piece,
  Problem,
  type Side,
  ask,
  path,
} from "./api";
import { PairTable } from "./groups";
import type { Key } from "./messages";
import { Empty, Field, IdText, ProblemBox, Scale, Section, Waiting, base64, isBinary, useAsked, valueOf } from "./parts";
import { link } from "./route";
import { bytes, grouped, line, rounded, visible } from "./text";
import { useWords } from "./words";

/** The largest file that is sent, in bytes. */
const LARGEST = 32 << 20;
/** Longer stretches that both texts have are folded to this many characters at either end. */
const AROUND = 160;
/** Pieces that are shown at first: more make a page that no browser scrolls. */
const PIECES = 4000;

type Parameters = Record<string, string>;

function parsedId(json: string | undefined): Id | null {
  if (!json) return null;
  try {
    const id: unknown = JSON.parse(json);
    return typeof id === "string" || typeof id === "number" ? id : null;
  } catch {
    return null;
  }
}

/** Two documents of a run, by their ids, or any two texts as the run would compare them. */
export function RunCompare({ parameters, canReview }: { parameters: Parameters; canReview: boolean }) {
  const { t } = useWords();
  const a = parsedId(parameters["a"]);
  const b = parsedId(parameters["b"]);
  const isByText = parameters["by"] === "text";
  return (
    <div class="compare">
      <h1>{t("compare")}</h1>
      <div class="tabs" role="group" aria-label={t("choose_two")}>
        <a href={link("compare", { ...parameters, by: "" })} aria-current={isByText ? undefined : "true"}>
          {t("by_id")}
        </a>
        <a href={link("compare", { ...parameters, by: "text" })} aria-current={isByText ? "true" : undefined}>
          {t("by_text")}
        </a>
      </div>
      {isByText ? (
        <TextPair
          compare={(one, other) => ask<Comparison>("/v1/run/compare", { body: { a: sentToRun(one), b: sentToRun(other) } })}
        />
      ) : (
        <>
          <IdPair key={`${parameters["a"]} ${parameters["b"]}`} a={a} b={b} />
          {a !== null && b !== null ? (
            <OfRun a={a} b={b} parameters={parameters} canReview={canReview} />
          ) : (
            <Empty>{t("empty_compare")}</Empty>
          )}
        </>
      )}
    </div>
  );
}

/** Any two texts, as the collection of a service compares them. */
export function ServiceCompare() {
  const { t } = useWords();
  return (
    <div class="compare">
      <h1>{t("compare")}</h1>
      <TextPair
        compare={async (one, other) => {
          const body = { a: sentToService(one), b: sentToService(other), differences: true };
          return ofService(await ask<OfService>("/v1/compare", { body }));
        }}
      />
    </div>
  );
}

/** The form in which a service answers. */
type OfService = {
  near_duplicates: boolean | null;
  same_text?: boolean;
  distance: number | null;
  score?: number;
  verified?: Measures;
  features?: { features_a: number; features_b: number; shared: number };
  a: Side & { text?: { characters?: number } };
  b: Side & { text?: { characters?: number } };
  recipe: string;
  rarity?: string;
  min_score?: number;
  max_distance?: number;
  differences?: Piece[];
  differences_truncated?: boolean;
};

function ofService(own: OfService): Comparison {
  const side = (one: OfService["a"]): Side => ({ ...one, characters: one.text?.characters ?? 0 });
  return {
    near_duplicates: own.near_duplicates,
    same_text: own.same_text ?? null,
    score: own.verified?.score ?? own.score ?? null,
    min_score: own.min_score ?? null,
    max_distance: own.max_distance ?? null,
    distance: own.distance,
    sketch_score: own.score ?? null,
    verified: own.verified ?? null,
    recipe: own.recipe,
    a: side(own.a),
    b: side(own.b),
    differences: own.differences ?? [],
    differences_truncated: own.differences_truncated ?? false,
  };
}

/** What a user gives of a document. */
export type Given = { text: string; file: { name: string; size: number; base64: string } | null };

export const NOTHING: Given = { text: "", file: null };

function sentToRun(given: Given): unknown {
  return given.file ? { name: given.file.name, bytes_base64: given.file.base64 } : { text: given.text };
}

/** A web page is sent as its bytes, and so is a text in another charset than UTF-8: the service finds out which. */
export function sentToService(given: Given): Record<string, unknown> {
  if (!given.file) return { text: given.text };
  const { name, base64 } = given.file;
  const bytes = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
  const head = new TextDecoder().decode(bytes.subarray(0, 1024)).trimStart().toLowerCase();
  const isPage = /\.x?html?$/i.test(name) || head.startsWith("<!doctype html") || head.startsWith("<html");
  if (!isPage) {
    try {
      return { text: new TextDecoder("utf-8", { fatal: true }).decode(bytes) };
    } catch {
      // Another charset.
    }
  }
  return { html_base64: base64 };
}

export function isGiven(given: Given): boolean {
  return given.file !== null || given.text.trim() !== "";
}

function IdPair({ a, b }: { a: Id | null; b: Id | null }) {
  const { t } = useWords();
  const first = useRef<HTMLInputElement>(null);
  const second = useRef<HTMLInputElement>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  // What is typed is looked for as a text and as a number: the run knows which it is.
  const found = async (typed: string): Promise<[Id, number]> => {
    type Found = { id: Id; record: number }[];
    const all = await ask<Found>(path("/v1/run/search", { q: typed }));
    const exact = all.find((one) => String(one.id) === typed);
    if (exact) return [exact.id, exact.record];
    throw new Problem("no-document", 404, `${t("search_none")} ${typed}`);
  };
  return (
    <form
      class="id-pair"
      onSubmit={async (event) => {
        event.preventDefault();
        try {
          const one = await found(first.current?.value.trim() ?? "");
          const other = await found(second.current?.value.trim() ?? "");
          setProblem(null);
          location.hash = link("compare", {
            a: JSON.stringify(one[0]),
            record_a: one[1],
            b: JSON.stringify(other[0]),
            record_b: other[1],
          });
        } catch (error) {
          setProblem(error instanceof Problem ? error : new Problem("page", 0, String(error)));
        }
      }}
    >
      <Field label={t("first_id")}>
        <input ref={first} required defaultValue={a === null ? "" : String(a)} />
      </Field>
      <Field label={t("second_id")}>
        <input ref={second} required defaultValue={b === null ? "" : String(b)} />
      </Field>
      <button class="button main" type="submit">
        {t("do_compare")}
      </button>
      {problem && <ProblemBox problem={problem} />}
    </form>
  );
}

export function OfRun({
  a,
  b,
  parameters,
  canReview,
  onJudged,
}: {
  a: Id;
  b: Id;
  parameters: Parameters;
  canReview: boolean;
  onJudged?: (label: Label) => void;
}) {
  const { t } = useWords();
  const address = path("/v1/run/compare", {
    a: JSON.stringify(a),
    b: JSON.stringify(b),
    record_a: parameters["record_a"],
    record_b: parameters["record_b"],
  });
  const { asked, retry } = useAsked(address, (signal) => ask<Compared>(address, { signal }));
  const compared = valueOf(asked);
  useEffect(() => {
    if (compared?.comparison !== null || compared.texts.state !== "reading") return;
    const timer = setTimeout(retry, 1500);
    return () => clearTimeout(timer);
  }, [compared]);
  const own = compared && compared.a.id === a && compared.b.id === b ? compared : null;
  return (
    <>
      <Waiting asked={asked} retry={retry} />
      {own && (
        <>
          {own.comparison ? (
            <ComparisonView
              comparison={own.comparison}
              names={[own.a.id, own.b.id]}
              note={<p>{t(own.between.verdict)}</p>}
            />
          ) : (
            <Section title={t("figures")}>
              <p>{t(own.between.verdict)}</p>
              <p class="notice" role="status">
                {own.texts.state === "absent" ? t("texts_missing") : t("loading")}
              </p>
              {own.between.pairs.length > 0 && (
                <PairTable
                  pairs={own.between.pairs}
                  isDistance={own.between.pairs.some((pair) => pair.score === undefined)}
                  href={() => link("compare", parameters)}
                />
              )}
            </Section>
          )}
          {canReview && !onJudged && <JudgeHere a={a} b={b} before={own.judgement} />}
        </>
      )}
    </>
  );
}

const LABELS: [Label, Key, string][] = [
  ["POS", "judge_same", "1"],
  ["NEG", "judge_different", "2"],
  ["GREY", "judge_unsure", "3"],
];

export function labelKey(label: Label): Key {
  return LABELS.find(([own]) => own === label)?.[1] ?? "judge_unsure";
}

export function JudgeButtons({ onJudge, chosen }: { onJudge: (label: Label) => void; chosen: Label | null }) {
  const { t } = useWords();
  return (
    <div class="judge">
      {LABELS.map(([label, key, digit]) => (
        <button
          key={label}
          type="button"
          class={`button judge-${label.toLowerCase()}`}
          aria-pressed={chosen === label}
          onClick={() => onJudge(label)}
        >
          {t(key)} <kbd aria-hidden="true">{digit}</kbd>
        </button>
      ))}
    </div>
  );
}

function JudgeHere({ a, b, before }: { a: Id; b: Id; before: Judgement | null }) {
  const { t } = useWords();
  const [label, setLabel] = useState<Label | null>(before?.label ?? null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const judge = async (label: Label) => {
    try {
      await ask("/v1/run/review", { body: { a, b, label, who: "" } });
      setLabel(label);
      setProblem(null);
    } catch (error) {
      setProblem(error instanceof Problem ? error : new Problem("page", 0, String(error)));
    }
  };
  return (
    <Section title={t("review")}>
      <JudgeButtons onJudge={(label) => void judge(label)} chosen={label} />
      {problem && <ProblemBox problem={problem} />}
    </Section>
  );
}

function TextPair({ compare }: { compare: (a: Given, b: Given) => Promise<Comparison> }) {
  const { t } = useWords();
  const [a, setA] = useState<Given>(NOTHING);
  const [b, setB] = useState<Given>(NOTHING);
  const [comparison, setComparison] = useState<{ own: Comparison; names: [Id, Id] } | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [isBusy, setIsBusy] = useState(false);
  return (
    <>
      <form
        class="text-pair"
        aria-busy={isBusy}
        onSubmit={async (event) => {
          event.preventDefault();
          if (isBusy || !isGiven(a) || !isGiven(b)) return;
          setIsBusy(true);
          try {
            const names: [Id, Id] = [a.file?.name ?? t("first_text"), b.file?.name ?? t("second_text")];
            setComparison({ own: await compare(a, b), names });
            setProblem(null);
          } catch (error) {
            setProblem(error instanceof Problem ? error : new Problem("page", 0, String(error)));
          }
          setIsBusy(false);
        }}
      >
        <Drop label={t("first_text")} given={a} onGiven={setA} />
        <Drop label={t("second_text")} given={b} onGiven={setB} />
        <div class="row-of-buttons">
          <button class="button main" type="submit" disabled={isBusy || !isGiven(a) || !isGiven(b)}>
            {isBusy ? t("loading") : t("do_compare")}
          </button>
          <button
            class="button"
            type="button"
            onClick={() => {
              setA(b);
              setB(a);
            }}
          >
            ⇄ {t("swap")}
          </button>
        </div>
      </form>
      {problem && <ProblemBox problem={problem} />}
      {comparison ? (
        <ComparisonView comparison={comparison.own} names={comparison.names} />
      ) : (
        !problem && <Empty>{t("empty_compare")}</Empty>
      )}
    </>
  );
}

/** A place for a text that is pasted, or a file that is dropped or chosen. */
export function Drop({ label, given, onGiven }: { label: string; given: Given; onGiven: (given: Given) => void }) {
  const { t } = useWords();
  const [isOver, setIsOver] = useState(false);
  const [refused, setRefused] = useState<string | null>(null);
  const input = useRef<HTMLInputElement>(null);
  const take = async (file: File | undefined) => {
    if (!file) return;
    const places = { name: line(file.name), size: bytes(file.size), most: bytes(LARGEST) };
    if (file.size > LARGEST) return setRefused(t("too_large", places));
    if (await isBinary(file)) return setRefused(t("no_text_in", places));
    setRefused(null);
    onGiven({ text: "", file: { name: file.name, size: file.size, base64: await base64(file) } });
  };
  return (
    <div
      class={isOver ? "drop over" : "drop"}
      onDragOver={(event) => {
        event.preventDefault();
        setIsOver(true);
      }}
      onDragLeave={() => setIsOver(false)}
      onDrop={(event) => {
        event.preventDefault();
        setIsOver(false);
        void take(event.dataTransfer?.files[0]);
      }}
    >
      {given.file ? (
        <div class="file" role="group" aria-label={label}>
          <span class="label">{label}</span>
          <p>
            <bdi>{t("from_file", { name: line(given.file.name), size: bytes(given.file.size) })}</bdi>
          </p>
          <button type="button" class="button" onClick={() => onGiven(NOTHING)}>
            {t("remove_file")}
          </button>
        </div>
      ) : (
        <>
          <label class="field">
            <span>{label}</span>
            <textarea
              dir="auto"
              rows={8}
              placeholder={t("paste")}
              value={given.text}
              spellcheck={false}
              onInput={(event) => onGiven({ text: event.currentTarget.value, file: null })}
            />
          </label>
          <button type="button" class="plain" onClick={() => input.current?.click()}>
            {t("choose_file")}
          </button>
          <input
            ref={input}
            type="file"
            hidden
            aria-label={t("choose_file")}
            onChange={(event) => {
              void take(event.currentTarget.files?.[0]);
              event.currentTarget.value = "";
            }}
          />
        </>
      )}
      {refused && (
        <p class="notice" role="alert">
          {refused}
        </p>
      )}
    </div>
  );
}

export function ComparisonView({
  comparison,
  names,
  note,
}: {
  comparison: Comparison;
  names: [Id, Id];
  note?: preact.ComponentChildren;
}) {
  const { t } = useWords();
  const { score, distance } = comparison;
  const isDistance = comparison.max_distance != null;
  const verdict: Key = comparison.same_text
    ? "verdict_same"
    : comparison.near_duplicates === null
      ? "verdict_unknown"
      : comparison.near_duplicates
        ? "verdict_near"
        : "verdict_not";
  const kind = comparison.same_text ? "same" : comparison.near_duplicates ? "near" : "far";
  const figure = isDistance
    ? distance !== null && t("by_distance", { distance, most: comparison.max_distance ?? 0 })
    : score !== null &&
      comparison.min_score != null &&
      t("by_score", { score: rounded(score), least: comparison.min_score });
  const bits = comparison.a.sketch !== undefined ? 256 : (comparison.a.fingerprint?.length ?? 16) * 4;
  return (
    <>
      <section class={`card verdict ${kind}`} role="status">
        <h2>{t(verdict)}</h2>
        {figure && <p>{figure}</p>}
        {note}
        {!isDistance && score !== null && comparison.min_score != null && (
          <Scale
            value={score}
            threshold={comparison.min_score}
            most={1}
            isNear={comparison.near_duplicates ?? false}
            label={t("scale_score", { score: rounded(score), least: comparison.min_score })}
          />
        )}
        {isDistance && distance !== null && (
          <Scale
            value={distance}
            threshold={comparison.max_distance ?? 0}
            most={bits / 2}
            isNear={comparison.near_duplicates ?? false}
            label={t("scale_distance", { distance, most: comparison.max_distance ?? 0 })}
          />
        )}
        {[comparison.a, comparison.b].map(
          (side, nth) =>
            side.reason && (
              <p class="soft" key={nth}>
                <IdText id={names[nth] ?? ""} />: {side.reason}
              </p>
            ),
        )}
      </section>
      <DifferencesView comparison={comparison} names={names} />
      <Figures comparison={comparison} isDistance={isDistance} />
      <Bits comparison={comparison} />
    </>
  );
}

function DifferencesView({ comparison, names }: { comparison: Comparison; names: [Id, Id] }) {
  const { t } = useWords();
  const [showsEqual, setShowsEqual] = useState(false);
  const [isWhole, setIsWhole] = useState(false);
  const { differences } = comparison;
  const counts = differences.some((piece) => piece.side !== "both" && !piece.is_equal);
  const hasMoved = differences.some((piece) => piece.moved !== undefined);
  const hasEqual = differences.some((piece) => piece.side !== "both" && piece.is_equal);
  return (
    <Section title={t("differences")}>
      <div class="legend">
        <span>
          <del>{t("only_first")}</del>
        </span>
        <span>
          <ins>{t("only_second")}</ins>
        </span>
        {hasMoved && (
          <span>
            <ins class="moved">{t("moved_legend")}</ins>
          </span>
        )}
        {hasEqual && (
          <label class="tick">
            <input type="checkbox" checked={showsEqual} onChange={(e) => setShowsEqual(e.currentTarget.checked)} />{" "}
            {t("show_equal")}
          </label>
        )}
        <label class="tick">
          <input type="checkbox" checked={isWhole} onChange={(e) => setIsWhole(e.currentTarget.checked)} />{" "}
          {t("whole_texts")}
        </label>
      </div>
      {!counts && <p class="notice">{t("no_difference")}</p>}
      <div class="sides">
        {(["a", "b"] as const).map((side, nth) => (
          <div class="side" key={side}>
            <h3>
              <IdText id={names[nth] ?? ""} />{" "}
              {(comparison[side].characters ?? 0) > 0 && (
                <span class="soft">{t("characters_n", { n: grouped(comparison[side].characters ?? 0) })}</span>
              )}
            </h3>
            <div class="text" dir="auto" tabIndex={0} role="group" aria-label={t(nth === 0 ? "first_text" : "second_text")}>
              <Pieces pieces={differences} side={side} showsEqual={showsEqual} isWhole={isWhole} />
            </div>
          </div>
        ))}
      </div>
      {comparison.differences_truncated && <p class="notice">{t("truncated")}</p>}
    </Section>
  );
}

/** Marked words with nothing but spaces between them become one mark. */
function joined(pieces: Piece[]): Piece[] {
  const marks = (piece: Piece | undefined) => piece !== undefined && piece.side !== "both" && !piece.is_equal;
  const result: Piece[] = [];
  for (const [nth, piece] of pieces.entries()) {
    const last = result.at(-1);
    const isSpace = piece.side === "both" && /^[^\S\n]+$/.test(piece.text);
    const isSame = (other: Piece | undefined) => marks(other) && other?.moved === last?.moved;
    if (last && marks(last) && (isSame(piece) || (isSpace && isSame(pieces[nth + 1])))) {
      result[result.length - 1] = { ...last, text: last.text + piece.text };
    } else {
      result.push(piece);
    }
  }
  return result;
}

function Pieces({
  pieces,
  side,
  showsEqual,
  isWhole,
}: {
  pieces: Piece[];
  side: "a" | "b";
  showsEqual: boolean;
  isWhole: boolean;
}) {
  const { t } = useWords();
  const own = joined(pieces.filter((piece) => piece.side === "both" || piece.side === side));
  const shown = own.slice(0, PIECES);
  const Mark = side === "a" ? "del" : "ins";
  const first = new Map<number, Piece>();
  for (const piece of shown) if (piece.moved !== undefined && !first.has(piece.moved)) first.set(piece.moved, piece);
  return (
    <>
      {shown.map((piece, nth) => {
        if (piece.side !== "both") {
          if (piece.moved !== undefined) {
            return (
              <Mark key={nth} class="moved">
                {first.get(piece.moved) === piece && <MovedTo number={piece.moved} side={side} />}
                {visible(piece.text)}
              </Mark>
            );
          }
          if (!piece.is_equal) return <Mark key={nth}>{visible(piece.text)}</Mark>;
          if (!showsEqual) return visible(piece.text);
          return (
            <mark key={nth} title={t("counts_equal")}>
              {visible(piece.text)}
            </mark>
          );
        }
        const characters = isWhole ? [] : Array.from(piece.text);
        const isFirst = nth === 0 && own.length > 1;
        const isLast = nth === own.length - 1 && own.length > 1;
        const head = isFirst ? 0 : AROUND;
        const tail = isLast ? 0 : AROUND;
        if (characters.length <= head + tail + 80) return visible(piece.text);
        return [
          visible(characters.slice(0, head).join("")),
          <span class="fold" key={nth}>
            {" "}
            … {t("hidden_shared", { n: grouped(characters.length - head - tail) })} …{" "}
          </span>,
          visible(tail === 0 ? "" : characters.slice(-tail).join("")),
        ];
      })}
      {own.length > PIECES && <span class="fold"> … {t("truncated")}</span>}
    </>
  );
}

/** The number of a moved passage: a button that shows the passage in the other text. */
function MovedTo({ number, side }: { number: number; side: "a" | "b" }) {
  const { t } = useWords();
  return (
    <button
      type="button"
      class="move"
      data-move={`${side}${number}`}
      aria-label={t(side === "a" ? "moved_to_second" : "moved_to_first", { n: number })}
      onClick={(event) => {
        const other = side === "a" ? "b" : "a";
        const sides = event.currentTarget.closest(".sides");
        const found = sides?.querySelector<HTMLElement>(`[data-move="${other}${number}"]`);
        found?.scrollIntoView({ block: "center" });
        found?.focus({ preventScroll: true });
      }}
    >
      {side === "a" ? "↷" : "↶"}
      {number}
    </button>
  );
}

function Figures({ comparison, isDistance }: { comparison: Comparison; isDistance: boolean }) {
  const { t } = useWords();
  const { verified } = comparison;
  const rows: [Key, string, Key][] = [];
  if (!isDistance && comparison.score !== null) rows.push(["score", rounded(comparison.score), "m_score"]);
  if (verified) {
    rows.push(["cosine", rounded(verified.cosine), "m_cosine"]);
    rows.push(["alignment", rounded(verified.alignment), "m_alignment"]);
    rows.push(["jaccard", rounded(verified.jaccard), "m_jaccard"]);
    rows.push(["containment", rounded(verified.containment), "m_containment"]);
    if ((verified.differ ?? 0) > 0) {
      rows.push(["facts", t("facts_n", { agree: verified.agree ?? 0, differ: verified.differ ?? 0 }), "m_facts"]);
    }
  }
  if (comparison.sketch_score != null) rows.push(["sketch_score", rounded(comparison.sketch_score), "m_sketch"]);
  if (comparison.distance !== null) rows.push(["hamming", String(comparison.distance), "m_distance"]);
  if (comparison.equal_values != null) rows.push(["equal_values", `${comparison.equal_values} / 64`, "m_values"]);
  return (
    <Section title={t("figures")}>
      <table class="figure-table">
        <thead>
          <tr>
            <th scope="col">{t("figure")}</th>
            <th scope="col">{t("value")}</th>
            <th scope="col">{t("meaning")}</th>
          </tr>
        </thead>
        <tbody>
          {rows.map(([name, value, meaning]) => (
            <tr key={name}>
              <th scope="row">{t(name)}</th>
              <td class="number">{value}</td>
              <td class="soft">{t(meaning)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <p class="soft recipe">
        {t("recipe")}: <code>{comparison.recipe}</code>
      </p>
    </Section>
  );
}

/** The bits of the SimHash half of a sketch, or of a fingerprint, from their hex digits. */
function bitsOf(side: Side): boolean[] | null {
  const hex = side.sketch ? side.sketch.slice(0, 64) : side.fingerprint;
  if (!hex) return null;
  return Array.from(hex).flatMap((digit) => {
    const value = Number.parseInt(digit, 16);
    return [8, 4, 2, 1].map((bit) => (value & bit) !== 0);
  });
}

function Bits({ comparison }: { comparison: Comparison }) {
  const { t } = useWords();
  const [a, b] = [bitsOf(comparison.a), bitsOf(comparison.b)];
  if (!a || !b || a.length !== b.length) return null;
  const columns = a.length > 64 ? 64 : 32;
  const differing = a.filter((bit, nth) => bit !== b[nth]).length;
  const cell = 10;
  return (
    <Section title={t("bits")} about={t("bits_about")}>
      <svg
        class="bits"
        role="img"
        aria-label={t("bits_label", { n: differing, all: a.length })}
        viewBox={`0 0 ${columns * cell} ${Math.ceil(a.length / columns) * cell}`}
      >
        {a.map((bit, nth) => (
          <rect
            key={nth}
            class={bit !== b[nth] ? "differs" : bit ? "one" : "zero"}
            x={(nth % columns) * cell + 1}
            y={Math.floor(nth / columns) * cell + 1}
            width={cell - 2}
            height={cell - 2}
            rx="2"
          />
        ))}
      </svg>
      <p class="soft">{t("bits_label", { n: differing, all: a.length })}</p>
    </Section>
  );
}

