//! The questions of the page. Each answer is bounded; each question is answered on a thread that may wait for the disk.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Path, RawQuery, State};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use nearsift_batch::dedup::{
    ClusterOrder, Explanation, Member, PairExplanation, Snippet, TextSearch, WantedWords,
};
use nearsift_batch::eval::{JudgedLabel, Judgement};
use nearsift_batch::{Error, Interrupt, Text, compare::Comparison};
use nearsift_server::{Problem, ProblemKind, json, page};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use crate::query::{Query, wrong};
use crate::run::{Run, Texts};

/// Questions that are worked on at once; others wait.
const AT_ONCE: usize = 8;

/// The largest group whose pairs are answered: more make a graph and a table that nobody reads.
const PAIRED: u64 = 60;

/// Documents that a search answers at once.
const FOUND: usize = 50;

/// How long a search of texts works for one answer, and how long one waits for another that is at work.
const SEARCH_TIME: Duration = Duration::from_millis(800);
const SEARCH_WAIT: Duration = Duration::from_millis(400);

/// The longest body, in bytes: two documents.
const BODY: usize = 96 << 20;

#[derive(Clone)]
struct App {
    run: Arc<Run>,
    turns: Arc<Semaphore>,
    /// Searches of texts take all threads: one at a time.
    text_search: Arc<Semaphore>,
}

/// The routes of a run.
pub fn router(run: &Arc<Run>) -> Router {
    let app = App {
        run: Arc::clone(run),
        turns: Arc::new(Semaphore::new(AT_ONCE)),
        text_search: Arc::new(Semaphore::new(1)),
    };
    let routes = Router::new()
        .route("/v1/run", get(overview))
        .route("/v1/run/clusters", get(clusters))
        .route("/v1/run/clusters/{number}", get(cluster))
        .route("/v1/run/search", get(search))
        .route("/v1/run/search/texts", get(search_texts))
        .route("/v1/run/document", get(document))
        .route("/v1/run/compare", get(compare).post(compare_texts))
        .route("/v1/run/curve", get(curve))
        .route("/v1/run/borderline", get(borderline))
        .route("/v1/run/review", get(review).post(judge))
        .layer(DefaultBodyLimit::max(BODY));
    page::routes(routes, &run.face()).with_state(app)
}

impl App {
    /// Answers on a thread that may wait.
    async fn answer<T: Serialize + Send + 'static>(
        self,
        work: impl FnOnce(&Run) -> Result<T, Problem> + Send + 'static,
    ) -> Response {
        let closed = || Problem::new(ProblemKind::Stopping, "The view is about to end.");
        let Ok(turn) = self.turns.acquire_owned().await else { return closed().into_response() };
        let run = self.run;
        let done = spawn_blocking(move || {
            let answer = work(&run);
            drop(turn);
            answer
        });
        match done.await {
            Ok(Ok(value)) => json(&value),
            Ok(Err(problem)) => problem.into_response(),
            Err(_) => Problem::new(ProblemKind::Internal, "The question could not be worked on.")
                .into_response(),
        }
    }
}

/// A problem of the run's files.
#[expect(clippy::needless_pass_by_value, reason = "it is what `map_err` calls")]
fn unreadable(error: Error) -> Problem {
    Problem::new(ProblemKind::RunUnreadable, error.to_string())
}

fn no_document(what: &str) -> Problem {
    Problem::new(ProblemKind::NoDocument, format!("No document of the run has this id: {what}"))
}

async fn overview(State(app): State<App>) -> Response {
    app.answer(|run| Ok(run.overview())).await
}

/// A cluster in a list, with the first words of its representative.
#[derive(Serialize)]
struct Listed<T> {
    #[serde(flatten)]
    own: T,
    #[serde(skip_serializing_if = "Option::is_none")]
    beginning: Option<String>,
}

#[derive(Serialize)]
struct ClusterList<T> {
    total: u64,
    clusters: Vec<Listed<T>>,
}

async fn clusters(State(app): State<App>, RawQuery(raw): RawQuery) -> Response {
    app.answer(move |run| {
        let query = Query::parse(raw.as_deref())?;
        let order = match query.text("order") {
            None | Some("size") => ClusterOrder::Size,
            Some("number") => ClusterOrder::Number,
            Some("nearness") => ClusterOrder::Nearness,
            Some(_) => {
                return Err(wrong("order", "there is no such one", "size, nearness or number"));
            }
        };
        let page = run.results.clusters(order, query.text("source"), query.page()?);
        let page = page.map_err(unreadable)?;
        let list = page.clusters.into_iter().map(|own| {
            let beginning = run.beginning(&own.representative, own.representative_record);
            Listed { own, beginning }
        });
        Ok(ClusterList { total: page.total, clusters: list.collect() })
    })
    .await
}

