//! The language of reports, help and messages.

use nearsift_batch::PageLanguage;

use crate::args;

/// The variable that names a language, `en` or `zh`, whatever the locale is.
const VARIABLE: &str = "NEARSIFT_LANGUAGE";

/// The language that was given, else that of the environment.
pub fn given(language: Option<args::PageLanguage>) -> PageLanguage {
    match language {
        Some(args::PageLanguage::Zh) => PageLanguage::Chinese,
        Some(args::PageLanguage::En) => PageLanguage::English,
        None => of_environment(),
    }
}

/// The language that `NEARSIFT_LANGUAGE` names, if it is set: the locale does not count.
#[cfg(unix)]
pub fn of_variable() -> Option<PageLanguage> {
    crate::environment::get(VARIABLE).map(|language| PageLanguage::of_locale(&language))
}

/// The language that the environment asks for: `NEARSIFT_LANGUAGE`, else the locale of messages.
pub fn of_environment() -> PageLanguage {
    let set = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    let locale = [VARIABLE, "LC_ALL", "LC_MESSAGES", "LANG"].into_iter().find_map(set);
    PageLanguage::of_locale(&locale.unwrap_or_default())
}
