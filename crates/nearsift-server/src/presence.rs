//! Who is connected: how many connections there may be, and which of them gives way when there is no room for another.
//!
//! A connection is idle unless it has a request that is worked on; one whose request was refused, as without a key, is idle.
//! Where there is no room, the longest idle connection ends, first those that have never shown a key of the service. So
//! clients that only hold connections shut nobody out: they lose them to whoever comes with a request.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::config::Config;

/// A client that takes answers takes at least this much of one in a second.
const BYTES_A_SECOND: usize = 64 << 10;

/// Its place among idle connections: those that have shown a key come last, then the longest idle come first.
type IdleKey = (bool, Instant, u64);

/// What a connection does.
#[derive(Debug)]
struct Entry {
    address: IpAddr,
    /// Requests that are worked on.
    under_way: u32,
    /// From when on it has been idle.
    since: Instant,
    has_asked: bool,
    has_shown_a_key: bool,
    /// Answers that were not taken in full yet: when they were made, and the size in bytes.
    unsent: BTreeMap<u64, (Instant, usize)>,
    presence: Arc<Presence>,
}

#[derive(Debug, Default)]
struct Open {
    next: u64,
    all: BTreeMap<u64, Entry>,
    idle: BTreeSet<IdleKey>,
    by_address: HashMap<IpAddr, usize>,
}

impl Entry {
    fn idle_key(&self, number: u64) -> IdleKey {
        (self.has_shown_a_key, self.since, number)
    }
}

impl Open {
    /// Changes a connection, if it is there still, and its place among the idle ones.
    fn change(&mut self, number: u64, change: impl FnOnce(&mut Entry)) {
        let Some(entry) = self.all.get_mut(&number) else { return };
        self.idle.remove(&entry.idle_key(number));
        change(entry);
        if entry.under_way == 0 {
            self.idle.insert(entry.idle_key(number));
        }
    }

    fn remove(&mut self, number: u64) -> Option<Entry> {
        let entry = self.all.remove(&number)?;
        self.idle.remove(&entry.idle_key(number));
        if let Some(count) = self.by_address.get_mut(&entry.address) {
            *count -= 1;
            if *count == 0 {
                self.by_address.remove(&entry.address);
            }
        }
        Some(entry)
    }

    /// Ends a connection.
    fn cut(&mut self, number: u64) -> bool {
        let entry = self.remove(number);
        entry.inspect(|entry| entry.presence.cut.notify_one()).is_some()
    }
}

/// All connections that are open.
#[derive(Debug)]
pub(crate) struct Connections {
    open: Arc<Mutex<Open>>,
    most: usize,
    most_of_address: usize,
}

/// A connection that has found room.
pub(crate) struct Entered {
    pub(crate) presence: Arc<Presence>,
    /// Whether another one had to end for it.
    pub(crate) gave_way: bool,
}

/// An open connection, as requests on it see it.
#[derive(Debug)]
pub(crate) struct Presence {
    number: u64,
    open: Arc<Mutex<Open>>,
    cut: Notify,
}

/// When a connection ends as things are, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expiry {
    /// It has no request.
    Idle(Instant),
    /// It does not take its answers.
    Unsent(Instant),
}

impl Expiry {
    pub(crate) fn at(self) -> Instant {
        match self {
            Expiry::Idle(at) | Expiry::Unsent(at) => at,
        }
    }
}

fn lock(open: &Mutex<Open>) -> MutexGuard<'_, Open> {
    open.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What counts as one address: of IPv6 the network, since a machine has 2^64 addresses of its own.
fn counted(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) if !v6.is_loopback() => {
            let network = u128::from(v6) >> 64 << 64;
            Ipv6Addr::from(network).into()
        }
        other => other,
    }
}

impl Connections {
    /// Room for `most` connections, and for `most_of_address` of one address.
    pub(crate) fn new(most: usize, most_of_address: usize) -> Connections {
        Connections { open: Arc::default(), most, most_of_address }
    }

