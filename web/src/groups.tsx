// Groups of a run: the list, and one of them with its documents.

import { useEffect, useRef, useState } from "preact/hooks";
import {
  type Cluster,
  type ClusterHead,
  type FoundId,
  type FoundText,
  type Id,
  type Member,
  type Overview,
  type Pair,
  Problem,
  type TextsFound,
  ask,
  path,
} from "./api";
import { GRAPH, Graph, type Limit } from "./graph";
import { Empty, Field, IdText, OpenLink, ProblemBox, Section, Shares, Waiting, useAsked, valueOf } from "./parts";
import { change, link, parse, useKeys } from "./route";
import { bytes, grouped, line, percent, rounded, time, visible } from "./text";
import { useWords } from "./words";

/** Groups of a page of the list. */
const PAGE = 50;
/** Documents of a page of a group: all where there is a graph of them. */
const MEMBERS = GRAPH;
/** A larger group has a table of its pairs and no matrix. */
const MATRIX = 12;
/** A larger matrix is below the graph and not beside it. */
const BESIDE = 4;

/** Documents that the user wants to stay, by the name of their group. */
const choices = new Map<string, Id>();

type Parameters = Record<string, string>;

export function GroupsView({ parameters }: { parameters: Parameters }) {
  const { t } = useWords();
  const { asked, retry } = useAsked("run", (signal) => ask<Overview>("/v1/run", { signal }));
  const overview = valueOf(asked);
  const [chosen, setChosen] = useState(choices.size);
  const texts = overview?.texts;
  // While texts are read, the figures are asked for again.
  useEffect(() => {
    if (texts?.state !== "reading") return;
    const timer = setTimeout(retry, 1500);
    return () => clearTimeout(timer);
  }, [overview]);
  const group = parameters["group"];
  return (
    <div class={group ? "groups has-group" : "groups"}>
      <h1 class="visually-hidden">{t("groups")}</h1>
      <Waiting asked={asked} retry={retry} />
      {overview && (
        <div class="list-side">
          <OverviewCard overview={overview} />
          <List parameters={parameters} overview={overview} textsState={texts?.state ?? ""} />
          {chosen > 0 && <Choices count={chosen} />}
        </div>
      )}
      <div class="group-side">
        {group ? (
          <GroupCard
            key={group}
            number={group}
            parameters={parameters}
            textsState={texts?.state ?? ""}
            limit={limitOf(overview)}
            onChoice={() => setChosen(choices.size)}
          />
        ) : (
          overview && overview.figures.groups > 0 && <Empty>{t("choose_group")}</Empty>
        )}
      </div>
    </div>
  );
}

function limitOf(overview: Overview | null): Limit {
  const { min_score, max_distance } = overview?.figures ?? {};
  return max_distance === undefined ? { isDistance: false, limit: min_score ?? 0 } : { isDistance: true, limit: max_distance };
}

