//! An order of pairs in which those of the same documents are close to each other.

use crate::sketch::join::Pair;

/// The places of the pairs in an order in which a document's pairs follow each other closely: its
/// documents are numbered breadth first, group of linked documents by group, and a pair stands where the
/// later of its two does.
///
/// # Complexity
/// O(pairs log pairs); 24 bytes a pair while it runs.
///
/// # References
/// Cuthill and McKee, 'Reducing the bandwidth of sparse symmetric matrices', ACM 1969.
pub fn by_neighbourhood(pairs: &[Pair]) -> Vec<u32> {
    by_neighbourhood_of(pairs.iter().map(|pair| (pair.a, pair.b)))
}

/// The same of pairs of documents alone.
pub fn by_neighbourhood_of(pairs: impl ExactSizeIterator<Item = (u32, u32)> + Clone) -> Vec<u32> {
    let mut documents: Vec<u32> = pairs.clone().flat_map(|(a, b)| [a, b]).collect();
    documents.sort_unstable();
    documents.dedup();
    let index = |document: u32| documents.partition_point(|&other| other < document);
    let ends: Vec<[u32; 2]> = pairs.map(|(a, b)| [index(a) as u32, index(b) as u32]).collect();

    // The neighbours of document i: from `starts[i]` to `starts[i + 1]`.
    let mut starts = vec![0; documents.len() + 1];
    ends.iter().flatten().for_each(|&end| starts[end as usize + 1] += 1);
    for i in 1..starts.len() {
        starts[i] += starts[i - 1];
    }
    let mut neighbours = vec![0; 2 * ends.len()];
    let mut places = starts.clone();
    for &[a, b] in &ends {
        for (from, to) in [(a, b), (b, a)] {
            neighbours[places[from as usize]] = to;
            places[from as usize] += 1;
        }
    }

    const UNSEEN: u32 = u32::MAX;
    let mut numbers = vec![UNSEEN; documents.len()];
    let mut queue: Vec<u32> = Vec::with_capacity(documents.len());
    for first in 0..documents.len() {
        if numbers[first] != UNSEEN {
            continue;
        }
        let mut at = queue.len();
        numbers[first] = at as u32;
        queue.push(first as u32);
        while let Some(&document) = queue.get(at) {
            at += 1;
            let document = document as usize;
            for &neighbour in &neighbours[starts[document]..starts[document + 1]] {
                if numbers[neighbour as usize] == UNSEEN {
                    numbers[neighbour as usize] = queue.len() as u32;
                    queue.push(neighbour);
                }
            }
        }
    }
    let mut order: Vec<u32> = (0..ends.len() as u32).collect();
    order.sort_unstable_by_key(|&place| {
        let [a, b] = ends[place as usize].map(|end| numbers[end as usize]);
        (a.max(b), a.min(b), place)
    });
    order
}

#[cfg(test)]
mod tests {
    use crate::sketch::Score;

    use super::*;

    fn check(pairs: &[(u32, u32)], expect: &[u32]) {
        let pairs: Vec<Pair> =
            pairs.iter().map(|&(a, b)| Pair { a, b, score: Score::MAX }).collect();
        assert_eq!(by_neighbourhood(&pairs), expect);
    }

    #[test]
    fn pairs_of_a_group_are_together() {
        check(&[], &[]);
        check(&[(3, 9)], &[0]);
        // Two groups that take turns in the order of the documents.
        check(&[(0, 4), (1, 5), (2, 4), (3, 5)], &[0, 2, 1, 3]);
        // A chain from its middle.
        check(&[(0, 7), (0, 9), (3, 7), (9, 20)], &[0, 1, 2, 3]);
        // The same pair twice, and a document with itself.
        check(&[(5, 6), (5, 6), (6, 6)], &[0, 1, 2]);
    }
}
