// The frame of the page: which server it is of, the views that server has, the language, the theme and the key.

import { render } from "preact";
import { useEffect, useLayoutEffect, useMemo, useState } from "preact/hooks";
import { type Face, Problem, ask, setKey } from "./api";
import { CheckView } from "./check";
import { ServiceCompare, RunCompare } from "./compare";
import { GroupsView } from "./groups";
import type { Key, Language } from "./messages";
import { OperateView } from "./operate";
import { ProblemBox, Section } from "./parts";
import { ReviewView } from "./review";
import { link, useKeys, useRoute } from "./route";
import { setLocale } from "./text";
import { ThresholdView } from "./threshold";
import { WordsContext, useWords, wordsOf } from "./words";
import "uplot/dist/uPlot.min.css";
import "./style.css";

const VIEWS: Record<Face["face"], Key[]> = {
  run: ["groups", "compare", "threshold", "review"],
  service: ["compare", "check", "operate"],
};

type Theme = "auto" | "light" | "dark";

/** What a browser kept of an earlier visit; it may keep nothing. */
function remembered(name: string): string | null {
  try {
    return localStorage.getItem(name);
  } catch {
    return null;
  }
}

function remember(name: string, value: string): void {
  try {
    localStorage.setItem(name, value);
  } catch {
    // A browser that keeps nothing begins anew each time.
  }
}

function firstLanguage(face: Face | null): Language {
  const asked = remembered("nearsift-language") ?? (face?.face === "run" ? face.language : null);
  if (asked === "zh" || asked === "en") return asked;
  return navigator.languages.some((tag) => tag.startsWith("zh")) && navigator.language.startsWith("zh") ? "zh" : "en";
}

function App({ face }: { face: Face }) {
  const [language, setLanguage] = useState<Language>(() => firstLanguage(face));
  const [theme, setTheme] = useState<Theme>(() => {
    const kept = remembered("nearsift-theme");
    return kept === "light" || kept === "dark" ? kept : "auto";
  });
  const words = useMemo(() => wordsOf(language), [language]);
  // Before the paint, so that no picture has the old language or theme.
  useLayoutEffect(() => {
    document.documentElement.lang = language === "zh" ? "zh-CN" : "en";
  }, [language]);
  useLayoutEffect(() => {
    document.documentElement.dataset["theme"] = theme;
  }, [theme]);
  setLocale(language === "zh" ? "zh-CN" : "en");
  return (
    <WordsContext.Provider value={words}>
      <Frame
        face={face}
        theme={theme}
        onLanguage={() => {
          const next = language === "zh" ? "en" : "zh";
          remember("nearsift-language", next);
          setLanguage(next);
        }}
        onTheme={() => {
          const next: Theme = theme === "auto" ? "light" : theme === "light" ? "dark" : "auto";
          remember("nearsift-theme", next);
          setTheme(next);
        }}
      />
    </WordsContext.Provider>
  );
}

function Frame({
  face,
  theme,
  onLanguage,
  onTheme,
}: {
  face: Face;
  theme: Theme;
  onLanguage: () => void;
  onTheme: () => void;
}) {
  const { t, language } = useWords();
  const route = useRoute();
  const [showsKeys, setShowsKeys] = useState(false);
  const views = VIEWS[face.face];
  const view = views.find((name) => name === route.view) ?? views[0];
  useLayoutEffect(() => {
    document.title = `${t(view as Key)} · nearsift`;
  }, [view, language]);
  useKeys({ "?": () => setShowsKeys((shown) => !shown), Escape: () => setShowsKeys(false) });
  return (
    <>
      <a class="skip" href="#content" onClick={(event) => {
        event.preventDefault();
        document.getElementById("content")?.focus();
      }}>
        {t("skip")}
      </a>
      <header class="bar">
        <span class="logo">
          <svg viewBox="0 0 16 16" aria-hidden="true">
            <rect x="1" y="1" width="9" height="9" rx="2" class="one" />
            <rect x="6" y="6" width="9" height="9" rx="2" class="two" />
          </svg>
          nearsift
        </span>
        <nav aria-label={t("views")}>
          {views.map((name) => (
            <a key={name} href={link(name)} aria-current={name === view ? "page" : undefined}>
              {t(name)}
            </a>
          ))}
        </nav>
        <span class="tools">
          <button type="button" class="tool" aria-label={t("keys")} title={t("keys")} aria-expanded={showsKeys} onClick={() => setShowsKeys(!showsKeys)}>
            ?
          </button>
          <button type="button" class="tool" aria-label={t(`theme_${theme}`)} title={t(`theme_${theme}`)} onClick={onTheme}>
            {theme === "auto" ? "◐" : theme === "light" ? "☀" : "☾"}
          </button>
          <button type="button" class="tool" lang={language === "zh" ? "en" : "zh-CN"} title={t("language_label")} onClick={onLanguage}>
            {t("language_switch")}
          </button>
        </span>
      </header>
      {showsKeys && <KeyHelp close={() => setShowsKeys(false)} />}
      <main id="content" tabIndex={-1}>
        {view === "groups" && <GroupsView parameters={route.parameters} />}
        {view === "compare" && face.face === "run" && <RunCompare parameters={route.parameters} canReview={face.review} />}
        {view === "compare" && face.face === "service" && <WithKey>{() => <ServiceCompare />}</WithKey>}
        {view === "threshold" && face.face === "run" && <ThresholdView canReview={face.review} parameters={route.parameters} />}
        {view === "review" && face.face === "run" && <ReviewView canReview={face.review} parameters={route.parameters} />}
        {view === "check" && <WithKey>{() => <CheckView />}</WithKey>}
        {view === "operate" && <WithKey>{() => <OperateView />}</WithKey>}
      </main>
    </>
  );
}