function OverviewCard({ overview }: { overview: Overview }) {
  const { t } = useWords();
  const { figures, texts } = overview;
  const { removed } = figures;
  const exact = removed.exact + (removed.exact_of_reference ?? 0);
  const near = removed.near + (removed.near_of_reference ?? 0);
  const share = (n: number) => (figures.documents === 0 ? "" : percent(n / figures.documents));
  const rows: [string, string, string][] = [
    [t("documents"), grouped(figures.documents), bytes(figures.text_bytes)],
    [t("kept"), grouped(figures.kept), share(figures.kept)],
    [t("same_text"), grouped(exact), share(exact)],
    [t("near_duplicates"), grouped(near), share(near)],
    [t("groups_figure"), grouped(figures.groups), t("largest", { n: grouped(figures.largest_group) })],
  ];
  return (
    <section class="card overview">
      <div class="headline">
        <h2>
          <IdText id={overview.name} />
        </h2>
        {overview.finished && <span class="soft">{t("finished", { when: time(overview.finished) })}</span>}
      </div>
      <Shares
        parts={[
          ["kept", figures.kept],
          ["exact", exact],
          ["near", near],
        ]}
        label={t("share_kept", { kept: grouped(figures.kept), exact: grouped(exact), near: grouped(near) })}
      />
      <dl class="figures">
        {rows.map(([name, value, note], nth) => (
          <div key={name} class={["", "kept", "exact", "near", ""][nth]}>
            <dt>{name}</dt>
            <dd>
              {value} <small>{note}</small>
            </dd>
          </div>
        ))}
      </dl>
      {texts.state === "reading" && (
        <p class="notice" role="status">
          {t("texts_reading", { share: percent(texts.total ? Math.min(texts.done / texts.total, 1) : 0, 0) })}
        </p>
      )}
      {texts.state === "absent" && <p class="notice">{t("texts_absent", { why: line(texts.why) })}</p>}
      <details>
        <summary>{t("about_run")}</summary>
        <dl class="facts">
          <dt>{t("method")}</dt>
          <dd>
            {figures.method === "simhash"
              ? t("method_simhash")
              : figures.verify === "exact"
                ? t("method_sketch")
                : t("method_sketch_only")}
            {figures.min_score !== undefined && <>; {t("threshold_score", { n: figures.min_score })}</>}
            {figures.max_distance !== undefined && <>; {t("threshold_distance", { n: figures.max_distance })}</>}
          </dd>
          <dt>{t("recipe")}</dt>
          <dd>
            <code>{figures.recipe}</code>
          </dd>
          <dt>{t("rule_groups")}</dt>
          <dd>
            <code>{figures.cluster}</code>
          </dd>
          <dt>{t("rule_keep")}</dt>
          <dd>
            <code>{figures.keep}</code>
          </dd>
          <dt>{t("pairs")}</dt>
          <dd>{grouped(figures.pairs)}</dd>
          <dt>{t("inputs")}</dt>
          <dd>
            {overview.inputs.map((file) => (
              <div key={file}>
                <IdText id={file} />
              </div>
            ))}
            {overview.more_inputs > 0 && <div class="soft">{t("more_inputs", { n: grouped(overview.more_inputs) })}</div>}
            {(overview.unreadable ?? 0) > 0 && (
              <div class="soft">{t("unreadable", { n: grouped(overview.unreadable ?? 0) })}</div>
            )}
          </dd>
        </dl>
      </details>
    </section>
  );
}

function List({
  parameters,
  overview,
  textsState,
}: {
  parameters: Parameters;
  overview: Overview;
  textsState: string;
}) {
  const { t } = useWords();
  const order = parameters["order"] ?? "size";
  const source = parameters["source"] ?? "";
  const from = Math.max(Number(parameters["from"] ?? 0) || 0, 0);
  const query = parameters["q"] ?? "";
  const search = useRef<HTMLInputElement>(null);
  const address = path("/v1/run/clusters", { order, source, from, len: PAGE });
  const { asked, retry } = useAsked(`${address} ${textsState}`, (signal) =>
    ask<{ total: number; clusters: ClusterHead[] }>(address, { signal }),
  );
  const page = valueOf(asked);
  const here = (changed: Parameters) => link("groups", { ...parameters, ...changed });
  const move = (step: number) => {
    const clusters = page?.clusters ?? [];
    // Keys may come faster than the page is drawn: the group that is open is the one of the address.
    const { group } = parse(location.hash).parameters;
    const at = clusters.findIndex((one) => String(one.cluster) === group);
    const next = clusters[at < 0 ? 0 : Math.min(Math.max(at + step, 0), clusters.length - 1)];
    if (next) change("groups", { group: next.cluster, member: "", member_from: "" });
  };
  useKeys({ "/": () => search.current?.focus(), j: () => move(1), k: () => move(-1) });
  return (
    <section class="card list" aria-label={t("groups")}>
      <form
        class="tools-row"
        role="search"
        onSubmit={(event) => {
          event.preventDefault();
          change("groups", { q: search.current?.value.trim() ?? "" });
        }}
      >
        <Field label={t("search")}>
          <input
            ref={search}
            type="search"
            placeholder={t("search_hint")}
            defaultValue={query}
            key={query}
            maxLength={2000}
          />
        </Field>
        <Field label={t("order")}>
          <select
            value={order}
            onChange={(event) => change("groups", { order: event.currentTarget.value, from: "" })}
          >
            <option value="size">{t("order_size")}</option>
            <option value="nearness">{t("order_nearness")}</option>
            <option value="number">{t("order_number")}</option>
          </select>
        </Field>
        {overview.sources.length > 0 && (
          <Field label={t("source")}>
            <select
              value={source}
              onChange={(event) => change("groups", { source: event.currentTarget.value, from: "" })}
            >
              <option value="">{t("all_sources")}</option>
              {overview.sources.map((name) => (
                <option key={name} value={name}>
                  {line(name)}
                </option>
              ))}
            </select>
          </Field>
        )}
      </form>
      {query ? (
        <>
          <Found query={query} parameters={parameters} />
          <FoundInTexts key={query} query={query} parameters={parameters} />
        </>
      ) : (
        <>
          <Waiting asked={asked} retry={retry} />
          {page && page.total === 0 && <Empty>{source ? t("no_groups_source") : t("no_groups")}</Empty>}
          {page && page.total > 0 && (
            <>
              <ol class="rows" aria-busy={asked.state === "loading"}>
                {page.clusters.map((one) => (
                  <Row
                    key={one.cluster}
                    one={one}
                    href={here({ group: String(one.cluster), member: "", member_from: "" })}
                    isOpen={String(one.cluster) === parameters["group"]}
                    isDistance={overview.figures.max_distance !== undefined}
                  />
                ))}
              </ol>
              <Pager total={page.total} from={from} href={(next) => here({ from: String(next) })} />
            </>
          )}
        </>
      )}
    </section>
  );
}