#[derive(Serialize)]
struct OneCluster<H> {
    #[serde(flatten)]
    head: H,
    members: Vec<Listed<Member>>,
    /// All pairs among the members, where these are few and all on the page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pairs: Option<Vec<Map<String, Value>>>,
}

async fn cluster(
    State(app): State<App>,
    number: Result<Path<u32>, axum::extract::rejection::PathRejection>,
    RawQuery(raw): RawQuery,
) -> Response {
    app.answer(move |run| {
        let page = Query::parse(raw.as_deref())?.page()?;
        let number = number.map_or(0, |Path(number)| number);
        let found = run.results.cluster(number, page).map_err(unreadable)?.ok_or_else(|| {
            Problem::new(ProblemKind::NoDocument, "The run has no group of this number.")
        })?;
        let pairs = match found.head.size <= PAIRED {
            true => {
                let members: Vec<_> =
                    found.members.iter().map(|member| (&member.id, member.record)).collect();
                Some(run.results.pairs_among(&members).map_err(unreadable)?)
            }
            false => None,
        };
        let members = found.members.into_iter().map(|own| {
            let beginning = run.beginning(&own.id, own.record);
            Listed { own, beginning }
        });
        Ok(OneCluster { head: found.head, members: members.collect(), pairs })
    })
    .await
}

async fn search(State(app): State<App>, RawQuery(raw): RawQuery) -> Response {
    app.answer(move |run| {
        let query = Query::parse(raw.as_deref())?;
        let found = run.results.search(query.text("q").unwrap_or_default(), FOUND);
        let found = found.map_err(unreadable)?;
        let found = found.into_iter().map(|own| {
            let beginning = run.beginning(&own.id, own.record);
            Listed { own, beginning }
        });
        Ok(found.collect::<Vec<_>>())
    })
    .await
}

/// A document whose text has what was searched for.
#[derive(Serialize)]
struct FoundText {
    id: Value,
    record: u64,
    cluster: Option<u64>,
    snippet: Snippet,
}

#[derive(Serialize)]
struct TextsFound {
    found: Vec<FoundText>,
    /// Records that have been searched so far, of all.
    searched: u64,
    records: u64,
    /// Where the search goes on; none where all texts have been searched.
    next: Option<u64>,
    texts: Texts,
}

/// Asks a search to stop when nobody waits for its answer any more.
struct StopWhenGone(Interrupt);

impl Drop for StopWhenGone {
    fn drop(&mut self) {
        self.0.request();
    }
}

async fn search_texts(State(app): State<App>, RawQuery(raw): RawQuery) -> Response {
    let turn = Arc::clone(&app.text_search).acquire_owned();
    let Ok(Ok(turn)) = tokio::time::timeout(SEARCH_WAIT, turn).await else {
        let detail = "Another search of the texts is at work in this view.";
        return Problem::new(ProblemKind::Busy, detail).into_response();
    };
    let interrupt = Interrupt::default();
    let _waiting = StopWhenGone(interrupt.clone());
    app.answer(move |run| {
        let answer = find_texts(run, raw.as_deref(), &interrupt);
        drop(turn);
        answer
    })
    .await
}

fn find_texts(run: &Run, raw: Option<&str>, interrupt: &Interrupt) -> Result<TextsFound, Problem> {
    let query = Query::parse(raw)?;
    let words = WantedWords::of(query.text("q").unwrap_or_default());
    let words = words.map_err(|error| wrong("q", &error.to_string(), "1 to 16 words"))?;
    let from = query.number("from")?.unwrap_or(0);
    // Before the search: what is read meanwhile is searched by the next question.
    let texts = run.texts();
    let search = TextSearch::new(from, FOUND, SEARCH_TIME, interrupt);
    let Some(found) = run.search_texts(&words, &search).map_err(unreadable)? else {
        let records = run.results.documents();
        return Ok(TextsFound { found: Vec::new(), searched: 0, records, next: None, texts });
    };
    let is_more = found.next < found.read || matches!(texts, Texts::Reading { .. });
    let (next, read) = (is_more.then_some(found.next), found.read);
    let hit = |hit: nearsift_batch::dedup::TextHit| {
        let (id, record, snippet) = (hit.id, hit.record, hit.snippet);
        let own = run.results.at(&id, record).map_err(unreadable)?.ok_or_else(|| {
            let detail = format!("Record {record} of the input is no document of the run.");
            Problem::new(ProblemKind::RunUnreadable, detail)
        })?;
        let cluster = own.cluster.map(|cluster| cluster.cluster);
        Ok(FoundText { id, record, cluster, snippet })
    };
    Ok(TextsFound {
        searched: found.next.min(read),
        records: read.max(if is_more { run.results.documents() } else { 0 }),
        next,
        found: found.hits.into_iter().map(hit).collect::<Result<_, Problem>>()?,
        texts,
    })
}