function KeyHelp({ close }: { close: () => void }) {
  const { t } = useWords();
  const rows: [string, Key][] = [
    ["/", "key_search"],
    ["j", "key_next"],
    ["k", "key_previous"],
    ["Enter", "key_open"],
    ["1", "judge_same"],
    ["2", "judge_different"],
    ["3", "judge_unsure"],
    ["?", "key_help"],
  ];
  return (
    <div class="keys card" role="region" aria-label={t("keys_title")}>
      <h2>{t("keys_title")}</h2>
      <dl>
        {rows.map(([name, key]) => (
          <div key={name}>
            <dt>
              <kbd>{name}</kbd>
            </dt>
            <dd>{t(key)}</dd>
          </div>
        ))}
      </dl>
      <button type="button" class="button" onClick={close}>
        {t("close")}
      </button>
    </div>
  );
}

/** Asks for the key of a service once, where it has keys; and again, when the key is not accepted any more. */
function WithKey({ children }: { children: () => preact.ComponentChildren }) {
  const { t } = useWords();
  const [state, setState] = useState<"asking" | "open" | "locked">("asking");
  const [problem, setProblem] = useState<Problem | null>(null);
  const [given, setGiven] = useState("");
  const attempt = () =>
    ask("/v1/collections").then(
      () => {
        setProblem(null);
        setState("open");
      },
      (error: unknown) => {
        const problem = error instanceof Problem ? error : new Problem("page", 0, String(error));
        if (problem.status === 401) {
          if (problem.kind === "wrong-key") setProblem(problem);
          setKey(null);
          setState("locked");
        } else {
          setProblem(problem);
          setState("open");
        }
      },
    );
  useEffect(() => {
    void attempt();
    const withdrawn = () => {
      setKey(null);
      setProblem(new Problem("wrong-key", 401, ""));
      setState("locked");
    };
    addEventListener("nearsift-key-refused", withdrawn);
    return () => removeEventListener("nearsift-key-refused", withdrawn);
  }, []);
  if (state === "asking") return <p class="waiting" role="status">{t("loading")}</p>;
  if (state === "open") {
    return (
      <>
        {problem && <ProblemBox problem={problem} retry={() => void attempt()} />}
        {children()}
      </>
    );
  }
  return (
    <Section title={t("key_title")} about={t("key_about")} class="narrow">
      {problem && <ProblemBox problem={problem} />}
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          setKey(given.trim());
          setGiven("");
          void attempt();
        }}
      >
        <label class="field">
          <span>{t("key_field")}</span>
          <input type="password" autoComplete="off" required value={given} onInput={(e) => setGiven(e.currentTarget.value)} />
        </label>
        <button type="submit" class="button main">
          {t("key_use")}
        </button>
      </form>
    </Section>
  );
}

const root = document.getElementById("page");
if (root) {
  const start = () => {
    ask<Face>("/page/face.json").then(
      (face) => render(<App face={face} />, root),
      (error: unknown) => {
        const problem = error instanceof Problem ? error : new Problem("page", 0, String(error));
        render(
          <WordsContext.Provider value={wordsOf(firstLanguage(null))}>
            <main>
              <ProblemBox problem={problem} retry={start} />
            </main>
          </WordsContext.Provider>,
          root,
        );
      },
    );
  };
  start();
}
