//! What `packaging/` has for operators, used as they would.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use super::{Running, document};
use crate::support::{Folder, Run, is_root, program, skip};

fn packaging(name: &str) -> PathBuf {
    testkit::repository().join("packaging").join(name)
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn own_program() -> String {
    program().get_program().to_string_lossy().into_owned()
}

/// Whether a program of the system is there; else why a test is left out.
fn has(name: &str) -> bool {
    let is_there = Command::new(name).arg("--version").output().is_ok();
    if !is_there {
        skip(&format!("no {name}"));
    }
    is_there
}

/// A port that was just free.
fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").port()
}

fn status_of(url: &str) -> u16 {
    ureq::get(url).call().expect("an answer").status().as_u16()
}

/// The line of a unit with this name.
fn unit_line(name: &str) -> String {
    let unit = read(&packaging("systemd/nearsift.service"));
    let own = unit.lines().find_map(|line| line.strip_prefix(&format!("{name}=")));
    own.unwrap_or_else(|| panic!("{name}")).to_owned()
}

#[test]
fn systemd_has_nothing_to_say_against_the_unit() {
    if !has("systemd-analyze") {
        return;
    }
    let folder = Folder::new();
    let unit = read(&packaging("systemd/nearsift.service"));
    // The program is elsewhere here.
    let unit = folder.file("nearsift.service", unit.replace("/usr/bin/nearsift", &own_program()));
    let analyze = |arguments: &[&str]| {
        let mut command = Command::new("systemd-analyze");
        command.args(arguments).arg(&unit);
        Run::of(&command.output().expect("systemd-analyze"))
    };
    let verified = analyze(&["verify", "--man=no"]).expect(0);
    assert_eq!(verified.stderr, "");
    // Of 100, where less is better.
    let rated = analyze(&["security", "--offline=true", "--no-pager", "--threshold=15"]);
    assert_eq!(rated.status, 0, "{}", rated.stdout);
    let page = read(&testkit::repository().join("docs/operate/deployment.md"));
    let rating = rated.stdout.lines().find_map(|line| line.split_once("nearsift.service: "));
    let rating = rating.and_then(|(_, rest)| rest.split(' ').next()).expect("a rating");
    assert!(page.contains(&format!("rates it {rating} of 10")), "{rating}");
}

#[test]
fn the_user_of_the_unit_is_made_by_sysusers() {
    if !has("systemd-sysusers") {
        return;
    }
    let folder = Folder::new();
    fs::create_dir(folder.path("etc")).expect("a folder");
    let mut command = Command::new("systemd-sysusers");
    command.arg(format!("--root={}", folder.path("").display()));
    let made = command.arg(packaging("systemd/nearsift.sysusers")).output().expect("it runs");
    Run::of(&made).expect(0);
    let users = read(&folder.path("etc/passwd"));
    assert!(
        users.lines().any(|line| line.starts_with(&format!("{}:x:", unit_line("User")))),
        "{users}"
    );
}

#[test]
fn the_unit_starts_a_service_that_reads_again_and_ends_well() {
    let folder = Folder::new();
    folder.file("service.toml", read(&packaging("systemd/service.toml")));
    let line = unit_line("ExecStart");
    let words: Vec<String> = line
        .replace("/usr/bin/nearsift", &own_program())
        .replace("/etc/nearsift", &folder.path("").display().to_string())
        .replace("/var/lib/nearsift", &folder.path("data").display().to_string())
        .split(' ')
        .map(str::to_owned)
        .collect();
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).env("NEARSIFT_LISTEN", "127.0.0.1:0");
    let service = Running::run(&mut command);
    assert_eq!(status_of(&format!("{}/readyz", service.url)), 200);
    let reload = unit_line("ExecReload").replace("$MAINPID", &service.child.id().to_string());
    assert!(Command::new("sh").args(["-c", &reload]).status().expect("a shell").success());
    service.signal("-TERM");
    let (status, log) = service.end();
    assert_eq!(status, Some(0), "{log}");
    assert!(log.contains("nothing to read again") && log.contains("\"stopped\""), "{log}");
    assert!(folder.path("data/default").is_dir());
    // Every setting of the file is one, also those that are comments.
    let all = read(&packaging("systemd/service.toml")).replace("\n# ", "\n#").replace('#', "");
    let settings: String = all
        .lines()
        .filter(|line| line.contains(" = "))
        .map(|line| line.to_owned() + "\n")
        .collect();
    folder.file("all.toml", settings);
    let printed = folder.run(["serve", "--config", "all.toml", "--print-config"]).expect(0).stdout;
    assert_eq!(printed.matches("(file)").count(), 6, "{printed}");
}

