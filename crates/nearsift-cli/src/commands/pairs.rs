//! `nearsift pairs`: near-duplicate pairs as JSON lines.

use nearsift_batch::Method;
use nearsift_batch::pairs::{self, Event, Settings};

use crate::args::{Global, Pairs};
use crate::failure::Failure;
use crate::output::{Out, explain};
use crate::{Status, calibration, resolve, terminal};

pub fn run(args: &Pairs, global: &Global) -> Result<Status, Failure> {
    let mut settings = Settings::default();
    settings.method = resolve::method(&args.recipe, &args.matching, args.searching.verify)?;
    settings.partial = args.partial;
    let inputs = resolve::open(&args.input, Vec::new())?;
    let mut context = terminal::context(global, args.searching.memory);
    if let Method::Simhash { recipe, .. } = &settings.method {
        context.join_speed = calibration::join_speed(recipe.bits());
    }
    let mut out = Out::new();
    let unreadable = pairs::each(&inputs, &settings, &context, |event| {
        match event {
            Event::Plan(plan) if args.explain => explain(&plan),
            Event::Plan(_) => {}
            found => out.json(&found)?,
        }
        Ok(())
    })?;
    out.finish()?;
    Ok(Status::of_reading(unreadable))
}