/// The document that two parameters name: an id, and where several have it the record.
fn named(run: &Run, query: &Query, id: &str, record: &str) -> Result<Explanation, Problem> {
    let value = query.id(id)?;
    if let Some(number) = query.number(record)? {
        let found = run.results.at(&value, number).map_err(unreadable)?;
        return found.ok_or_else(|| no_document(&crate::run::shown(&value)));
    }
    let shown = crate::run::shown(&value);
    let mut found = run.results.find(&shown).map_err(unreadable)?;
    found.retain(|one| one.id == value);
    match found.len() {
        0 => Err(no_document(&shown)),
        1 => Ok(found.remove(0)),
        several => Err(wrong(id, &format!("{several} documents have it"), "a record beside it")),
    }
}

/// A document without the members of its cluster, which may be millions.
#[derive(Serialize)]
struct OneDocument {
    id: Value,
    record: u64,
    kept: bool,
    removed: Option<Map<String, Value>>,
    cluster: Option<u64>,
    beginning: Option<String>,
}

impl OneDocument {
    fn of(run: &Run, explained: &Explanation) -> OneDocument {
        let Explanation { id, record, kept, removed, cluster, .. } = explained;
        OneDocument {
            id: id.clone(),
            record: *record,
            kept: *kept,
            removed: removed.clone(),
            cluster: cluster.as_ref().map(|cluster| cluster.cluster),
            beginning: run.beginning(id, *record),
        }
    }
}

async fn document(State(app): State<App>, RawQuery(raw): RawQuery) -> Response {
    app.answer(move |run| {
        let query = Query::parse(raw.as_deref())?;
        Ok(OneDocument::of(run, &named(run, &query, "id", "record")?))
    })
    .await
}

#[derive(Serialize)]
struct Compared {
    a: OneDocument,
    b: OneDocument,
    between: PairExplanation,
    /// `None` while a text is not at hand: `texts` says why.
    comparison: Option<Comparison>,
    texts: Texts,
    judgement: Option<Judgement>,
}

async fn compare(State(app): State<App>, RawQuery(raw): RawQuery) -> Response {
    app.answer(move |run| {
        let query = Query::parse(raw.as_deref())?;
        let a = named(run, &query, "a", "record_a")?;
        let b = named(run, &query, "b", "record_b")?;
        let judged = |judgements: &nearsift_batch::eval::Judgements| judgements.of(&a.id, &b.id);
        Ok(Compared {
            between: run.results.between(&a, &b).map_err(unreadable)?,
            comparison: run.compare(&a, &b).map_err(unreadable)?,
            texts: run.texts(),
            judgement: run.judgements.as_ref().map_or(Ok(None), judged).map_err(unreadable)?,
            a: OneDocument::of(run, &a),
            b: OneDocument::of(run, &b),
        })
    })
    .await
}

/// A document that the page sends.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Sent {
    #[serde(default)]
    name: String,
    /// The text.
    text: Option<String>,
    /// The bytes of a file, base64.
    bytes_base64: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SentPair {
    a: Sent,
    b: Sent,
}

impl Sent {
    fn text(self, which: &str) -> Result<(String, Text<'static>), Problem> {
        let about = |what: &str| wrong(which, what, "\"text\", or \"bytes_base64\"");
        let text = match (self.text, self.bytes_base64) {
            (Some(text), None) => Text::of_bytes(text.into_bytes(), &self.name),
            (None, Some(coded)) => {
                let bytes = BASE64_STANDARD.decode(coded).map_err(|_| about("it is no base64"))?;
                Text::of_bytes(bytes, &self.name)
            }
            _ => return Err(about("it has no document")),
        };
        Ok((self.name, text))
    }
}

async fn compare_texts(
    State(app): State<App>,
    body: Result<Bytes, axum::extract::rejection::BytesRejection>,
) -> Response {
    app.answer(move |run| {
        let body = body.map_err(|_| {
            Problem::new(
                ProblemKind::BodyTooLarge,
                "The two documents are too large to compare here.",
            )
            .expecting("at most 96 MiB in all")
        })?;
        let pair: SentPair = serde_json::from_slice(&body)
            .map_err(|e| Problem::new(ProblemKind::NotJson, e.to_string()))?;
        let ((name_a, a), (name_b, b)) = (pair.a.text("a")?, pair.b.text("b")?);
        run.compare_texts([name_a, name_b], [a, b]).map_err(unreadable)
    })
    .await
}