/// What a Containerfile on an empty root says, of the lines that the one here has.
#[derive(Debug, Default)]
struct Image {
    variables: Vec<(String, String)>,
    user: String,
    entry: Vec<String>,
    arguments: Vec<String>,
    health: Vec<String>,
}

impl Image {
    /// Makes the root folder of the image.
    fn build(file: &str, context: &Path, root: &Path) -> Image {
        let mut image = Image::default();
        let list = |text: &str| serde_json::from_str::<Vec<String>>(text).expect("a list");
        for line in file.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let (what, rest) = line.split_once(' ').expect("an instruction");
            match what {
                "FROM" => assert_eq!(rest, "scratch"),
                "COPY" => {
                    let mut words: Vec<&str> = rest.split(' ').collect();
                    let owner = words[0].strip_prefix("--chown=").map(str::to_owned);
                    words.drain(..usize::from(owner.is_some()));
                    let to = words.pop().expect("a place");
                    for from in words {
                        copy(&context.join(from), &place(root, to, from), owner.as_deref());
                    }
                }
                "ENV" => {
                    let (name, value) = rest.split_once('=').expect("a variable");
                    image.variables.push((name.to_owned(), value.to_owned()));
                }
                "USER" => image.user = rest.to_owned(),
                "ENTRYPOINT" => image.entry = list(rest),
                "CMD" => image.arguments = list(rest),
                "HEALTHCHECK" => image.health = list(rest.split_once("CMD ").expect("CMD").1),
                "VOLUME" | "EXPOSE" => {}
                other => panic!("{other}"),
            }
        }
        image
    }

    /// A command that runs in the root folder as the user of the image. `None` where this user may not do that.
    fn command(&self, root: &Path, words: &[String], listen: &str) -> Option<Command> {
        let mut command = match is_root() {
            true => {
                let mut command = Command::new("chroot");
                command.arg(format!("--userspec={}", self.user));
                command
            }
            false => {
                let mut command = Command::new("unshare");
                command.args(["-r", "chroot"]);
                command
            }
        };
        if !is_root() && !Command::new("unshare").args(["-r", "true"]).status().ok()?.success() {
            return None;
        }
        command.arg(root).args(words).env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command.env("NEARSIFT_LISTEN", listen);
        Some(command)
    }
}

fn place(root: &Path, to: &str, from: &str) -> PathBuf {
    let to_folder = to.ends_with('/');
    let place = root.join(to.trim_start_matches('/'));
    if to_folder { place.join(from) } else { place }
}

/// Copies a file, or makes a folder that is empty in the context.
fn copy(from: &Path, to: &Path, owner: Option<&str>) {
    fs::create_dir_all(to.parent().expect("a parent")).expect("folders");
    if from.is_dir() {
        assert_eq!(fs::read_dir(from).expect("a folder").count(), 0);
        fs::create_dir_all(to).expect("a folder");
    } else {
        fs::copy(from, to).unwrap_or_else(|e| panic!("{}: {e}", from.display()));
    }
    if let (Some(owner), true) = (owner, is_root()) {
        assert!(Command::new("chown").arg(owner).arg(to).status().expect("chown").success());
    }
}

