//! The profiles of the documents that were compared last.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nearsift::verify::Profile;

/// Bytes of profiles that are kept.
const KEPT: usize = 256 << 20;

/// Locks, so that workers seldom wait for each other.
const SHARDS: usize = 16;

/// Profiles by document, of which those that were not used for longest go first. Shared by workers.
#[derive(Default)]
pub struct Profiles {
    shards: [Mutex<Shard>; SHARDS],
}

/// What was used lately, and what was used before that: when the first has half of the bytes, the
/// second goes and the first takes its place.
#[derive(Default)]
struct Shard {
    young: HashMap<u32, Arc<Profile>>,
    old: HashMap<u32, Arc<Profile>>,
    young_bytes: usize,
}

impl Profiles {
    /// The profile of a document, if it is here.
    pub fn get(&self, document: u32) -> Option<Arc<Profile>> {
        let mut shard = self.shard(document);
        if let Some(profile) = shard.young.get(&document) {
            return Some(Arc::clone(profile));
        }
        let profile = shard.old.remove(&document)?;
        shard.keep(document, Arc::clone(&profile), KEPT / SHARDS);
        Some(profile)
    }

    /// Keeps the profile of a document.
    pub fn keep(&self, document: u32, profile: Arc<Profile>) {
        self.shard(document).keep(document, profile, KEPT / SHARDS);
    }

    fn shard(&self, document: u32) -> MutexGuard<'_, Shard> {
        // A shard is whole between any two statements that may panic.
        self.shards[document as usize % SHARDS].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shard {
    fn keep(&mut self, document: u32, profile: Arc<Profile>, most: usize) {
        let bytes = profile.bytes();
        if self.young_bytes + bytes > most / 2 {
            self.old = std::mem::take(&mut self.young);
            self.young_bytes = 0;
        }
        if self.young.insert(document, profile).is_none() {
            self.young_bytes += bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_used_last_stays() {
        let profile = Arc::new(Profile::of("今天北京晴", |_| 16));
        let bytes = profile.bytes();
        let mut shard = Shard::default();
        for document in 0..100 {
            shard.keep(document, Arc::clone(&profile), 20 * bytes);
            assert!(shard.young.contains_key(&document));
            assert!(shard.young.len() + shard.old.len() <= 20);
            assert_eq!(shard.young_bytes, shard.young.len() * bytes);
        }
    }

    #[test]
    fn kept_profiles_are_found() {
        let profiles = Profiles::default();
        assert!(profiles.get(7).is_none());
        profiles.keep(7, Arc::new(Profile::of("今天北京晴", |_| 16)));
        assert_eq!(profiles.get(7).map(|p| p.characters()), Some(5));
        assert!(profiles.get(7 + SHARDS as u32).is_none());
    }
}