function Row({
  one,
  href,
  isOpen,
  isDistance,
}: {
  one: ClusterHead;
  href: string;
  isOpen: boolean;
  isDistance: boolean;
}) {
  const { t } = useWords();
  const row = useRef<HTMLAnchorElement>(null);
  useEffect(() => {
    if (isOpen) row.current?.scrollIntoView({ block: "nearest" });
  }, [isOpen]);
  const title = one.beginning?.trim() ? visible(one.beginning) : null;
  return (
    <li>
      <a ref={row} href={href} class="row" aria-current={isOpen ? "true" : undefined}>
        <span class="count" title={t("group_size", { n: grouped(one.size) })}>
          {grouped(one.size)}
          <span class="visually-hidden"> {t("documents")}</span>
        </span>
        <span class="what">
          <span class="title" dir="auto">
            {title ?? <IdText id={one.representative} />}
          </span>
          <span class="under">
            {title !== null && <IdText id={one.representative} />}
            {one.weakest !== null && (
              <span>{isDistance ? t("weakest_distance", { n: one.weakest }) : t("weakest_score", { n: rounded(one.weakest) })}</span>
            )}
            {one.kept > 1 && <span>{t("stay_n", { n: grouped(one.kept) })}</span>}
          </span>
        </span>
      </a>
    </li>
  );
}

function Pager({ total, from, most = PAGE, href }: { total: number; from: number; most?: number; href: (from: number) => string }) {
  const { t } = useWords();
  if (total <= most && from === 0) return null;
  const to = Math.min(from + most, total);
  return (
    <nav class="pager" aria-label={t("page_of", { from: grouped(from + 1), to: grouped(to), total: grouped(total) })}>
      {from > 0 ? (
        <a class="button" rel="prev" href={href(Math.max(from - most, 0))}>
          {t("previous")}
        </a>
      ) : (
        <span />
      )}
      <span class="soft">{t("page_of", { from: grouped(from + 1), to: grouped(to), total: grouped(total) })}</span>
      {to < total ? (
        <a class="button" rel="next" href={href(from + most)}>
          {t("next")}
        </a>
      ) : (
        <span />
      )}
    </nav>
  );
}

