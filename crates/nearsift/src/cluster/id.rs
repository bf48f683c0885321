//! Names of clusters that outlast a run.

use std::fmt;

use crate::text::key::content_key;

/// A name of a cluster that depends on who its members are, and on nothing else: not on their number
/// in the input, the files that they came in, the member that is kept or the other clusters.
///
/// It is the [key](content_key) of the bytewise smallest identity among the members, whatever the caller takes for
/// an identity: usually a document's id. Clusters of one run share no member, so they share no name
/// where ids are unique. A cluster keeps its name when members come or go, as long as that one stays
/// its smallest.
///
/// It prints as 32 lower-case hex digits.
///
/// ```
/// use nearsift::cluster::ClusterId;
/// let id = ClusterId::of(["b", "a"]).expect("members");
/// assert_eq!(Some(id), ClusterId::of(["a", "b", "c"]));
/// assert_ne!(Some(id), ClusterId::of(["b", "c"]));
/// assert_eq!(id.to_string().len(), 32);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClusterId(u128);

impl ClusterId {
    /// The name of a cluster of the given members; `None` when there is none.
    ///
    /// # Complexity
    /// One comparison for each member.
    pub fn of<T: AsRef<[u8]>>(identities: impl IntoIterator<Item = T>) -> Option<ClusterId> {
        let smallest = identities.into_iter().min_by(|x, y| x.as_ref().cmp(y.as_ref()))?;
        Some(ClusterId(content_key([smallest])))
    }
}

impl fmt::Display for ClusterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_fixed() {
        let name = |members: &[&str]| ClusterId::of(members).map(|id| id.to_string());
        assert_eq!(name(&[]), None);
        // BLAKE3 of no bytes, as its test vectors have it.
        assert_eq!(name(&[""]).as_deref(), Some("af1349b9f5f9a1a6a0404dea36dcc949"));
        assert_eq!(name(&["二", "一", "三"]), name(&["一"]));
        assert_ne!(name(&["a"]), name(&["A"]));
    }
}