async fn curve(State(app): State<App>) -> Response {
    app.answer(|run| run.results.curve().map_err(unreadable)).await
}

#[derive(Serialize)]
struct ToReview {
    #[serde(flatten)]
    pair: Map<String, Value>,
    judgement: Option<Judgement>,
}

async fn borderline(State(app): State<App>, RawQuery(raw): RawQuery) -> Response {
    app.answer(move |run| {
        let query = Query::parse(raw.as_deref())?;
        let settings = run.results.settings();
        let own = settings.max_distance.map(f64::from).or(settings.min_score).unwrap_or(0.0);
        let threshold = query.number("threshold")?.filter(|t: &f64| t.is_finite()).unwrap_or(own);
        let len = query.page()?.len();
        let pairs = run.results.borderline(threshold, len).map_err(unreadable)?;
        let judged = |pair: Map<String, Value>| {
            let ids = pair.get("a").zip(pair.get("b"));
            let judgement = match (&run.judgements, ids) {
                (Some(judgements), Some((a, b))) => judgements.of(a, b).map_err(unreadable)?,
                _ => None,
            };
            Ok(ToReview { pair, judgement })
        };
        pairs.into_iter().map(judged).collect::<Result<Vec<_>, Problem>>()
    })
    .await
}

fn judgements(run: &Run) -> Result<&nearsift_batch::eval::Judgements, Problem> {
    run.judgements.as_ref().ok_or_else(|| {
        Problem::new(ProblemKind::ReadOnly, "The view writes nothing: start it with --review FILE.")
    })
}

async fn review(State(app): State<App>) -> Response {
    app.answer(|run| judgements(run)?.figures().map_err(unreadable)).await
}

/// A judgement as the page sends it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SentJudgement {
    a: Value,
    b: Value,
    label: JudgedLabel,
    #[serde(default)]
    who: String,
}

async fn judge(State(app): State<App>, body: Bytes) -> Response {
    app.answer(move |run| {
        let judgements = judgements(run)?;
        let sent: SentJudgement = serde_json::from_slice(&body)
            .map_err(|e| Problem::new(ProblemKind::NotJson, e.to_string()))?;
        let SentJudgement { a, b, label, who } = sent;
        for id in [&a, &b] {
            let shown = crate::run::shown(id);
            let found = run.results.find(&shown).map_err(unreadable)?;
            if !found.iter().any(|one| one.id == *id) {
                return Err(no_document(&shown));
            }
        }
        let when = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        judgements.append(Judgement { a, b, label, who, when }).map_err(unreadable)?;
        judgements.figures().map_err(unreadable)
    })
    .await
}

#[cfg(test)]
mod tests {
    use axum::http::StatusCode;
    use nearsift_batch::{Context, dedup};

    use super::*;
    use crate::ViewSettings;

    #[test]
    fn one_search_of_texts_works_at_a_time() {
        let folder = tempfile::tempdir().expect("a folder");
        let input = folder.path().join("in.jsonl");
        std::fs::write(&input, "{\"id\":1,\"text\":\"words\"}\n").expect("an input");
        let inputs = nearsift_batch::open(&[input], nearsift_io::ReadOptions::default());
        let output = dedup::Output::new(folder.path().join("run"));
        let settings = dedup::Settings::default();
        dedup::run(&inputs.expect("inputs"), &settings, &output, &Context::default())
            .expect("a run");
        let run = Run::open(ViewSettings::new(folder.path().join("run"))).expect("an opened run");
        let app = App {
            run: Arc::new(run),
            turns: Arc::new(Semaphore::new(1)),
            text_search: Arc::new(Semaphore::new(1)),
        };
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_time().build();
        runtime.expect("a runtime").block_on(async {
            let ask = || search_texts(State(app.clone()), RawQuery(Some("q=words".to_owned())));
            let turn = Arc::clone(&app.text_search).acquire_owned().await.expect("a turn");
            assert_eq!(ask().await.status(), StatusCode::SERVICE_UNAVAILABLE);
            drop(turn);
            assert_eq!(ask().await.status(), StatusCode::OK);
            // One whose client goes while it waits gives its turn back.
            let others = Arc::clone(&app.turns).acquire_owned().await.expect("a turn");
            let gone = tokio::time::timeout(Duration::from_millis(20), ask()).await;
            assert!(gone.is_err());
            drop(others);
            assert_eq!(ask().await.status(), StatusCode::OK);
        });
    }
}