function Found({ query, parameters }: { query: string; parameters: Parameters }) {
  const { t } = useWords();
  const address = path("/v1/run/search", { q: query });
  const { asked, retry } = useAsked(address, (signal) => ask<FoundId[]>(address, { signal }));
  const found = valueOf(asked);
  return (
    <>
      <h2>{t("search_ids")}</h2>
      <Waiting asked={asked} retry={retry} />
      <div role="status">
        {found && (
          <p class="soft">
            {found.length === 0
              ? t("search_none")
              : found.length < 50
                ? t("search_found", { n: grouped(found.length) })
                : t("search_most", { n: grouped(found.length) })}
          </p>
        )}
      </div>
      {found && found.length > 0 && (
        <ol class="rows">
          {found.map((one) => (
            <li key={`${one.record}`}>
              {one.cluster === null ? (
                <div class="row">
                  <span class="count">·</span>
                  <IdHit one={one} />
                </div>
              ) : (
                <a class="row" href={link("groups", { ...parameters, group: one.cluster, member: JSON.stringify(one.id) })}>
                  <span class="count">#{one.cluster}</span>
                  <IdHit one={one} />
                </a>
              )}
            </li>
          ))}
        </ol>
      )}
    </>
  );
}

/** What a search of the texts has come to. */
type TextSearch = {
  state: "searching" | "paused" | "done" | "failed";
  found: FoundText[];
  last: TextsFound | null;
  problem: Problem | null;
};

/** Texts of a page of the search, and milliseconds between two questions while the texts are still read. */
const FOUND = 50;
const READING = 1000;

/** Documents whose texts have all words: asked for part by part, so that what is found is shown while the rest is searched. */
function FoundInTexts({ query, parameters }: { query: string; parameters: Parameters }) {
  const { t } = useWords();
  const [search, setSearch] = useState<TextSearch>({ state: "searching", found: [], last: null, problem: null });
  const [pages, setPages] = useState(1);
  const [attempts, setAttempts] = useState(1);
  useEffect(() => {
    const abort = new AbortController();
    let { found, last } = search;
    const run = async () => {
      try {
        while (found.length < pages * FOUND && (last === null || last.next !== null)) {
          const before: number = last?.next ?? 0;
          const address = path("/v1/run/search/texts", { q: query, from: before });
          const part = await ask<TextsFound>(address, { signal: abort.signal });
          if (abort.signal.aborted) return;
          found = [...found, ...part.found];
          last = part;
          setSearch({ state: "searching", found, last, problem: null });
          if (part.next === before) await new Promise((done) => setTimeout(done, READING));
          if (abort.signal.aborted) return;
        }
        setSearch({ state: last?.next === null ? "done" : "paused", found, last, problem: null });
      } catch (error) {
        if (abort.signal.aborted) return;
        const problem = error instanceof Problem ? error : new Problem("page", 0, String(error));
        setSearch({ state: "failed", found, last, problem });
      }
    };
    setSearch({ ...search, state: "searching", problem: null });
    void run();
    return () => abort.abort();
  }, [pages, attempts]);
  const { state, found, last, problem } = search;
  const far = { n: grouped(last?.searched ?? 0), all: grouped(last?.records ?? 0) };
  const isAbsent = last?.texts.state === "absent";
  const goOn = () => (state === "failed" ? setAttempts((n) => n + 1) : setPages((n) => n + 1));
  return (
    <section class="in-texts" aria-label={t("search_texts")} aria-busy={state === "searching"}>
      <h2>{t("search_texts")}</h2>
      {found.length > 0 && (
        <ol class="rows">
          {found.map((one) => {
            const inside = <HitText one={one} />;
            return (
              <li key={one.record}>
                {one.cluster === null ? (
                  <div class="row">
                    <span class="count">·</span>
                    {inside}
                  </div>
                ) : (
                  <a class="row" href={link("groups", { ...parameters, group: one.cluster, member: JSON.stringify(one.id) })}>
                    <span class="count">#{one.cluster}</span>
                    {inside}
                  </a>
                )}
              </li>
            );
          })}
        </ol>
      )}
      <div role="status">
        {state === "searching" && (
          <p class="soft">
            <span class="spinner" aria-hidden="true" /> {last ? t("search_searching", far) : t("loading")}
          </p>
        )}
        {state === "done" && isAbsent && found.length === 0 && <p class="soft">{t("search_texts_absent")}</p>}
        {state === "done" && !isAbsent && found.length === 0 && <p class="soft">{t("search_texts_none")}</p>}
        {(state === "paused" || (state === "done" && found.length > 0)) && (
          <p class="soft">
            {t("search_found", { n: grouped(found.length) })} · {t("search_searched", far)}
          </p>
        )}
      </div>
      {problem?.kind === "busy" && (
        <p class="notice" role="alert">
          {t("search_busy")}
        </p>
      )}
      {problem && problem.kind !== "busy" && <ProblemBox problem={problem} />}
      {(state === "paused" || state === "failed") && (
        <button type="button" class="button" onClick={goOn}>
          {t(state === "paused" ? "search_more" : "retry")}
        </button>
      )}
    </section>
  );
}

