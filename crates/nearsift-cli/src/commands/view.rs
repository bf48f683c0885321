//! `nearsift view`: a finished run in a browser.

use nearsift_view::{Language, View, ViewError, ViewSettings};

use crate::args::{self, PageLanguage};
use crate::failure::Failure;
use crate::output::{Out, Severity, tell};
use crate::resolve::read_options;
use crate::{Status, language};

pub fn run(args: &args::View) -> Result<Status, Failure> {
    let mut settings = ViewSettings::new(&args.results);
    settings.listen = args.listen;
    settings.inputs.clone_from(&args.documents);
    settings.reading = read_options(&args.reading, Vec::new());
    settings.review.clone_from(&args.review);
    settings.language = match (args.language, language::of_variable()) {
        (Some(PageLanguage::Zh), _) | (None, Some(nearsift_batch::PageLanguage::Chinese)) => {
            Some(Language::Chinese)
        }
        (Some(PageLanguage::En), _) | (None, Some(nearsift_batch::PageLanguage::English)) => {
            Some(Language::English)
        }
        (None, None) => None,
    };
    let view = View::start(settings).map_err(failure)?;
    if let Some(why) = view.without_texts() {
        let what = "groups and figures are shown without texts; give the input by --in";
        tell(Severity::Warning, &format!("{why}: {what}"));
    }
    let signals = view.stop_signals().map_err(failure)?;
    let mut out = Out::new();
    out.line(&format!("http://{}", view.address()))?;
    out.finish()?;
    view.run(signals);
    Ok(Status::Done)
}

fn failure(error: ViewError) -> Failure {
    match error {
        ViewError::Run(error) => error.into(),
        other => Failure::new(other),
    }
}
