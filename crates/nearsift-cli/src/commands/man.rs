//! `nearsift man`: the manual pages.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, line_break, roman};

use crate::failure::Failure;
use crate::{Status, args, settings};

pub fn run(args: &args::Man) -> Result<Status, Failure> {
    let folder = &args.output;
    std::fs::create_dir_all(folder).map_err(|e| Failure::at(folder, "create", &e))?;
    let mut program = settings::command().disable_help_subcommand(true);
    program.build();
    write_below(&program, folder)?;
    Ok(Status::Done)
}

/// Writes the pages of a command and of those below it.
fn write_below(command: &Command, folder: &Path) -> Result<(), Failure> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned();
    let path = folder.join(format!("{name}.1"));
    File::create(&path)
        .and_then(|file| {
            let mut file = BufWriter::new(file);
            write_page(command, &name, &mut file)?;
            file.flush()
        })
        .map_err(|e| Failure::at(&path, "write", &e))?;
    let mut below = command.get_subcommands().filter(|own| !own.is_hide_set());
    below.try_for_each(|own| write_below(own, folder))
}

fn write_page(command: &Command, name: &str, page: &mut dyn Write) -> io::Result<()> {
    let source = format!("nearsift {}", env!("CARGO_PKG_VERSION"));
    let man = Man::new(command.clone()).title(name).source(source).manual("nearsift");
    man.render_title(page)?;
    // Lines are not stretched: those of Chinese have no blanks.
    Roff::new().control("ad", ["l"]).to_writer(page)?;
    man.render_name_section(page)?;
    man.render_synopsis_section(page)?;
    man.render_description_section(page)?;
    man.render_options_section(page)?;
    if command.has_subcommands() {
        man.render_subcommands_section(page)?;
    }
    if let Some(examples) = command.get_after_long_help() {
        let examples = examples.to_string();
        let lines = examples.lines().skip(1).skip_while(|line| line.is_empty());
        let lines = lines.flat_map(|line| [roman(line), line_break()]);
        let mut section = Roff::new();
        section.control("SH", ["EXAMPLES"]).control("nf", []).text(lines.collect::<Vec<_>>());
        section.control("fi", []).to_writer(page)?;
    }
    Ok(())
}
