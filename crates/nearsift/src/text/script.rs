//! temporary
#[derive(Clone,Copy,PartialEq,Eq,Debug)]
pub enum Class { Unspaced, Alphabetic, Separator }
pub fn classify(c: char) -> Class {
    match c as u32 { 0x2e80..=0x2eff | 0x3400..=0x4dbf | 0x4e00..=0x9fff | 0x3040..=0x30ff | 0xac00..=0xd7ff | 0x20000..=0x3ffff => Class::Unspaced,
    _ => if c.is_alphanumeric() { Class::Alphabetic } else { Class::Separator } }
}
