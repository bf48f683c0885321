//! What was used last, in bounded memory.

use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hash};
use std::sync::{Arc, Mutex, MutexGuard};

use crate::threads::lock;

/// Locks, so that workers seldom wait for each other.
const SHARDS: usize = 16;

/// Values by key, of which those that were not used for longest go first. Shared by workers.
pub struct LruCache<K, V> {
    shards: [Mutex<Shard<K, V>>; SHARDS],
    /// Bytes of a shard.
    most: usize,
    bytes: fn(&V) -> usize,
}

/// What was used lately, and what was used before that: when the first has half of the bytes, the
/// second goes and the first takes its place.
struct Shard<K, V> {
    young: HashMap<K, Arc<V>>,
    old: HashMap<K, Arc<V>>,
    young_bytes: usize,
}

impl<K: Copy + Eq + Hash, V> LruCache<K, V> {
    /// Keeps values of at most `most` bytes in all; `bytes` measures a value.
    pub fn new(most: usize, bytes: fn(&V) -> usize) -> LruCache<K, V> {
        LruCache { shards: Default::default(), most: most / SHARDS, bytes }
    }

    /// The value of a key, if it is here.
    pub fn get(&self, key: K) -> Option<Arc<V>> {
        let mut shard = self.shard(key);
        if let Some(value) = shard.young.get(&key) {
            return Some(Arc::clone(value));
        }
        let value = shard.old.remove(&key)?;
        shard.keep(key, Arc::clone(&value), (self.bytes)(&value), self.most);
        Some(value)
    }

    /// Keeps the value of a key.
    pub fn keep(&self, key: K, value: Arc<V>) {
        let bytes = (self.bytes)(&value);
        self.shard(key).keep(key, value, bytes, self.most);
    }

    fn shard(&self, key: K) -> MutexGuard<'_, Shard<K, V>> {
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(key);
        // A shard is whole between any two statements that may panic.
        lock(&self.shards[hash as usize % SHARDS])
    }
}

impl<K, V> Default for Shard<K, V> {
    fn default() -> Shard<K, V> {
        Shard { young: HashMap::new(), old: HashMap::new(), young_bytes: 0 }
    }
}

impl<K: Eq + Hash, V> Shard<K, V> {
    fn keep(&mut self, key: K, value: Arc<V>, bytes: usize, most: usize) {
        // One that is larger would stay alone, however long.
        if bytes > most / 2 {
            return;
        }
        if self.young_bytes + bytes > most / 2 {
            self.old = std::mem::take(&mut self.young);
            self.young_bytes = 0;
        }
        if self.young.insert(key, value).is_none() {
            self.young_bytes += bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_used_last_stays() {
        let value = Arc::new([7u8; 30]);
        let mut shard = Shard::default();
        for key in 0..100 {
            shard.keep(key, Arc::clone(&value), value.len(), 20 * value.len());
            assert!(shard.young.contains_key(&key));
            assert!(shard.young.len() + shard.old.len() <= 20);
            assert_eq!(shard.young_bytes, shard.young.len() * value.len());
        }
    }

    #[test]
    fn what_is_asked_for_stays_longer() {
        let recent = LruCache::new(SHARDS * 100, |value: &Vec<u8>| value.len());
        assert!(recent.get(7).is_none());
        recent.keep(7, Arc::new(vec![7; 10]));
        for key in 8..1000 {
            recent.keep(key, Arc::new(vec![0; 10]));
            assert_eq!(recent.get(7).map(|value| value.len()), Some(10));
        }
        assert!(recent.get(8).is_none());
    }
}
