//! The site: the pages of `docs/` as a book, by mdBook.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

use crate::tools::{cargo, loud, quiet, repository};

const VERSION: &str = "0.5.4";

/// Builds the site into `target/site`. Installs mdBook into `target/tools` where that version is missing.
///
/// # Errors
/// What a tool says that failed, or the links of the site that lead nowhere.
pub fn build() -> Result<(), String> {
    let tools = repository().join("target/tools");
    let mdbook = tools.join("bin/mdbook");
    if !is_installed(&mdbook) {
        println!(
            "mdBook {VERSION} is missing: installing it into target/tools, which takes some minutes"
        );
        let package = format!("mdbook@{VERSION}");
        let mut install = cargo(&["install", "--locked", &package, "--no-default-features"]);
        install.args(["--features", "search", "--root"]).arg(&tools);
        loud(install)?;
    }
    let site = repository().join("target/site");
    if site.exists() {
        fs::remove_dir_all(&site).map_err(|e| format!("{}: {e}", site.display()))?;
    }
    let mut build = Command::new(&mdbook);
    build.arg("build").arg(repository().join("docs"));
    quiet(build)?;
    // A setting of the build, which is copied because it lies among the pages.
    let settings = site.join("book.toml");
    if settings.exists() {
        fs::remove_file(&settings).map_err(|e| format!("{}: {e}", settings.display()))?;
    }
    let (pages, links) = follow_links(&site)?;
    println!("{pages} pages in target/site, {links} links between them");
    Ok(())
}

fn is_installed(mdbook: &Path) -> bool {
    let output = Command::new(mdbook).arg("--version").output();
    output.is_ok_and(|o| String::from_utf8_lossy(&o.stdout).trim().ends_with(VERSION))
}

/// Follows every link between the pages of a site, and returns how many pages and links there are.
///
/// # Errors
/// The pages with links to a file or a heading that is not there.
fn follow_links(site: &Path) -> Result<(usize, usize), String> {
    let mut pages = BTreeMap::new();
    let mut files = BTreeSet::new();
    let mut folders = vec![site.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        for entry in entries {
            let path = entry.map_err(|e| e.to_string())?.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            if path.extension().is_some_and(|ending| ending == "html") {
                let text =
                    fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
                pages.insert(path.clone(), text);
            }
            files.insert(path);
        }
    }
    let (mut links, mut broken) = (0, Vec::new());
    for (page, text) in &pages {
        // Its links begin at the root of a host.
        if page.ends_with("404.html") {
            continue;
        }
        for target in values(text, "href").chain(values(text, "src")) {
            if target.contains(':') || target.starts_with("//") {
                continue;
            }
            links += 1;
            let (file, heading) = target.split_once('#').unwrap_or((target, ""));
            let path = if file.is_empty() { page.clone() } else { resolved(page, file) };
            let leads = match pages.get(&path) {
                _ if heading.is_empty() => files.contains(&path),
                Some(there) => values(there, "id").any(|id| id == heading),
                None => false,
            };
            if !leads {
                let page = page.strip_prefix(site).unwrap_or(page);
                broken.push(format!("{}: {target}", page.display()));
            }
        }
    }
    if broken.is_empty() {
        Ok((pages.len(), links))
    } else {
        Err(format!("links that lead nowhere:\n{}", broken.join("\n")))
    }
}

/// The values of an attribute in a page.
fn values<'a>(text: &'a str, attribute: &str) -> impl Iterator<Item = &'a str> {
    let begin = format!(" {attribute}=\"");
    let mut rest = text;
    std::iter::from_fn(move || {
        let at = rest.find(&begin)? + begin.len();
        let (value, after) = rest[at..].split_once('"')?;
        rest = after;
        Some(value)
    })
}

/// The file that a page names.
fn resolved(page: &Path, file: &str) -> PathBuf {
    let mut path = page.parent().unwrap_or(page).to_owned();
    for part in Path::new(file).components() {
        match part {
            Component::ParentDir => {
                path.pop();
            }
            Component::Normal(name) => path.push(name),
            _ => {}
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(pages: &[(&str, &str)]) -> PathBuf {
        let name = format!("nearsift-site-{}-{}", std::process::id(), pages.len());
        let folder = std::env::temp_dir().join(name);
        for (name, text) in pages {
            let path = folder.join(name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(path, text).expect("a page");
        }
        folder
    }

    #[test]
    fn links_are_followed_to_files_and_headings() {
        let whole = [
            (
                "index.html",
                r##"<a href="use/a.html#b">b</a> <img src="p.webp"> <a href="https://a.example/">a</a>"##,
            ),
            (
                "use/a.html",
                r##"<h2 id="b"><a href="#b">b</a></h2> <a href="../index.html">back</a>"##,
            ),
            ("p.webp", ""),
        ];
        let folder = site(&whole);
        assert_eq!(follow_links(&folder), Ok((2, 4)));
        fs::write(folder.join("use/a.html"), r#"<a href="../none.html">none</a>"#).expect("a page");
        let broken = follow_links(&folder).expect_err("two links lead nowhere");
        assert!(broken.contains("index.html: use/a.html#b"), "{broken}");
        assert!(broken.contains("a.html: ../none.html"), "{broken}");
        fs::remove_dir_all(folder).expect("removed");
    }
}