    /// Makes room for a connection, by ending an idle one if need be; `None` when no connection is idle.
    ///
    /// # Complexity
    /// O(log n) for n connections; O(n) for an address that has as many as it may.
    pub(crate) fn enter(&self, address: IpAddr) -> Option<Entered> {
        let address = counted(address);
        let mut open = lock(&self.open);
        let of_address = open.by_address.get(&address).copied().unwrap_or(0);
        let gives_way = if of_address >= self.most_of_address {
            let is_of_address = |key: &&IdleKey| open.all[&key.2].address == address;
            Some(open.idle.iter().find(is_of_address)?.2)
        } else if open.all.len() >= self.most {
            Some(open.idle.first()?.2)
        } else {
            None
        };
        let gave_way = gives_way.is_some_and(|number| open.cut(number));
        let number = open.next;
        open.next += 1;
        let presence =
            Arc::new(Presence { number, open: Arc::clone(&self.open), cut: Notify::new() });
        let entry = Entry {
            address,
            under_way: 0,
            since: Instant::now(),
            has_asked: false,
            has_shown_a_key: false,
            unsent: BTreeMap::new(),
            presence: Arc::clone(&presence),
        };
        open.idle.insert(entry.idle_key(number));
        open.all.insert(number, entry);
        *open.by_address.entry(address).or_default() += 1;
        Some(Entered { presence, gave_way })
    }

    /// Forgets a connection that has ended.
    pub(crate) fn leave(&self, presence: &Presence) {
        lock(&self.open).remove(presence.number);
    }

    /// Ends the connection whose answer has waited longest to be taken, for the sake of its memory.
    pub(crate) fn cut_slowest(&self) -> bool {
        let mut open = lock(&self.open);
        let oldest = open.all.iter().filter_map(|(number, entry)| {
            let waits = entry.unsent.values().map(|answer| answer.0).min()?;
            Some((waits, *number))
        });
        oldest.min().is_some_and(|(_, number)| open.cut(number))
    }
}

impl Presence {
    fn change(&self, change: impl FnOnce(&mut Entry)) {
        lock(&self.open).change(self.number, change);
    }

    /// Ends when the connection has to.
    pub(crate) async fn is_cut(&self) {
        self.cut.notified().await;
    }

    /// A request has come.
    pub(crate) fn asked(&self) {
        self.change(|entry| {
            entry.has_asked = true;
            entry.since = Instant::now();
        });
    }

    /// A request is worked on, until what is returned is dropped.
    pub(crate) fn begin(self: &Arc<Presence>, has_shown_a_key: bool) -> UnderWay {
        self.change(|entry| {
            entry.under_way += 1;
            entry.has_shown_a_key |= has_shown_a_key;
        });
        UnderWay(Arc::clone(self))
    }

    /// An answer waits to be taken, until what is returned is dropped.
    pub(crate) fn unsent(self: &Arc<Presence>, bytes: usize) -> Unsent {
        let mut open = lock(&self.open);
        let answer = open.next;
        open.next += 1;
        open.change(self.number, |entry| {
            entry.unsent.insert(answer, (Instant::now(), bytes));
        });
        Unsent { presence: Arc::clone(self), answer }
    }

    /// When the connection ends, if nothing happens until then.
    pub(crate) fn expires(&self, config: &Config) -> Expiry {
        let open = lock(&self.open);
        // One that was cut learns it elsewhere.
        let Some(entry) = open.all.get(&self.number) else {
            return Expiry::Idle(Instant::now() + config.idle_timeout);
        };
        let limit = |(made, bytes): &(Instant, usize)| {
            *made + config.write_timeout + Duration::from_secs((bytes / BYTES_A_SECOND) as u64)
        };
        if let Some(first) = entry.unsent.values().map(limit).min() {
            return Expiry::Unsent(first);
        }
        if entry.under_way > 0 {
            return Expiry::Idle(Instant::now() + config.idle_timeout);
        }
        let limit = if entry.has_asked { config.idle_timeout } else { config.header_timeout };
        Expiry::Idle(entry.since + limit)
    }
}