/// The libraries that the program of the tests loads: that of an image has none.
fn libraries(program: &str) -> Vec<PathBuf> {
    let listed = Command::new("ldd").arg(program).output().expect("ldd");
    let listed = String::from_utf8(listed.stdout).expect("UTF-8");
    let paths = listed.split_whitespace().filter(|word| word.starts_with('/'));
    paths.map(PathBuf::from).collect()
}

#[cfg(target_os = "linux")]
#[test]
fn the_image_runs_without_rights_on_a_root_that_has_nothing_else() {
    let folder = Folder::new();
    let context = folder.path("context");
    fs::create_dir_all(context.join("data")).expect("a folder");
    fs::copy(own_program(), context.join("nearsift")).expect("the program");
    fs::copy(packaging("container/passwd"), context.join("passwd")).expect("a file");
    for licence in ["LICENSE-APACHE", "LICENSE-MIT"] {
        fs::copy(testkit::repository().join(licence), context.join(licence)).expect("a file");
    }
    // As `cargo xtask dist` makes it of the licences of all crates.
    folder.file("context/THIRD-PARTY.txt", "licences");
    let root = folder.path("root");
    let image = Image::build(&read(&packaging("container/Containerfile")), &context, &root);
    for library in libraries(&own_program()) {
        copy(&library, &root.join(library.strip_prefix("/").expect("a path")), None);
    }
    if is_root() {
        // The folder of a test is for its user alone.
        for path in [folder.path(""), root.clone()] {
            assert!(Command::new("chmod").arg("755").arg(path).status().expect("chmod").success());
        }
    }
    let printed = folder.run(["serve", "--new-key", "write"]).expect(0).stdout;
    let lines: Vec<&str> = printed.lines().filter(|line| !line.starts_with('#')).collect();
    folder.file("root/etc/nearsift/keys.txt", lines[1]);
    // The address of the image, with a port of the test.
    let declared = image.variables.iter().find(|(name, _)| name == "NEARSIFT_LISTEN");
    assert_eq!(declared.map(|(_, value)| value.as_str()), Some("0.0.0.0:7717"));
    let port = free_port();
    let listen = format!("0.0.0.0:{port}");
    let words = [&image.entry[..], &image.arguments].concat();
    let Some(mut command) = image.command(&root, &words, &listen) else {
        return skip("no name spaces of users");
    };
    let healthy = || {
        let mut command = image.command(&root, &image.health, &listen).expect("a command");
        command.output().expect("it runs").status.code()
    };
    assert_eq!(healthy(), Some(1), "nothing runs yet");
    let service = Running::run(&mut command);
    assert_eq!(healthy(), Some(0));
    let url = format!("http://127.0.0.1:{port}");
    assert_eq!(status_of(&format!("{url}/readyz")), 200);
    let mut check = document("a", 1);
    check["insert"] = json!(true);
    let mut answer = ureq::post(format!("{url}/v1/check"))
        .header("content-type", "application/json")
        .header("authorization", format!("Bearer {}", lines[0]))
        .send(check.to_string())
        .expect("an answer");
    let answer: Value =
        serde_json::from_slice(&answer.body_mut().read_to_vec().expect("a body")).expect("JSON");
    assert_eq!(answer["insert"], "added", "{answer}");
    if is_root() {
        use std::os::unix::fs::MetadataExt;
        let owner = fs::metadata(root.join("data/default")).expect("a collection").uid();
        assert_eq!(owner.to_string(), image.user.split(':').next().expect("a user"));
    }
    service.signal("-TERM");
    let (status, log) = service.end();
    assert_eq!(status, Some(0), "{log}");
    assert_eq!(healthy(), Some(1), "nothing runs any more");
}

/// The labels of each metric that a service has, with those that a scrape adds.
fn metrics(text: &str) -> BTreeMap<String, BTreeSet<String>> {
    let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let name = line.split(['{', ' ']).next().expect("a name");
        let labels = all.entry(name.to_owned()).or_default();
        labels.extend(["instance", "job"].map(str::to_owned));
        if let Some((_, rest)) = line.split_once('{') {
            let pairs = rest.rsplit_once('}').expect("the end").0;
            labels.extend(pairs.split("\",").filter_map(|p| Some(p.split_once('=')?.0.to_owned())));
        }
    }
    all.insert("up".to_owned(), ["instance", "job"].map(str::to_owned).into());
    all
}

