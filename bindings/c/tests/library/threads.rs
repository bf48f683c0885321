//! Handles that threads share, and threads with a handle each.

use std::ptr::null;

use nearsift_c::*;

use crate::support::{EMPTY, Index, Recipe, TEXTS, message, ok, raw};

/// A pointer that threads share.
#[derive(Clone, Copy)]
struct Shared<T>(*mut T);

// SAFETY: the header says that all threads may use such a handle at the same time.
unsafe impl<T> Send for Shared<T> {}
// SAFETY: the same.
unsafe impl<T> Sync for Shared<T> {}

impl<T> Shared<T> {
    fn get(&self) -> *mut T {
        self.0
    }
}

#[test]
fn threads_share_a_recipe_and_keep_their_own_messages() {
    let recipe = Recipe::parse("simhash64");
    let expected: Vec<_> = TEXTS.iter().map(|text| recipe.fingerprint(text)).collect();
    let shared = Shared(recipe.0);
    std::thread::scope(|scope| {
        for thread in 0..4usize {
            let (shared, expected) = (&shared, &expected);
            scope.spawn(move || {
                for round in 0..200 {
                    let number = (thread + round) % TEXTS.len();
                    let (data, length) = raw(TEXTS[number]);
                    let mut found = EMPTY;
                    let features = std::ptr::null_mut();
                    ok(call!(nearsift_fingerprint_text(
                        shared.get(),
                        data,
                        length,
                        &mut found,
                        features
                    )));
                    assert_eq!(found, expected[number]);
                    let bad = format!("no-recipe-{thread}");
                    let (data, length) = raw(&bad);
                    let mut none = std::ptr::null_mut();
                    let status = call!(nearsift_recipe_parse(data, length, &mut none));
                    assert_eq!(status, nearsift_status::Recipe);
                    assert!(message().contains(&bad), "{}", message());
                }
            });
        }
    });
}

/// Threads that add the same text at the same time: one of them does, and the others learn which.
#[test]
fn threads_share_an_index() {
    let folder = tempfile::tempdir().expect("a folder");
    let index = Index::create(&folder.path().join("seen"), null());
    let shared = Shared(index.0);
    let added: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|thread| {
                let shared = &shared;
                scope.spawn(move || {
                    let index = std::mem::ManuallyDrop::new(Index(shared.get()));
                    let add = |(number, text): (usize, &&str)| {
                        let (outcome, near) =
                            index.check_and_insert(&format!("{thread}-{number}"), text);
                        assert_eq!(outcome == nearsift_outcome::Near, near.is_some());
                        usize::from(outcome == nearsift_outcome::Added)
                    };
                    TEXTS.iter().enumerate().map(add).sum::<usize>()
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).sum()
    });
    // Three of the texts are near each other.
    assert_eq!(added, 2);
}

#[test]
fn threads_have_an_index_each() {
    let folder = tempfile::tempdir().expect("a folder");
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let path = folder.path().join(format!("seen-{thread}"));
            scope.spawn(move || {
                let index = Index::create(&path, null());
                assert_eq!(index.check_and_insert("a", TEXTS[thread]).0, nearsift_outcome::Added);
                assert_eq!(index.query(TEXTS[thread], 0).len(), 1);
                assert_eq!(index.query(TEXTS[1 - thread], 0).len(), 0);
            });
        }
    });
}
