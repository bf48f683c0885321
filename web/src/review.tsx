// Pairs at the threshold, one after another: same, different or unsure. Each answer is saved at once.

import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { type Label, Problem, type ReviewFigures, type ToReview, ask, path } from "./api";
import { JudgeButtons, OfRun, labelKey } from "./compare";
import { Empty, ProblemBox, Section, Waiting, useAsked, valueOf } from "./parts";
import { useKeys } from "./route";
import { grouped, line, percent } from "./text";
import { useWords } from "./words";

/** Pairs in the queue. */
const QUEUE = 200;

type Parameters = Record<string, string>;

export function ReviewView({ canReview, parameters }: { canReview: boolean; parameters: Parameters }) {
  const { t } = useWords();
  return (
    <div class="review">
      <h1>{t("review_title")}</h1>
      {parameters["at"] && <p class="soft">{t("review_at", { n: line(parameters["at"]) })}</p>}
      {canReview ? <Queue key={parameters["at"] ?? ""} parameters={parameters} /> : <Empty>{t("review_readonly")}</Empty>}
    </div>
  );
}

function Queue({ parameters }: { parameters: Parameters }) {
  const { t } = useWords();
  const address = path("/v1/run/borderline", { threshold: parameters["at"], len: QUEUE });
  const { asked, retry } = useAsked(address, (signal) => ask<ToReview[]>(address, { signal }));
  const first = useAsked("figures", (signal) => ask<ReviewFigures>("/v1/run/review", { signal }));
  const [given, setGiven] = useState<Map<number, Label>>(new Map());
  const [figures, setFigures] = useState<ReviewFigures | null>(null);
  const [at, setAt] = useState(0);
  const [who, setWho] = useState("");
  const [skips, setSkips] = useState(true);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [said, setSaid] = useState("");
  const pairs = valueOf(asked) ?? [];
  const labelOf = (nth: number): Label | null => given.get(nth) ?? pairs[nth]?.judgement?.label ?? null;
  const next = (from: number, step: number): number => {
    let nth = from + step;
    while (skips && nth >= 0 && nth < pairs.length && labelOf(nth) !== null) nth += step;
    return nth;
  };
  // Before the paint: a key must not act on a pair that is about to go.
  useLayoutEffect(() => {
    // The first that nobody has judged.
    if (pairs.length > 0 && labelOf(at) !== null && given.size === 0) setAt(Math.min(next(-1, 1), pairs.length));
  }, [pairs.length]);
  const pair = pairs[at];
  // What the drawing after an answer says comes next: more may have been judged meanwhile.
  const following = useRef(next);
  following.current = next;
  // Judgements are sent one after another, so that the last one given is the last one written.
  const sent = useRef<Promise<void>>(Promise.resolve());
  const save = async (judged: number, pair: ToReview, label: Label) => {
    try {
      const figures = await ask<ReviewFigures>("/v1/run/review", { body: { a: pair.a, b: pair.b, label, who } });
      setGiven((given) => new Map(given).set(judged, label));
      setFigures(figures);
      setProblem(null);
      setSaid(t("saved"));
      // Who has gone elsewhere meanwhile stays there.
      setAt((at) => (at === judged ? Math.min(following.current(judged, 1), pairs.length) : at));
    } catch (error) {
      setSaid("");
      setProblem(error instanceof Problem ? error : new Problem("page", 0, String(error)));
    }
  };
  const judge = (label: Label) => {
    if (pair) sent.current = sent.current.then(() => save(at, pair, label));
  };
  const to = (step: number) =>
    setAt((at) => Math.max(Math.min(Math.min(at, pairs.length) + step, Math.max(pairs.length - 1, 0)), 0));
  useKeys({
    "1": () => judge("POS"),
    "2": () => judge("NEG"),
    "3": () => judge("GREY"),
    j: () => to(1),
    k: () => to(-1),
  });
  const shown = figures ?? valueOf(first.asked);
  return (
    <>
      <Section title={t("precision")} about={t("review_about")}>
        <Waiting asked={asked} retry={retry} />
        {shown && (
          <p class="precision" aria-live="polite">
            <strong>{shown.precision === null ? t("precision_none") : percent(shown.precision)}</strong>{" "}
            {shown.precision !== null && (
              <span class="soft">
                {t("interval", { low: percent(shown.interval[0]), high: percent(shown.interval[1]) })}
              </span>
            )}{" "}
            <span class="soft">
              {t("review_figures", {
                same: grouped(shown.same),
                different: grouped(shown.different),
                unsure: grouped(shown.unsure),
              })}
            </span>
          </p>
        )}
        <div class="tools-row">
          <label class="field">
            <span>{t("who")}</span>
            <input
              value={who}
              maxLength={100}
              placeholder={t("who_hint")}
              autoComplete="off"
              onInput={(event) => setWho(event.currentTarget.value)}
            />
          </label>
          <label class="tick">
            <input type="checkbox" checked={skips} onChange={(event) => setSkips(event.currentTarget.checked)} />{" "}
            {t("skip_judged")}
          </label>
        </div>
      </Section>
      {asked.state === "there" && pairs.length === 0 && <Empty>{t("border_none")}</Empty>}
      {pairs.length > 0 && !pair && (
        <>
          <Empty>{t("review_done")}</Empty>
          <p class="centre">
            <button type="button" class="button" onClick={() => setAt(pairs.length - 1)}>
              {t("previous_pair")}
            </button>
          </p>
        </>
      )}
      {pair && (
        <div class="queue">
          <div class="card judge-bar">
            <span>
              {t("review_place", { n: grouped(at + 1), all: grouped(pairs.length) })}
              {labelOf(at) !== null && (
                <span class="badge">
                  {given.has(at) || !pair.judgement?.who
                    ? t("judged_as", { label: t(labelKey(labelOf(at) ?? "GREY")) })
                    : t("judged_by", {
                        label: t(labelKey(labelOf(at) ?? "GREY")),
                        who: line(pair.judgement.who),
                      })}
                </span>
              )}
              <span class="visually-hidden" role="status">
                {said}
              </span>
            </span>
            <JudgeButtons onJudge={judge} chosen={labelOf(at)} />
            <span class="row-of-buttons">
              <button type="button" class="button" disabled={at === 0} onClick={() => to(-1)}>
                {t("previous_pair")}
              </button>
              <button type="button" class="button" disabled={at >= pairs.length - 1} onClick={() => to(1)}>
                {t("next_pair")}
              </button>
            </span>
          </div>
          {problem && <ProblemBox problem={problem} />}
          <OfRun key={`${String(pair.a)} ${String(pair.b)}`} a={pair.a} b={pair.b} parameters={{}} canReview={false} />
        </div>
      )}
    </>
  );
}