function HitText({ one }: { one: FoundText }) {
  const { t } = useWords();
  const { pieces, cut_before, cut_behind } = one.snippet;
  return (
    <span class="what">
      <span class="title">
        <IdText id={one.id} />
      </span>
      <span class="under">
        <span>{one.cluster === null ? t("alone") : t("in_group", { n: grouped(one.cluster) })}</span>
        <span class="snippet" dir="auto">
          {cut_before && "…"}
          {pieces.map((piece, nth) => (piece.is_hit ? <mark key={nth}>{visible(piece.text)}</mark> : visible(piece.text)))}
          {cut_behind && "…"}
        </span>
      </span>
    </span>
  );
}

function IdHit({ one }: { one: FoundId }) {
  const { t } = useWords();
  return (
    <span class="what">
      <span class="title">
        <IdText id={one.id} />
      </span>
      <span class="under">
        <span>{one.cluster === null ? t("alone") : t("in_group", { n: grouped(one.cluster) })}</span>
        {one.beginning && <span class="snippet" dir="auto">{visible(one.beginning)}</span>}
      </span>
    </span>
  );
}

function GroupCard({
  number,
  parameters,
  textsState,
  limit,
  onChoice,
}: {
  number: string;
  parameters: Parameters;
  textsState: string;
  limit: Limit;
  onChoice: () => void;
}) {
  const { t } = useWords();
  const { isDistance } = limit;
  const from = Math.max(Number(parameters["member_from"] ?? 0) || 0, 0);
  const address = path(`/v1/run/clusters/${encodeURIComponent(number)}`, { from, len: MEMBERS });
  const { asked, retry } = useAsked(`${address} ${textsState}`, (signal) => ask<Cluster>(address, { signal }));
  const cluster = valueOf(asked);
  const back = { ...parameters, group: "", member: "", member_from: "" };
  return (
    <article class="card group" aria-label={t("group_title", { n: number })}>
      <a class="back" href={link("groups", back)}>
        ← {t("back")}
      </a>
      <Waiting asked={asked} retry={retry} />
      {cluster && (
        <>
          <h2>
            {t("group_title", { n: grouped(cluster.cluster) })} <span class="badge">{t("group_size", { n: grouped(cluster.size) })}</span>
          </h2>
          <p class="soft">
            <code title={t("group_name")}>{cluster.name}</code>
            {cluster.weakest !== null && (
              <> · {isDistance ? t("weakest_distance", { n: cluster.weakest }) : t("weakest_score", { n: rounded(cluster.weakest) })}</>
            )}
            {cluster.kept > 1 && <> · {t("stay_n", { n: grouped(cluster.kept) })}</>}
          </p>
          {cluster.sources && (
            <p class="sources">
              {Object.entries(cluster.sources).slice(0, 30).map(([name, n]) => (
                <span class="chip" key={name}>
                  <bdi>{line(name)}</bdi> {grouped(n)}
                </span>
              ))}
            </p>
          )}
          <h3>{t("members")}</h3>
          <ol class="members">
            {cluster.members.map((member, nth) => (
              <MemberRow
                key={member.record}
                member={member}
                place={from + nth + 1}
                cluster={cluster}
                isDistance={isDistance}
                isWanted={JSON.stringify(member.id) === parameters["member"]}
                onChoice={onChoice}
              />
            ))}
          </ol>
          <Pager
            total={cluster.size}
            from={from}
            most={MEMBERS}
            href={(next) => link("groups", { ...parameters, member_from: next })}
          />
          {cluster.pairs && <Pairs cluster={cluster} pairs={cluster.pairs} limit={limit} parameters={parameters} />}
        </>
      )}
    </article>
  );
}