/// The metrics that a text of PromQL names, and the labels: of selectors, of `by`, and of `more`.
fn named(text: &str, more: &[String]) -> (BTreeSet<String>, BTreeSet<String>) {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words = text.split(|c| !is_word(c));
    let metrics =
        words.filter(|w| w.starts_with("nearsift_") || w.starts_with("process_") || *w == "up");
    let mut labels: BTreeSet<String> = more.iter().cloned().collect();
    for (at, _) in text.match_indices(['=', '!']) {
        let before = text[..at].trim_end_matches(['=', '!', '~']);
        let word: String = before.chars().rev().take_while(|c| is_word(*c)).collect();
        let opened = before.rfind('{') > before.rfind('}') && before.contains('{');
        if opened && !word.is_empty() {
            labels.insert(word.chars().rev().collect());
        }
    }
    for (at, by) in text.match_indices("by (") {
        let list = text[at + by.len()..].split(')').next().expect("a list");
        labels.extend(list.split(',').map(|label| label.trim().to_owned()));
    }
    (metrics.map(str::to_owned).collect(), labels)
}

#[track_caller]
fn check_query(query: &str, more: &[String], known: &BTreeMap<String, BTreeSet<String>>) {
    let (metrics, labels) = named(query, more);
    assert!(!metrics.is_empty(), "{query}");
    let mut there = BTreeSet::new();
    for metric in &metrics {
        let own = known.get(metric).unwrap_or_else(|| panic!("no metric {metric}: {query}"));
        there.extend(own.iter());
    }
    for label in &labels {
        assert!(there.contains(label), "no label {label} of {metrics:?}: {query}");
    }
}

#[test]
fn alerts_and_the_dashboard_are_about_metrics_that_there_are() {
    let folder = Folder::new();
    let service = Running::start(&folder, &[]);
    service.post("/v1/documents", &json!({"documents": [document("a", 1)]}));
    service.post("/v1/check", &json!({"text": "一篇不长的文章，用来看看有没有见过它"}));
    let wrong = ureq::get(format!("{}/v1/documents/none", service.url)).call();
    assert!(wrong.is_err());
    let mut answer = ureq::get(format!("{}/metrics", service.url)).call().expect("metrics");
    let text = String::from_utf8(answer.body_mut().read_to_vec().expect("a body")).expect("UTF-8");
    let known = metrics(&text);

    let rules = read(&packaging("prometheus/alerts.yml"));
    let alerts: Vec<&str> = rules.split("- alert: ").skip(1).collect();
    let page = read(&testkit::repository().join("docs/operate/monitoring.md"));
    for alert in &alerts {
        let name = alert.lines().next().expect("a name");
        let (expression, texts) = alert.split_once("annotations:").expect("annotations");
        let expression = expression.split_once("expr:").expect("an expression").1;
        let expression = expression.split("labels: {").next().expect("an expression");
        let shown = texts.split("$labels.").skip(1).map(|rest| {
            rest.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect()
        });
        check_query(expression, &shown.collect::<Vec<String>>(), &known);
        assert!(page.contains(&format!("| `{name}` |")), "{name}");
    }
    assert!(alerts.len() >= 10);
    let service_page = read(&testkit::repository().join("docs/operate/http-api.md"));
    for kind in rules.split("kind=\"").skip(1).filter_map(|rest| rest.split('"').next()) {
        assert!(service_page.contains(&format!("| `{kind}` |")), "{kind}");
    }

    let dashboard: Value =
        serde_json::from_str(&read(&packaging("grafana/dashboard.json"))).expect("JSON");
    let panels = dashboard["panels"].as_array().expect("panels");
    let mut queries = 0;
    for panel in panels {
        for target in panel["targets"].as_array().into_iter().flatten() {
            let legend = target["legendFormat"].as_str().expect("a legend");
            let shown = legend.split("{{").skip(1).filter_map(|rest| rest.split("}}").next());
            let shown: Vec<String> = shown.map(str::to_owned).collect();
            check_query(target["expr"].as_str().expect("a query"), &shown, &known);
            queries += 1;
        }
        // They do not lie over each other.
        let place = |panel: &Value, name: &str| panel["gridPos"][name].as_u64().expect("a number");
        assert!(place(panel, "x") + place(panel, "w") <= 24, "{}", panel["title"]);
    }
    assert!(queries > 20, "{queries}");
    // The page has every metric that there is, and no other.
    for name in known.keys().filter(|name| *name != "up") {
        let base = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end));
        let base = base.unwrap_or(name);
        assert!(page.contains(&format!("`{base}`")), "{base}");
    }
    for name in
        page.split('`').filter(|word| word.starts_with("nearsift_") || word.starts_with("process_"))
    {
        let is_there = known.contains_key(name) || known.contains_key(&format!("{name}_bucket"));
        assert!(is_there, "{name}");
    }
}

