//! Sorting what is nearly in order.

/// Sorts items of which none is far from its place, one after the other.
///
/// # Complexity
/// O(n + the sum of how far each is from its place).
#[inline(always)]
pub(crate) fn sort_nearly_sorted<T: Copy + Ord>(items: &mut [T]) {
    for next in 1..items.len() {
        let item = items[next];
        let mut place = next;
        while place > 0 && items[place - 1] > item {
            items[place] = items[place - 1];
            place -= 1;
        }
        items[place] = item;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::sort_nearly_sorted;

    proptest! {
        #[test]
        fn any_items_are_sorted(mut items in prop::collection::vec(0u8..40, 0..60)) {
            let mut expect = items.clone();
            expect.sort_unstable();
            sort_nearly_sorted(&mut items);
            prop_assert_eq!(items, expect);
        }
    }
}