function MemberRow({
  member,
  place,
  cluster,
  isDistance,
  isWanted,
  onChoice,
}: {
  member: Member;
  place: number;
  cluster: Cluster;
  isDistance: boolean;
  isWanted: boolean;
  onChoice: () => void;
}) {
  const { t } = useWords();
  const row = useRef<HTMLLIElement>(null);
  const { removed } = member;
  useEffect(() => {
    if (!isWanted) return;
    row.current?.scrollIntoView({ block: "center" });
    // Where the keys go on from.
    row.current?.focus({ preventScroll: true });
  }, [isWanted]);
  const isChosen = choices.get(cluster.name) === member.id;
  const partner: [Id, number] | null =
    removed?.representative !== undefined
      ? [removed.representative, removed.representative_record ?? 0]
      : member.record !== cluster.representative_record
        ? [cluster.representative, cluster.representative_record]
        : null;
  const why = !removed
    ? t("stays")
    : removed.reference !== undefined
      ? t("why_reference", { file: line(removed.reference_file ?? ""), id: line(removed.reference) })
      : t(removed.reason.startsWith("exact") || removed.reason.startsWith("same") ? "why_exact" : "why_near", {
          id: line(removed.representative ?? ""),
        });
  return (
    <li ref={row} tabIndex={-1} class={`member ${removed ? "gone" : "stays"} ${isWanted ? "wanted" : ""}`}>
      <div class="top">
        <span class="place">{grouped(place)}</span>
        <IdText id={member.id} />
        <OpenLink id={member.id} />
        {isChosen && <span class="badge chosen">{t("keep_chosen")}</span>}
      </div>
      <div class="why">
        <span>
          <span class={removed ? "mark gone" : "mark stays"} aria-hidden="true" /> <bdi>{why}</bdi>
        </span>
        {!isDistance && removed?.score !== undefined && (
          <span class="soft">{t("score_n", { n: rounded(removed.score) })}</span>
        )}
        {isDistance && removed?.distance !== undefined && (
          <span class="soft">{t("distance_n", { n: removed.distance })}</span>
        )}
        <span class="soft">{t("record_n", { n: grouped(member.record) })}</span>
      </div>
      {member.beginning && (
        <p class="snippet" dir="auto">
          {visible(member.beginning)}
        </p>
      )}
      <div class="actions">
        {partner && (
          <a
            href={link("compare", {
              a: JSON.stringify(partner[0]),
              record_a: partner[1],
              b: JSON.stringify(member.id),
              record_b: member.record,
            })}
          >
            {t("compare_with", { id: line(partner[0]) })}
          </a>
        )}
        {removed && !isChosen && (
          <button
            type="button"
            class="plain"
            onClick={() => {
              choices.set(cluster.name, member.id);
              onChoice();
            }}
          >
            {t("keep_instead")}
          </button>
        )}
      </div>
    </li>
  );
}

function nearness(pair: Pair, isDistance: boolean, digits: number): string {
  if (isDistance && pair.distance !== undefined) return String(pair.distance);
  return pair.score === undefined ? "·" : rounded(pair.score, digits);
}

type PairsProps = { cluster: Cluster; pairs: Pair[]; limit: Limit; parameters: Parameters };

