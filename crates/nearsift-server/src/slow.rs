//! The slowest requests of late, one by one: what was asked and how long it took, and nothing that a client chose.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;
use utoipa::ToSchema;

/// The most requests that are kept.
const MOST: usize = 32;

/// How long a request is kept.
const LATE: Duration = Duration::from_secs(3600);

/// A request that took long.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct SlowRequest {
    pub(crate) method: String,
    /// The path as it was matched, with the names of its variables.
    pub(crate) route: String,
    /// The collection that it was for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) collection: Option<String>,
    pub(crate) status: u16,
    /// From its head to its answer.
    pub(crate) milliseconds: f64,
    /// The length of its body as the client announced it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) body_bytes: Option<u64>,
    /// When it was answered: RFC 3339, in UTC.
    pub(crate) answered: String,
}

/// The slowest requests of the last hour, at most 32.
#[derive(Default)]
pub(crate) struct SlowRequests(Mutex<Vec<(Instant, SlowRequest)>>);

impl SlowRequests {
    /// Keeps a request where it is among the slowest.
    pub(crate) fn add(&self, request: SlowRequest) {
        self.add_at(Instant::now(), request);
    }

    fn add_at(&self, now: Instant, request: SlowRequest) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|(since, _)| now.saturating_duration_since(*since) < LATE);
        let place = kept.partition_point(|(_, one)| one.milliseconds >= request.milliseconds);
        if place < MOST {
            kept.insert(place, (now, request));
            kept.truncate(MOST);
        }
    }

    /// The slowest first.
    pub(crate) fn list(&self) -> Vec<SlowRequest> {
        self.list_at(Instant::now())
    }

    fn list_at(&self, now: Instant) -> Vec<SlowRequest> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let late = kept.iter().filter(|(since, _)| now.saturating_duration_since(*since) < LATE);
        late.map(|(_, request)| request.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_of_the_last_hour_are_kept() {
        let request = |milliseconds: f64| SlowRequest {
            method: "POST".to_owned(),
            route: "/v1/check".to_owned(),
            collection: None,
            status: 200,
            milliseconds,
            body_bytes: None,
            answered: String::new(),
        };
        let slow = SlowRequests::default();
        let begun = Instant::now();
        let at = |minutes: u64| begun + Duration::from_secs(60 * minutes);
        let times = |minutes: u64| -> Vec<f64> {
            slow.list_at(at(minutes)).iter().map(|one| one.milliseconds).collect()
        };
        slow.add_at(at(0), request(500.0));
        (0..100).for_each(|n| slow.add_at(at(30), request(f64::from(n * 7 % 100))));
        let expect: Vec<f64> = [500.0].into_iter().chain((69..100).rev().map(f64::from)).collect();
        assert_eq!(times(59), expect);
        assert_eq!(times(60), expect[1..]);
        slow.add_at(at(61), request(1.0));
        assert_eq!(times(61).last(), Some(&1.0));
        slow.add_at(at(91), request(2.0));
        assert_eq!(times(91), [2.0, 1.0]);
    }
}
