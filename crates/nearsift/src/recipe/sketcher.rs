//! From a text to its dual sketch.

use super::fingerprinter::{Fingerprinter, Rarity};
use super::spec::Form;
use super::{Kind, NoFingerprint};
use crate::sketch::{Keys, Sketch, minwise};

/// A document's sketch, and the keys that find candidates for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sketched {
    /// The sketch.
    pub sketch: Sketch,
    /// The candidate keys.
    pub keys: Keys,
}

/// A feature in more than about one document of seven, by its rarity in sixteenths of a bit, takes no
/// part in the minwise values: what so many documents have says nothing.
const COMMON: u32 = 44;

impl Fingerprinter<'_> {
    /// The hashes of the distinct features of the text that was last sketched, in a fixed order.
    pub fn sketched_features(&self) -> &[u64] {
        &self.features.hashes
    }

    /// The dual sketch of a text, or why it has none.
    ///
    /// # Panics
    /// When the recipe [makes no sketches](super::Recipe::is_sketch).
    ///
    /// # Complexity
    /// O(bytes).
    ///
    /// ```
    /// use nearsift::recipe::Recipe;
    /// let recipe = Recipe::parse("sketch")?;
    /// let mut fingerprinter = recipe.fingerprinter()?;
    /// let a = fingerprinter.sketch("今天下午，市图书馆举办了一场面向儿童的绘本阅读活动。").unwrap();
    /// let b = fingerprinter.sketch("今天下午，市图书馆举办了一场儿童绘本阅读活动。").unwrap();
    /// let c = fingerprinter.sketch("本报讯：昨天的大雨使两条地铁线路停运了三个小时。").unwrap();
    /// assert!(a.sketch.score(&b.sketch) > a.sketch.score(&c.sketch));
    /// # Ok::<(), nearsift::recipe::RecipeError>(())
    /// ```
    pub fn sketch(&mut self, text: &str) -> Result<Sketched, NoFingerprint> {
        let recipe = self.recipe;
        let Kind::Native(spec) = &recipe.kind else { panic!("{recipe} makes no sketches") };
        assert!(spec.form == Form::Sketch, "{recipe} makes no sketches");
        let rarity = Rarity::of_weight(recipe, spec).expect("a sketch weighs by rarity");

        self.prepare(spec, text);
        self.hash_features(spec);
        let Fingerprinter { hashes, once, counter, features, telling, votes, .. } = self;
        let (once, rest) = once.split(hashes);
        counter.clear();
        for &hash in rest {
            counter.add(hash);
        }
        features.clear();
        telling.clear();
        let counted = counter.hashes().iter().copied().zip(counter.counts().iter().copied());
        for (hash, count) in once.iter().map(|&hash| (hash, 1)).chain(counted) {
            let sixteenths = rarity.sixteenths(hash, None);
            features.push(hash, spec.weight.weight(count, sixteenths).min(255) as u8);
            if sixteenths > COMMON {
                telling.push(hash);
            }
        }

        let found = features.len() as u32;
        if found < spec.min_features {
            return Err(if self.has_letters() {
                NoFingerprint::TooFewFeatures { found, needed: spec.min_features }
            } else {
                NoFingerprint::Empty
            });
        }
        votes.clear();
        votes.add(&features.hashes, &features.weights);
        let simhash = votes.finish().expect("every feature has a weight");
        // A text of common features alone has nothing else to tell it by.
        let values = minwise::values(telling).or_else(|| minwise::values(&features.hashes));
        let values = values.expect("there are features");
        let mut words = [0; crate::sketch::WORDS];
        words[..4].copy_from_slice(simhash.words());
        words[4..].copy_from_slice(&minwise::nibbles(&values));
        Ok(Sketched { sketch: Sketch::from_words(words), keys: minwise::keys(&values) })
    }
}
