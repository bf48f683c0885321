// Is this page new? What the index of a service answers for a text, and what the text becomes.

import { useState } from "preact/hooks";
import { Problem, type Side, ask } from "./api";
import { Drop, type Given, NOTHING, isGiven, sentToService } from "./compare";
import { useCollections, CollectionField, routeOf } from "./collections";
import type { Key } from "./messages";
import { Empty, IdText, OpenLink, ProblemBox, Section } from "./parts";
import { grouped, line, rounded, visible } from "./text";
import { useWords } from "./words";

type Match = { id: string; score?: number; distance?: number; source?: string; characters?: number };

type Checked = {
  verdict: "new" | "duplicate" | "undecided";
  matches: Match[];
  truncated: boolean;
  evidence?: string;
  reason?: string;
};

type Features = {
  features: { feature: string; count: number; rarity?: number; weight: number }[];
  distinct: number;
  beginning: string;
  characters: number;
  truncated: boolean;
};

type Answer = { checked: Checked; made: Side; features: Features };

const VERDICTS: Record<Checked["verdict"], Key> = {
  new: "verdict_new",
  duplicate: "verdict_duplicate",
  undecided: "verdict_undecided",
};

/** Features that are shown. */
const SHOWN = 30;

export function CheckView() {
  const { t } = useWords();
  const collections = useCollections();
  const [name, setName] = useState("default");
  const [given, setGiven] = useState<Given>(NOTHING);
  const [answer, setAnswer] = useState<Answer | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [isBusy, setIsBusy] = useState(false);
  const check = async () => {
    setIsBusy(true);
    try {
      const body = sentToService(given);
      const [checked, made, features] = await Promise.all([
        ask<Checked>(routeOf(name, "check"), { body }),
        ask<Side>(routeOf(name, "fingerprint"), { body }),
        ask<Features>(routeOf(name, "features"), { body }),
      ]);
      setAnswer({ checked, made, features });
      setProblem(null);
    } catch (error) {
      setProblem(error instanceof Problem ? error : new Problem("page", 0, String(error)));
    }
    setIsBusy(false);
  };
  return (
    <div class="check">
      <h1>{t("check_title")}</h1>
      <p class="about">{t("check_about")}</p>
      <form
        class="stack"
        aria-busy={isBusy}
        onSubmit={(event) => {
          event.preventDefault();
          if (!isBusy && isGiven(given)) void check();
        }}
      >
        <CollectionField collections={collections} name={name} onName={setName} />
        <Drop label={t("text")} given={given} onGiven={setGiven} />
        <div class="row-of-buttons last">
          <button class="button main" type="submit" disabled={isBusy || !isGiven(given)}>
            {isBusy ? t("loading") : t("do_check")}
          </button>
        </div>
      </form>
      {problem && <ProblemBox problem={problem} />}
      {answer ? <AnswerView answer={answer} /> : !problem && <Empty>{t("empty_check")}</Empty>}
    </div>
  );
}

function AnswerView({ answer }: { answer: Answer }) {
  const { t } = useWords();
  const { checked, made, features } = answer;
  const kind = checked.verdict === "new" ? "same" : checked.verdict === "duplicate" ? "near" : "far";
  const most = Math.max(1, ...features.features.map((own) => own.weight));
  return (
    <>
      <section class={`card verdict ${kind}`} role="status">
        <h2>{t(VERDICTS[checked.verdict], { reason: checked.reason ?? "" })}</h2>
        {checked.evidence && <p class="soft">{t("evidence", { what: checked.evidence })}</p>}
      </section>
      <Section title={t("nearest")}>
        {checked.matches.length === 0 ? (
          <p>{t("nearest_none")}</p>
        ) : (
          <ol class="rows">
            {checked.matches.map((match) => (
              <li key={match.id} class="row">
                <span class="count">{match.score !== undefined ? rounded(match.score) : match.distance}</span>
                <span class="what">
                  <span class="title">
                    <IdText id={match.id} /> <OpenLink id={match.id} />
                  </span>
                  <span class="under">
                    {match.source && <bdi>{line(match.source)}</bdi>}
                    {match.characters !== undefined && <span>{t("characters_n", { n: grouped(match.characters) })}</span>}
                  </span>
                </span>
              </li>
            ))}
          </ol>
        )}
      </Section>
      <div class="two">
        <Section title={t("features")} about={t("features_about")}>
          <ol class="weights">
            {features.features.slice(0, SHOWN).map((own, nth) => (
              <li key={nth}>
                <bdi class="feature">{visible(own.feature)}</bdi>
                <svg viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
                  <rect x="0" y="0" width={(own.weight / most) * 100} height="8" rx="2" />
                </svg>
                <span class="number">{grouped(own.weight)}</span>
              </li>
            ))}
          </ol>
        </Section>
        <Section title={t("main_text")} about={t("characters_n", { n: grouped(features.characters) })}>
          <div class="text" dir="auto" tabIndex={0} role="group" aria-label={t("main_text")}>
            {visible(features.beginning)}
            {Array.from(features.beginning).length < features.characters && " …"}
          </div>
        </Section>
      </div>
      <Section title={t("fingerprint")}>
        <p class="hex">
          <code>{made.sketch ?? made.fingerprint ?? made.reason ?? ""}</code>
        </p>
      </Section>
    </>
  );
}
