//! The first pass over the documents, whatever is looked for in them.

use nearsift_io::Inputs;

use crate::context::{Context, Phase};
use crate::corpus::{Id, Ids, Records, check_room};
use crate::error::Error;
use crate::folder::Folder;
use crate::scan::{Pass, Problems, Seen, scan};

/// What is known of all documents after the first pass.
pub struct Documents {
    pub count: u64,
    pub text_bytes: u64,
    pub ids: Ids,
    pub records: Records,
    pub problems: Problems,
}

/// Reads all documents, and lists what could not be read in `unreadable.jsonl`. `take` gets what `work` makes of each, with the document's number, in the
/// order of the input.
///
/// # Errors
/// What `work` and `take` return, or as [`scan`].
pub fn read_documents<W: Send, T: Send>(
    context: &Context<'_>,
    inputs: &Inputs,
    phase: Phase,
    folder: &Folder,
    make: impl Fn() -> W + Sync,
    work: impl Fn(&mut W, &Seen<'_>) -> Result<T, Error> + Sync,
    mut take: impl FnMut(u32, T) -> Result<(), Error>,
) -> Result<Documents, Error> {
    let mut ids = Ids::in_folder(&folder.path(""), context.bounds.id_bytes);
    let (mut records, mut problems) = (Records::default(), Problems::default());
    let mut unreadable = folder.table("unreadable.jsonl")?;
    let (mut count, mut text_bytes) = (0_usize, 0);
    let notes = scan(
        context,
        inputs,
        &Pass::new(phase),
        make,
        |worker, seen| {
            let id = Id::of(seen.id).into_owned();
            (id, seen.text.text.len() as u64, work(worker, &seen))
        },
        |place, done| match done {
            Ok((id, bytes, made)) => {
                check_room(count)?;
                let document = count as u32;
                count += 1;
                text_bytes += bytes;
                ids.push(&id)?;
                take(document, made?)
            }
            Err(note) => {
                records.skip(place.index);
                problems.add(context, &note);
                unreadable.line(&note)
            }
        },
    )?;
    for note in &notes {
        problems.add(context, note);
        unreadable.line(note)?;
    }
    unreadable.finish()?;
    Ok(Documents { count: count as u64, text_bytes, ids, records, problems })
}
