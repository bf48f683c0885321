//! Recipes.

pub mod spec;