#[test]
fn prometheus_reads_the_alerts_and_raises_them() {
    if !has("promtool") {
        return;
    }
    for (check, file) in [("check", "alerts.yml"), ("test", "alerts_test.yml")] {
        let mut promtool = Command::new("promtool");
        promtool.args([check, "rules"]).arg(packaging("prometheus").join(file));
        let run = Run::of(&promtool.output().expect("promtool")).expect(0);
        assert!(run.stdout.contains("SUCCESS"), "{}", run.stdout);
    }
}

/// The lines of a page that are to be typed.
fn commands(page: &str) -> String {
    let lines = page.lines().filter(|line| line.starts_with("    "));
    lines.map(|line| line.trim_start().to_owned() + "\n").collect()
}

#[test]
fn the_commands_about_upgrades_and_backups_work() {
    if !has("curl") {
        return;
    }
    let folder = Folder::new();
    let page = read(&testkit::repository().join("docs/operate/upgrades-and-backups.md"));
    let lines = commands(&page);
    assert!(lines.lines().count() > 20, "{lines}");
    // The unit of the page is a service in the folder of the test.
    let script = r#"
        begin() {
            nearsift serve data --listen 127.0.0.1:7717 --log json 2>> log & service=$!
            until nearsift serve --ready --listen 127.0.0.1:7717 2> /dev/null; do
                kill -0 "$service"
                sleep 0.05
            done
        }
        systemctl() {
            test "$2" = nearsift
            case "$1" in
                stop) kill "$service"; wait "$service"; service= ;;
                start) begin ;;
            esac
        }
        trap 'test -z "$service" || kill "$service"' EXIT
        begin
        curl --fail --silent -H 'Content-Type: application/json' -d @documents.json http://127.0.0.1:7717/v1/documents
    "#;
    let end = "\ncurl --fail --silent http://127.0.0.1:7717/v1/documents/a > found.json\nsystemctl stop nearsift\n";
    let port = free_port().to_string();
    let script = format!("{script}\n{lines}{end}").replace("7717", &port);
    folder.file("documents.json", json!({"documents": [document("a", 1)]}).to_string());
    folder.file("script", script);
    let path = Path::new(&own_program()).parent().expect("a folder").display().to_string();
    let mut shell = Command::new("sh");
    shell.args(["-eu", "script"]).current_dir(folder.path("")).env("NEARSIFT_LANGUAGE", "en");
    shell.env("PATH", format!("{path}:{}", std::env::var("PATH").expect("a path")));
    let run = Run::of(&shell.output().expect("a shell"));
    assert_eq!(run.status, 0, "{}\n{}", run.stdout, run.stderr);
    let found: Value = serde_json::from_str(&read(&folder.path("found.json"))).expect("JSON");
    assert_eq!(found["id"], "a");
    assert!(!folder.path("default-before").exists());
    assert!(folder.path("backup").read_dir().expect("a folder").count() == 1);
}
