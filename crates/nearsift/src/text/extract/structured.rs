//! The text that a page's structured data hold (schema.org in JSON-LD).

use serde_json::{Map, Value};

use super::densest::push_line;
use super::marks::{self, Marks};
use super::page::Page;
use super::view::plain;

/// Values that are looked at, of one page.
const MAX_VALUES: usize = 10_000;

/// What the structured data say of the page.
#[derive(Debug, Default)]
pub(super) struct Structured {
    /// The longest `articleBody` or, where there is none, the posts of a discussion in order, without markup.
    pub(super) body: String,
    /// The longest `description` of a product, without markup.
    pub(super) description: String,
    /// The types that they name ([`marks::DISCUSSION`], [`marks::PRODUCT`]).
    pub(super) types: Marks,
}

/// Reads the structured data.
///
/// # Complexity
/// Linear in the bytes of the structured data.
pub(super) fn read(page: &Page) -> Structured {
    let (mut body, mut description, mut posts) = ("", "", String::new());
    let mut types = 0;
    let values: Vec<Value> =
        page.json.iter().filter_map(|json| serde_json::from_str(json.trim()).ok()).collect();
    for value in &values {
        let mut waiting = vec![value];
        let mut seen = 0;
        while let Some(value) = waiting.pop()
            && seen < MAX_VALUES
        {
            seen += 1;
            match value {
                Value::Array(values) => waiting.extend(values.iter().rev()),
                Value::Object(fields) => {
                    let is = types_of(fields);
                    types |= is;
                    let text =
                        |name: &str| fields.get(name).and_then(Value::as_str).unwrap_or_default();
                    if text("articleBody").len() > body.len() {
                        body = text("articleBody");
                    }
                    if is & marks::PRODUCT != 0 && text("description").len() > description.len() {
                        description = text("description");
                    }
                    if is & marks::DISCUSSION != 0 {
                        push_line(&mut posts, text("text"));
                    }
                    let inner = fields.values().rev();
                    waiting.extend(inner.filter(|v| v.is_array() || v.is_object()));
                }
                _ => {}
            }
        }
    }
    let markup = |text: &str| {
        if text.is_empty() { String::new() } else { plain(&text.replace('\n', "<br>")) }
    };
    let body = if body.is_empty() { markup(&posts) } else { markup(body) };
    Structured { body, description: markup(description), types }
}

fn types_of(fields: &Map<String, Value>) -> Marks {
    match fields.get("@type") {
        Some(Value::String(name)) => marks::of_type(name),
        Some(Value::Array(names)) => names
            .iter()
            .filter_map(Value::as_str)
            .fold(0, |types, name| types | marks::of_type(name)),
        _ => 0,
    }
}