/** How the documents of a group are near each other: as a graph, and as a matrix or a table. */
function Pairs({ cluster, pairs, limit, parameters }: PairsProps) {
  const { t } = useWords();
  const { isDistance } = limit;
  if (pairs.length === 0) return <p class="soft">{t("no_pairs")}</p>;
  const to = (a: Member, b: Member) =>
    link("compare", { a: JSON.stringify(a.id), record_a: a.record, b: JSON.stringify(b.id), record_b: b.record });
  const { members } = cluster;
  const between = (pair: Pair) => {
    const one = (id: Id) => members.find((member) => member.id === id);
    const [a, b] = [one(pair.a), one(pair.b)];
    return a && b ? to(a, b) : link("compare", { a: JSON.stringify(pair.a), b: JSON.stringify(pair.b) });
  };
  const ids = members.map((member) => member.id);
  const isUnique = new Set(ids).size === ids.length;
  const isWhole = isUnique && members.length === cluster.size && cluster.size > 2;
  const graph = isWhole && cluster.size <= GRAPH && (
    <Graph
      cluster={cluster}
      pairs={pairs}
      limit={limit}
      parameters={parameters}
      href={(a, b) => to(members[a]!, members[b]!)}
    />
  );
  if (isWhole && cluster.size <= MATRIX) {
    const of = (a: Id, b: Id) => pairs.find((pair) => (pair.a === a && pair.b === b) || (pair.a === b && pair.b === a));
    return (
      <div class="beside">
        {graph}
        <div class={cluster.size > BESIDE ? "wide" : ""}>
          <h3>{t("all_pairs")}</h3>
          <p class="about">{t("matrix_about")}</p>
          <div class="scroll" tabIndex={0} role="group" aria-label={t("all_pairs")}>
            <table class="matrix">
              <thead>
                <tr>
                  <td class="self" />
                  {ids.map((id, nth) => (
                    <th key={nth} scope="col" title={line(id)}>
                      {nth + 1}
                    </th>
                  ))}
                </tr>
              </thead>
              <tbody>
                {ids.map((a, row) => (
                  <tr key={row}>
                    <th scope="row">
                      {row + 1} <IdText id={a} />
                    </th>
                    {ids.map((b, column) => {
                      const pair = row === column ? undefined : of(a, b);
                      const heat = pair?.score === undefined ? 1 : Math.round(pair.score * 4);
                      return (
                        <td key={column} class={row === column ? "self" : pair ? `h${heat}` : ""}>
                          {pair && (
                            <a href={between(pair)} aria-label={`${nearness(pair, isDistance, 2)} ${line(a)}, ${line(b)}`}>
                              {nearness(pair, isDistance, 2)}
                            </a>
                          )}
                        </td>
                      );
                    })}
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        </div>
      </div>
    );
  }
  return (
    <>
      {graph}
      <h3>{t("all_pairs")}</h3>
      <p class="about">{t("pair_table_about")}</p>
      <PairTable pairs={pairs} isDistance={isDistance} href={between} />
    </>
  );
}

export function PairTable({
  pairs,
  isDistance,
  href,
}: {
  pairs: Pair[];
  isDistance: boolean;
  href: (pair: Pair) => string;
}) {
  const { t } = useWords();
  return (
    <div class="scroll" tabIndex={0} role="group" aria-label={t("pairs")}>
      <table class="pairs">
        <thead>
          <tr>
            <th scope="col">{isDistance ? t("distance") : t("score")}</th>
            <th scope="col">{t("first")}</th>
            <th scope="col">{t("second")}</th>
          </tr>
        </thead>
        <tbody>
          {pairs.map((pair, nth) => (
            <tr key={nth}>
              <td class="number">
                <a href={href(pair)} aria-label={`${nearness(pair, isDistance, 3)} ${t("compare")}: ${line(pair.a)}, ${line(pair.b)}`}>
                  {nearness(pair, isDistance, 3)}
                </a>
              </td>
              <td>
                <IdText id={pair.a} />
              </td>
              <td>
                <IdText id={pair.b} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Choices({ count }: { count: number }) {
  const { t } = useWords();
  const save = () => {
    const lines = [...choices].map(([cluster, keep]) => JSON.stringify({ cluster, keep }));
    const url = URL.createObjectURL(new Blob([`${lines.join("\n")}\n`], { type: "application/jsonl" }));
    const anchor = document.createElement("a");
    anchor.href = url;
    anchor.download = "keep.jsonl";
    anchor.click();
    setTimeout(() => URL.revokeObjectURL(url), 10_000);
  };
  return (
    <Section title={t("export_choices", { n: grouped(count) })} about={t("export_about")}>
      <button type="button" class="button main" onClick={save}>
        {t("export_choices", { n: grouped(count) })}
      </button>
    </Section>
  );
}

