//! The text that a page's structured data hold (schema.org in JSON-LD).

use serde_json::Value;

use super::page::Page;
use super::view::plain;

/// Values that are looked at, of one page.
const MAX_VALUES: usize = 10_000;

/// The longest `articleBody`, with its markup taken out; empty when there is none.
///
/// # Complexity
/// Linear in the bytes of the structured data.
pub(super) fn article_body(page: &Page) -> String {
    let mut best = String::new();
    for json in &page.json {
        let Ok(value) = serde_json::from_str::<Value>(json.trim()) else { continue };
        let mut waiting = vec![&value];
        let mut seen = 0;
        while let Some(value) = waiting.pop()
            && seen < MAX_VALUES
        {
            seen += 1;
            match value {
                Value::Array(values) => waiting.extend(values),
                Value::Object(fields) => {
                    if let Some(Value::String(text)) = fields.get("articleBody")
                        && text.len() > best.len()
                    {
                        best.clone_from(text);
                    }
                    waiting.extend(fields.values().filter(|v| v.is_array() || v.is_object()));
                }
                _ => {}
            }
        }
    }
    if best.is_empty() { best } else { plain(&best.replace('\n', "<br>")) }
}