/// A request that is worked on.
pub(crate) struct UnderWay(Arc<Presence>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.change(|entry| {
            entry.under_way -= 1;
            entry.since = Instant::now();
        });
    }
}

/// An answer that was not taken in full yet.
pub(crate) struct Unsent {
    presence: Arc<Presence>,
    answer: u64,
}

impl Drop for Unsent {
    fn drop(&mut self) {
        self.presence.change(|entry| {
            entry.unsent.remove(&self.answer);
            entry.since = Instant::now();
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> IpAddr {
        [192, 0, 2, last].into()
    }

    fn enter(connections: &Connections, last: u8) -> Option<Arc<Presence>> {
        // Moments differ.
        std::thread::sleep(Duration::from_millis(2));
        connections.enter(address(last)).map(|entered| entered.presence)
    }

    fn is_there(connections: &Connections, presence: &Presence) -> bool {
        lock(&connections.open).all.contains_key(&presence.number)
    }

    #[test]
    fn the_longest_idle_gives_way_and_who_has_shown_a_key_last() {
        let connections = Connections::new(3, 3);
        let [first, second, third] = [1, 2, 3].map(|n| enter(&connections, n).unwrap());
        // The first is known by its key, the second works.
        drop(first.begin(true));
        let works = second.begin(false);
        let fourth = enter(&connections, 4).unwrap();
        assert!(!is_there(&connections, &third));
        let fifth = enter(&connections, 5).unwrap();
        assert!(!is_there(&connections, &fourth));
        let _busy = fifth.begin(false);
        let sixth = enter(&connections, 6).unwrap();
        assert!(!is_there(&connections, &first));
        let _busy = sixth.begin(true);
        assert!(enter(&connections, 7).is_none(), "all work");
        drop(works);
        assert!(enter(&connections, 7).is_some());
        assert!(!is_there(&connections, &second));
    }

    #[test]
    fn an_address_has_its_own_limit() {
        let connections = Connections::new(10, 2);
        let other = enter(&connections, 9).unwrap();
        let first = enter(&connections, 1).unwrap();
        let second = enter(&connections, 1).unwrap();
        let third = enter(&connections, 1).unwrap();
        assert!(!is_there(&connections, &first) && is_there(&connections, &other));
        let _both_work = [second.begin(false), third.begin(false)];
        assert!(enter(&connections, 1).is_none());
        assert!(enter(&connections, 2).is_some());
        for presence in [&second, &third] {
            connections.leave(presence);
        }
        assert!(enter(&connections, 1).is_some());
        // Neighbours in an IPv6 network are one.
        let networks =
            ["2001:db8::1", "2001:db8::ffff:2", "2001:db8:0:1::1", "::1", "::ffff:192.0.2.1"];
        let networks = networks.map(|address| counted(address.parse().unwrap()));
        assert_eq!(networks[0], networks[1]);
        assert_ne!(networks[0], networks[2]);
        assert_eq!(networks[3], Ipv6Addr::LOCALHOST);
        assert_eq!(networks[4], address(1));
    }

    #[test]
    fn answers_that_are_not_taken_bring_the_end_and_the_oldest_goes_first() {
        let config = Config::new(std::path::Path::new("data"));
        let connections = Connections::new(10, 10);
        let [first, second] = [1, 2].map(|n| enter(&connections, n).unwrap());
        assert!(!connections.cut_slowest());
        let made = Instant::now();
        let small = first.unsent(100);
        let large = second.unsent(64 << 20);
        let Expiry::Unsent(at) = first.expires(&config) else { panic!("it waits") };
        assert!(at < made + config.write_timeout + Duration::from_secs(1));
        let Expiry::Unsent(at) = second.expires(&config) else { panic!("it waits") };
        assert!(at >= made + config.write_timeout + Duration::from_secs(1024));
        drop(small);
        assert!(matches!(first.expires(&config), Expiry::Idle(_)));
        let again = first.unsent(100);
        assert!(connections.cut_slowest());
        assert!(is_there(&connections, &first) && !is_there(&connections, &second));
        drop((large, again));
    }
}
