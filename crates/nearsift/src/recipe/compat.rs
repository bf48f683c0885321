//! temporary
#![allow(missing_docs)]
use crate::fingerprint::Bits;
#[derive(Clone,Debug)]
pub enum Compat {}
pub struct Info { pub name: &'static str, pub about: &'static str }
impl Compat {
    pub const ALL: &'static [Info] = &[];
    pub fn parse(name: &str, _p: &[(&str, &str)]) -> Result<Compat, String> { Err(format!("no recipe '{name}'")) }
    pub fn bits(&self) -> Bits { Bits::B64 }
    pub fn takes_words(&self) -> bool { false }
    pub fn parameters(&self) -> Vec<(&'static str, String)> { vec![] }
}
