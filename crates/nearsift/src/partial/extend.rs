//! How far a passage goes on beyond a place where two texts are known to agree.
//!
//! # References
//! Altschul, Gish, Miller, Myers and Lipman, 'Basic local alignment search tool', Journal of Molecular
//! Biology 215, 1990 (extension of seeds until the score drops); Zhang, Schwartz, Wagner and Miller, 'A
//! greedy algorithm for aligning DNA sequences', Journal of Computational Biology 7, 2000.

/// Letters that an extension may go.
const REACH: usize = 1024;

/// How far one text may run ahead of the other, in letters.
const BAND: usize = 32;

/// An extension ends when its score is below the best one by this many letters that only one text has.
const DROP: i32 = 32;

/// Below what any score can fall to before an extension ends.
const NEVER: i32 = i32::MIN / 2;

/// What letters are worth: a passage of worth 0 or more has the least score or more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Worth {
    /// A letter that both texts have.
    same: i32,
    /// A letter that only one has; one that differs is one in each.
    alone: i32,
}

impl Worth {
    /// For m letters in common and g in one text alone the score is 2 m / (2 m + g), which is s or more
    /// exactly when 2 m (1 - s) >= g s.
    pub(super) fn of(min_score: f64) -> Worth {
        let thousandths = (1000.0 * min_score).ceil().clamp(0.0, 1000.0) as i32;
        if thousandths == 1000 {
            return Worth { same: 1, alone: -(1 << 20) };
        }
        Worth { same: 2 * (1000 - thousandths), alone: -thousandths }
    }

    /// The score of two texts, from their numbers of letters and the number in common.
    pub(super) fn of_texts(self, common: usize, a: usize, b: usize) -> i64 {
        let alone = (a + b - 2 * common) as i64;
        i64::from(self.same) * common as i64 + i64::from(self.alone) * alone
    }
}

/// Extends passages, and keeps its working memory.
#[derive(Debug)]
pub(super) struct Extender {
    worth: Worth,
    row: Vec<i32>,
    next: Vec<i32>,
    sides: [Vec<u32>; 2],
}

impl Extender {
    pub(super) fn new(worth: Worth) -> Extender {
        Extender { worth, row: Vec::new(), next: Vec::new(), sides: Default::default() }
    }

    /// The letters at the beginnings of two texts that belong to a passage which ends where they
    /// begin: those of the greatest worth. Of equal ones the shortest.
    ///
    /// # Complexity
    /// O(65) for each letter up to 32 after the passage ends; at most 1,024 letters.
    pub(super) fn forward(&mut self, a: &[u32], b: &[u32]) -> (usize, usize) {
        let (a, b) = (&a[..a.len().min(REACH)], &b[..b.len().min(REACH)]);
        let (mut best, mut ends) = (0, (0, 0));
        let width = 2 * BAND + 1;
        let Extender { row, next, worth: Worth { same, alone }, .. } = self;
        let (same, alone) = (*same, *alone);
        // Cell d of row i stands for i letters of `a` and i + d - BAND of `b`.
        row.clear();
        row.extend((0..width).map(|d| if d < BAND { NEVER } else { alone * (d - BAND) as i32 }));
        next.resize(width, NEVER);
        for i in 1..=a.len() {
            let mut most = NEVER;
            for d in 0..width {
                let j = (i + d).wrapping_sub(BAND);
                next[d] = NEVER;
                if j > b.len() {
                    continue;
                }
                let mut score = if d + 1 < width { row[d + 1] + alone } else { NEVER };
                if d > 0 {
                    score = score.max(next[d - 1] + alone);
                }
                if j > 0 && a[i - 1] == b[j - 1] {
                    score = score.max(row[d] + same);
                }
                next[d] = score.max(NEVER);
                most = most.max(score);
                if score > best {
                    (best, ends) = (score, (i, j));
                }
            }
            std::mem::swap(row, next);
            if most < best + DROP * alone {
                break;
            }
        }
        ends
    }

    /// As [`Extender::forward`], at the ends of two texts.
    pub(super) fn backward(&mut self, a: &[u32], b: &[u32]) -> (usize, usize) {
        let mut sides = std::mem::take(&mut self.sides);
        for (side, text) in sides.iter_mut().zip([a, b]) {
            side.clear();
            side.extend(text.iter().rev().take(REACH));
        }
        let found = self.forward(&sides[0], &sides[1]);
        self.sides = sides;
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The matching letters less the others.
    const PLAIN: Worth = Worth { same: 1, alone: -1 };

    #[test]
    fn extensions_by_example() {
        let check = |a: &str, b: &str, expect| {
            let of = |text: &str| text.chars().map(u32::from).collect::<Vec<_>>();
            let (mut a, mut b) = (of(a), of(b));
            assert_eq!(Extender::new(PLAIN).forward(&a, &b), expect);
            assert_eq!(Extender::new(PLAIN).forward(&b, &a), (expect.1, expect.0));
            a.reverse();
            b.reverse();
            assert_eq!(Extender::new(PLAIN).backward(&a, &b), expect);
        };
        check("", "", (0, 0));
        check("abc", "", (0, 0));
        check("abc", "abcdef", (3, 3));
        check("abcx", "abcy", (3, 3));
        // A differing letter is passed when more than two follow it.
        check("abcxde", "abcyde", (3, 3));
        check("abcxdef", "abcydef", (7, 7));
        // A missing one costs half.
        check("abcdef", "abcxdef", (6, 7));
        check("defgh", "xdefgh", (5, 6));
        // Equal letters that come too late are another passage.
        let late = "z".repeat(40);
        check(&format!("abc{late}defghij"), "abcdefghij", (3, 3));
    }

    #[test]
    fn equals_the_whole_table() {
        let mut random = testkit::random::Random::new(7);
        for round in 0..300 {
            let worth = [PLAIN, Worth::of(0.7), Worth::of(0.9)][round % 3];
            let mut of = |n: usize| (0..n).map(|_| random.below(3) as u32).collect::<Vec<u32>>();
            // Short enough that neither band nor drop is reached.
            let (a, b) = (of(15), of(12));
            let mut best = (0, (0, 0));
            let mut table = vec![[0i32; 13]; 16];
            for i in 0..=15 {
                for j in 0..=12 {
                    if i + j == 0 {
                        continue;
                    }
                    let mut score = NEVER;
                    if i > 0 {
                        score = score.max(table[i - 1][j] + worth.alone);
                    }
                    if j > 0 {
                        score = score.max(table[i][j - 1] + worth.alone);
                    }
                    if i > 0 && j > 0 && a[i - 1] == b[j - 1] {
                        score = score.max(table[i - 1][j - 1] + worth.same);
                    }
                    table[i][j] = score;
                    if score > best.0 {
                        best = (score, (i, j));
                    }
                }
            }
            assert_eq!(Extender::new(worth).forward(&a, &b), best.1);
        }
    }
}
