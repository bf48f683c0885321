//! A set of numbers, such as records or documents: a bit each.

#[derive(Debug, Default)]
pub struct Bits(Vec<u64>);

impl Bits {
    pub fn set(&mut self, at: u64) {
        let word = (at / 64) as usize;
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << (at % 64);
    }

    pub fn has(&self, at: u64) -> bool {
        self.0.get((at / 64) as usize).is_some_and(|word| word >> (at % 64) & 1 == 1)
    }
}
