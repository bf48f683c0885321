use super::{Compat, Description, InputKind, Parameter};

/// Why a recipe was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CompatError {
    /// There is no recipe of that name.
    #[error("unknown recipe '{name}': expected one of {}", known_recipes())]
    UnknownRecipe {
        /// The name as given.
        name: String,
    },
    /// The recipe has no parameter of that name.
    #[error("recipe '{}' has no parameter '{name}': {}", recipe.name, known_parameters(recipe))]
    UnknownParameter {
        /// The recipe.
        recipe: &'static Description,
        /// The name as given.
        name: String,
    },
    /// A parameter cannot have that value.
    #[error(
        "parameter '{}' of recipe '{}' cannot be '{value}': expected {}",
        parameter.name, recipe.name, parameter.values
    )]
    BadValue {
        /// The recipe.
        recipe: &'static Description,
        /// The parameter.
        parameter: &'static Parameter,
        /// The value as given.
        value: String,
    },
    /// The recipe makes no fingerprint of such an input.
    #[error("recipe '{}' is made of {}, not of {got}", recipe.name, recipe.input)]
    WrongInput {
        /// The recipe.
        recipe: &'static Description,
        /// The kind as given.
        got: InputKind,
    },
}

fn known_recipes() -> String {
    Compat::ALL.iter().map(|description| description.name).collect::<Vec<_>>().join(", ")
}

fn known_parameters(recipe: &Description) -> String {
    if recipe.parameters.is_empty() {
        return "it has none".to_owned();
    }
    let names: Vec<&str> = recipe.parameters.iter().map(|parameter| parameter.name).collect();
    format!("expected {}", names.join(", "))
}
