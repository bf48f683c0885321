//! Programs in C, C++ and Java that use the library, compiled and run as their authors would.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;
use testkit::command::quiet;

const TOUR: &str = "tour.c";

/// What a static library needs beside itself: `rustc --print native-static-libs`.
const SYSTEM: [&str; 6] = ["-lgcc_s", "-lutil", "-lrt", "-lpthread", "-lm", "-ldl"];

fn folder(name: &str) -> PathBuf {
    testkit::repository().join("bindings/c").join(name)
}

/// The libraries as cargo has built them for this test, by the names that they are installed under.
fn libraries() -> TempDir {
    let test = std::env::current_exe().expect("the path of this test");
    let built = test.parent().expect("a folder");
    let folder = tempfile::tempdir().expect("a folder");
    for (file, names) in [
        ("libnearsift_c.so", &["libnearsift.so", SONAME] as &[_]),
        ("libnearsift_c.a", &["static/libnearsift.a"]),
    ] {
        let file = built.join(file);
        assert!(file.is_file(), "{}: cargo builds it with this test", file.display());
        for name in names {
            let name = folder.path().join(name);
            std::fs::create_dir_all(name.parent().expect("a folder")).expect("a folder");
            symlink(&file, name).expect("a link");
        }
    }
    folder
}

/// The name that the shared library is looked for by at run time.
const SONAME: &str = concat!(
    "libnearsift.so.",
    env!("CARGO_PKG_VERSION_MAJOR"),
    ".",
    env!("CARGO_PKG_VERSION_MINOR")
);

/// Whether a program is there; says what is skipped else.
fn is_there(program: &str, skipped: &str) -> bool {
    let mut command = Command::new(program);
    command.arg("--version");
    let there = quiet(command).is_ok();
    if !there {
        eprintln!("SKIPPED: no {program}: {skipped}");
    }
    there
}

/// Compiles the example with all warnings as errors.
#[track_caller]
fn compile(compiler: &str, standard: &str, linked: &[&str], program: &Path) {
    let mut command = Command::new(compiler);
    let flags = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-g", "-O1"];
    command.arg(standard).args(flags).arg("-I").arg(folder("include"));
    if compiler == "g++" {
        command.args(["-x", "c++"]);
    }
    command.arg(folder("examples").join(TOUR)).args(["-x", "none"]).args(linked);
    command.arg("-o").arg(program);
    quiet(command).unwrap_or_else(|said| panic!("{compiler}: {said}"));
}

/// What the example prints; the command may be one that runs it.
#[track_caller]
fn tour(mut command: Command, seen: &Path) -> String {
    command.arg(seen);
    quiet(command).unwrap_or_else(|said| panic!("{said}"))
}

/// What it must print, after its version.
const PRINTED: &str = concat!(
    "nearsift    ",
    env!("CARGO_PKG_VERSION"),
    "\n",
    include_str!("../../examples/tour.txt")
);

#[test]
fn an_example_runs_in_c_and_cpp_with_both_libraries() {
    let libraries = libraries();
    let at = libraries.path().to_str().expect("UTF-8");
    let (search, run_path) = (format!("-L{at}"), format!("-Wl,-rpath,{at}"));
    let shared = [&*search, &*run_path, "-lnearsift"];
    let archive = format!("{at}/static/libnearsift.a");
    let linked_in: Vec<&str> = [&*archive].into_iter().chain(SYSTEM).collect();
    for (compiler, standard) in [("gcc", "-std=c99"), ("g++", "-std=c++17")] {
        if !is_there(compiler, "the example is not compiled by it") {
            continue;
        }
        for (name, linked) in [("shared", &shared[..]), ("static", &linked_in)] {
            let program = libraries.path().join(format!("tour-{compiler}-{name}"));
            compile(compiler, standard, linked, &program);
            let seen = libraries.path().join(format!("seen-{compiler}-{name}"));
            assert_eq!(tour(Command::new(&program), &seen), PRINTED, "{compiler} {name}");
        }
    }
}

#[test]
fn the_example_is_clean_under_valgrind() {
    if !is_there("gcc", "nothing to run under valgrind")
        || !is_there("valgrind", "memory is not checked; install valgrind")
    {
        return;
    }
    let libraries = libraries();
    let at = libraries.path().to_str().expect("UTF-8");
    let (search, run_path) = (format!("-L{at}"), format!("-Wl,-rpath,{at}"));
    let program = libraries.path().join("tour");
    compile("gcc", "-std=c99", &[&search, &run_path, "-lnearsift"], &program);
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--quiet", "--error-exitcode=99", "--leak-check=full"]);
    valgrind
        .args(["--errors-for-leak-kinds=definite,indirect", "--show-leak-kinds=definite,indirect"]);
    valgrind.arg(&program);
    assert_eq!(tour(valgrind, &libraries.path().join("seen")), PRINTED);
}

/// Where distributions have JNA.
const JNA: [&str; 2] = ["/usr/share/java/jna.jar", "/usr/share/java/jna/jna.jar"];

#[test]
fn an_example_runs_in_java() {
    let Some(jna) = JNA.iter().find(|jar| Path::new(jar).is_file()) else {
        eprintln!("SKIPPED: no jna.jar in /usr/share/java: install libjna-java");
        return;
    };
    if !is_there("javac", "the example in Java is not run; install a JDK") {
        return;
    }
    let libraries = libraries();
    let compare = |a: &str, b: &str| {
        let mut java = Command::new("java");
        java.args(["-Djna.encoding=UTF-8", "-cp", jna]);
        java.arg(format!("-Djna.library.path={}", libraries.path().display()));
        java.arg(folder("examples").join("Compare.java")).args([a, b]).env("LC_ALL", "C.UTF-8");
        quiet(java)
    };
    let [a, _, b, _] = crate::support::TEXTS;
    assert_eq!(compare(a, b).unwrap_or_else(|said| panic!("{said}")), "0.6016\n");
    let refused = compare("ok", b).expect_err("it is too short");
    assert!(refused.contains("too few features"), "{refused}");
}
