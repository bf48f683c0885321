//! `nearsift recipes`: what there is to choose from.

use nearsift::recipe::Recipe;
use serde::Serialize;

use crate::Status;
use crate::args::Global;
use crate::failure::Failure;
use crate::output::Out;

#[derive(Serialize)]
struct Line<'a> {
    recipe: &'a str,
    bits: u32,
    about: &'a str,
    parameters: serde_json::Map<String, serde_json::Value>,
    digest: String,
}

pub fn run(global: &Global) -> Result<Status, Failure> {
    let mut out = Out::new();
    for (recipe, about) in Recipe::all() {
        let digest = format!("{:016x}", recipe.digest());
        if global.json {
            let parameters =
                recipe.parameters().into_iter().map(|(k, v)| (k.to_owned(), v.into())).collect();
            out.json(&Line {
                recipe: recipe.name(),
                bits: recipe.bits().count(),
                about,
                parameters,
                digest,
            })?;
        } else {
            out.line(&format!("{} ({} bits): {about}", recipe.name(), recipe.bits().count()))?;
            let parameters: Vec<String> =
                recipe.parameters().into_iter().map(|(k, v)| format!("{k}={v}")).collect();
            if !parameters.is_empty() {
                out.line(&format!("    {}", parameters.join(",")))?;
            }
            out.line(&format!("    digest {digest}"))?;
        }
    }
    out.finish()?;
    Ok(Status::Done)
}
