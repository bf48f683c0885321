//! What the tests share.

use std::ffi::{CStr, c_char};
use std::ptr::null_mut;

use nearsift_c::*;

/// Three near texts, of which one is in Traditional characters, and one that is near to none.
pub const TEXTS: [&str; 4] = [
    "今天下午，市图书馆举办了一场面向儿童的绘本阅读活动。",
    "本报讯：昨天的大雨使两条地铁线路停运了三个小时。",
    "今天下午，市图书馆举办了一场儿童绘本阅读活动。",
    "今天下午,市圖書館舉辦了一場面向兒童的繪本閱讀活動",
];

/// A string's bytes, and their number.
pub fn raw(text: &str) -> (*const c_char, usize) {
    (text.as_ptr().cast(), text.len())
}

pub fn strings(texts: &[&str]) -> Vec<nearsift_str> {
    texts.iter().map(|text| nearsift_str { data: raw(text).0, length: text.len() }).collect()
}

/// The message of the last failure of this thread.
pub fn message() -> String {
    // SAFETY: the message is NUL-terminated, and read before the next call.
    let message = unsafe { CStr::from_ptr(nearsift_last_error()) };
    message.to_str().expect("UTF-8").to_owned()
}

#[track_caller]
pub fn ok(status: nearsift_status) {
    assert_eq!(status, nearsift_status::Ok, "{}", message());
}

/// A string of the library's, freed.
pub fn taken(mut string: nearsift_string) -> String {
    // SAFETY: the library has made it, and NUL follows it.
    let text = unsafe { CStr::from_ptr(string.data) }.to_str().expect("UTF-8").to_owned();
    assert_eq!(text.len(), string.length);
    ok(call!(nearsift_string_free(&mut string)));
    ok(call!(nearsift_string_free(&mut string)));
    text
}

/// A string that the library writes.
pub fn string(write: impl FnOnce(*mut nearsift_string) -> nearsift_status) -> String {
    let mut string = nearsift_string { data: null_mut(), length: 0 };
    ok(write(&mut string));
    taken(string)
}

/// A recipe, freed when it is dropped.
pub struct Recipe(pub *mut nearsift_recipe);

impl Recipe {
    #[track_caller]
    pub fn parse(written: &str) -> Recipe {
        let mut recipe = null_mut();
        let (data, length) = raw(written);
        ok(call!(nearsift_recipe_parse(data, length, &mut recipe)));
        Recipe(recipe)
    }

    #[track_caller]
    pub fn fingerprint(&self, text: &str) -> nearsift_fingerprint {
        let mut fingerprint = EMPTY;
        let (data, length) = raw(text);
        ok(call!(nearsift_fingerprint_text(self.0, data, length, &mut fingerprint, null_mut())));
        fingerprint
    }
}

impl Drop for Recipe {
    fn drop(&mut self) {
        ok(call!(nearsift_recipe_free(self.0)));
    }
}

pub const EMPTY: nearsift_fingerprint = nearsift_fingerprint { bits: 0, words: [0; 4] };

/// A method, freed when it is dropped.
pub struct Method(pub *mut nearsift_method);

impl Method {
    #[track_caller]
    pub fn fingerprints(recipe: &Recipe, max_distance: u32) -> Method {
        let mut method = null_mut();
        ok(call!(nearsift_method_fingerprints(recipe.0, max_distance, &mut method)));
        Method(method)
    }

    #[track_caller]
    pub fn texts(min_score: f64) -> Method {
        let mut method = null_mut();
        ok(call!(nearsift_method_texts(null_mut(), min_score, &mut method)));
        Method(method)
    }

    #[track_caller]
    pub fn sketches(min_score: f64) -> Method {
        let mut method = null_mut();
        ok(call!(nearsift_method_sketches(null_mut(), min_score, &mut method)));
        Method(method)
    }
}

impl Drop for Method {
    fn drop(&mut self) {
        ok(call!(nearsift_method_free(self.0)));
    }
}

/// A durable index in a folder, closed when it is dropped.
pub struct Index(pub *mut nearsift_index);

impl Index {
    #[track_caller]
    pub fn create(folder: &std::path::Path, method: *const nearsift_method) -> Index {
        let mut index = null_mut();
        let (data, length) = raw(folder.to_str().expect("UTF-8"));
        ok(call!(nearsift_index_create(data, length, method, &mut index)));
        Index(index)
    }

    #[track_caller]
    pub fn open(folder: &std::path::Path) -> Index {
        let mut index = null_mut();
        let (data, length) = raw(folder.to_str().expect("UTF-8"));
        ok(call!(nearsift_index_open(data, length, null_mut(), &mut index)));
        Index(index)
    }

    /// What becomes of a document, and the one that it is near to.
    #[track_caller]
    pub fn check_and_insert(&self, id: &str, text: &str) -> (nearsift_outcome, Option<String>) {
        let mut outcome = nearsift_outcome::Absent;
        let mut matches = null_mut();
        let ((id, id_length), (data, length)) = (raw(id), raw(text));
        ok(call!(nearsift_index_check_and_insert(
            self.0,
            id,
            id_length,
            data,
            length,
            &mut outcome,
            &mut matches
        )));
        let near = (!matches.is_null()).then(|| read(matches).swap_remove(0).0);
        (outcome, near)
    }

    /// The ids of all near documents, with what they rest on, distances and scores.
    #[track_caller]
    pub fn query(&self, text: &str, limit: usize) -> Vec<(String, nearsift_evidence, u32, f64)> {
        let mut matches = null_mut();
        let (data, length) = raw(text);
        ok(call!(nearsift_index_query(self.0, data, length, limit, &mut matches)));
        read(matches)
    }
}

impl Drop for Index {
    fn drop(&mut self) {
        ok(call!(nearsift_index_close(self.0)));
    }
}

/// Matches as values, freed.
#[track_caller]
pub fn read(matches: *mut nearsift_matches) -> Vec<(String, nearsift_evidence, u32, f64)> {
    let (mut count, mut is_truncated) = (0, true);
    ok(call!(nearsift_matches_count(matches, &mut count, &mut is_truncated)));
    assert!(!is_truncated);
    let each = (0..count).map(|place| {
        let mut found = nearsift_match {
            id: null_mut(),
            id_length: 0,
            evidence: nearsift_evidence::Text,
            distance: 0,
            score: 0.0,
        };
        ok(call!(nearsift_matches_get(matches, place, &mut found)));
        // SAFETY: the id is NUL-terminated, and the matches are not freed yet.
        let id = unsafe { CStr::from_ptr(found.id) }.to_str().expect("UTF-8").to_owned();
        assert_eq!(id.len(), found.id_length);
        (id, found.evidence, found.distance, found.score)
    });
    let read = each.collect();
    ok(call!(nearsift_matches_free(matches)));
    read
}
