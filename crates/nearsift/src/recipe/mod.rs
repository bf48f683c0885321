//! Recipes: everything that decides a fingerprint, under one name.

pub mod compat;
pub mod vectors;
