// Questions to the server that the page came from, and what it answers.

/** A problem document, RFC 9457, or what the page says where no answer came. */
export class Problem extends Error {
  constructor(
    readonly kind: string,
    readonly status: number,
    readonly detail: string,
    readonly expected?: string,
  ) {
    super(detail);
  }
}

/** The API key of a service: in memory only, so that a closed page has forgotten it. */
let key: string | null = null;

export function setKey(given: string | null): void {
  key = given;
}

type Options = { body?: unknown; method?: string; signal?: AbortSignal };

async function answer(path: string, { body, method, signal }: Options): Promise<Response> {
  const headers: Record<string, string> = {};
  if (key !== null) headers["Authorization"] = `Bearer ${key}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let response: Response;
  try {
    response = await fetch(path, {
      method: method ?? (body === undefined ? "GET" : "POST"),
      headers,
      body: body === undefined ? null : JSON.stringify(body),
      signal: signal ?? null,
      cache: "no-store",
      credentials: "omit",
      redirect: "error",
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Problem("no-answer", 0, "");
  }
  if (response.ok) return response;
  let said: { type?: string; detail?: string; expected?: string } = {};
  try {
    said = await response.json();
  } catch {
    // What is no problem document is of something between the page and its server.
  }
  if (response.status === 401 && key !== null) dispatchEvent(new Event("nearsift-key-refused"));
  const kind = (said.type ?? "").replace("urn:nearsift:problem:", "") || "no-answer";
  throw new Problem(kind, response.status, said.detail ?? "", said.expected);
}

export async function ask<T>(path: string, options: Options = {}): Promise<T> {
  const response = await answer(path, options);
  return (await response.json()) as T;
}

export async function askText(path: string, options: Options = {}): Promise<string> {
  return (await answer(path, options)).text();
}

/** A path with parameters. */
export function path(base: string, parameters: Record<string, string | number | undefined>): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== undefined && value !== "") query.set(name, String(value));
  }
  const written = query.toString();
  return written === "" ? base : `${base}?${written}`;
}

// What a run answers.

export type Id = string | number;

export type Face =
  | { face: "service" }
  | { face: "run"; review: boolean; language: "zh" | "en" | null };

export type Texts =
  | { state: "ready" }
  | { state: "reading"; done: number; total: number }
  | { state: "absent"; why: string };

export type Overview = {
  name: string;
  finished: string | null;
  figures: {
    nearsift?: string;
    method: "sketch" | "simhash";
    recipe: string;
    recipe_digest?: string;
    keep: string;
    cluster: string;
    verify?: string;
    min_score?: number;
    max_distance?: number;
    documents: number;
    text_bytes: number;
    kept: number;
    removed: { exact: number; near: number; exact_of_reference?: number; near_of_reference?: number };
    groups: number;
    largest_group: number;
    pairs: number;
  };
  unreadable?: number | null;
  inputs: string[];
  more_inputs: number;
  sources: string[];
  texts: Texts;
  review: boolean;
};

export type ClusterHead = {
  cluster: number;
  name: string;
  size: number;
  representative: Id;
  representative_record: number;
  kept: number;
  weakest: number | null;
  sources?: Record<string, number>;
  beginning?: string;
};

export type Removed = {
  reason: string;
  representative?: Id;
  representative_record?: number;
  score?: number;
  distance?: number;
  sketch_score?: number;
  reference?: Id;
  reference_file?: string;
};

export type Member = { id: Id; record: number; removed?: Removed; beginning?: string };

export type Pair = {
  a: Id;
  b: Id;
  score?: number;
  distance?: number;
  sketch_score?: number;
  cosine?: number;
  alignment?: number;
  jaccard?: number;
  containment?: number;
  agree?: number;
  differ?: number;
};

export type Cluster = ClusterHead & { members: Member[]; pairs?: Pair[] };

export type FoundId = { id: Id; record: number; cluster: number | null; beginning?: string };

export type SnippetPiece = { text: string; is_hit: boolean };

export type FoundText = {
  id: Id;
  record: number;
  cluster: number | null;
  snippet: { pieces: SnippetPiece[]; cut_before: boolean; cut_behind: boolean };
};

/** A part of a search of the texts: it goes on at `next`. */
export type TextsFound = {
  found: FoundText[];
  searched: number;
  records: number;
  next: number | null;
  texts: Texts;
};

export type OneDocument = {
  id: Id;
  record: number;
  kept: boolean;
  removed: Removed | null;
  cluster: number | null;
  beginning: string | null;
};

export type Piece = {
  side: "both" | "a" | "b";
  text: string;
  is_equal?: boolean;
  /** The number of a passage that the other text has elsewhere. */
  moved?: number;
};

export type Measures = {
  score: number;
  cosine: number;
  alignment: number;
  jaccard: number;
  containment: number;
  agree?: number;
  differ?: number;
};

export type Side = {
  file?: string;
  fingerprint?: string | null;
  sketch?: string | null;
  reason?: string;
  characters?: number;
};

/** A comparison of the core, as both servers answer it. */
export type Comparison = {
  near_duplicates: boolean | null;
  same_text: boolean | null;
  score: number | null;
  min_score?: number | null;
  max_distance?: number | null;
  distance: number | null;
  equal_values?: number | null;
  sketch_score?: number | null;
  verified: Measures | null;
  recipe: string;
  rarity?: string;
  a: Side;
  b: Side;
  features_a?: number;
  features_b?: number;
  shared?: number;
  differences: Piece[];
  differences_truncated: boolean;
};

export type Verdict =
  | "same_document"
  | "together_as_pair"
  | "together_through_others"
  | "apart_by_rule"
  | "no_pair";

export type Label = "POS" | "NEG" | "GREY";

export type Judgement = { a: Id; b: Id; label: Label; who: string; when: string };

export type Compared = {
  a: OneDocument;
  b: OneDocument;
  between: { verdict: Verdict; pairs: Pair[] };
  comparison: Comparison | null;
  texts: Texts;
  judgement: Judgement | null;
};

export type Curve = {
  measure: "score" | "distance";
  limit: number;
  step: number;
  pairs: number[];
  removed: number[];
  clusters: number[];
};

export type ToReview = Pair & { judgement: Judgement | null };

export type ReviewFigures = {
  same: number;
  different: number;
  unsure: number;
  precision: number | null;
  interval: [number, number];
};
