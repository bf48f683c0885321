//! Examples at the end of the help of every command, in both languages.

use clap::Command;
use nearsift_batch::PageLanguage;

/// A line to type, and what it is for.
struct Example {
    line: &'static str,
    english: &'static str,
    chinese: &'static str,
}

const fn example(line: &'static str, english: &'static str, chinese: &'static str) -> Example {
    Example { line, english, chinese }
}

/// The examples of each command, by its name; of a command below another by both names. A test runs the lines in this order, in one folder, so
/// that later ones find what earlier ones have written.
const EXAMPLES: &[(&str, &[Example])] = &[
    (
        "",
        &[
            example(
                "nearsift dedup corpus.jsonl --output first",
                "Remove near-duplicates; first/report.html says why each document went",
                "去除近似重复；first/report.html 说明每篇文档为何去除",
            ),
            example("nearsift compare a.txt b.txt", "Compare two documents", "比较两篇文档"),
            example(
                "nearsift help dedup",
                "Show the options of a command, with examples",
                "显示一个命令的选项和示例",
            ),
        ],
    ),
    (
        "dedup",
        &[
            example(
                "nearsift dedup corpus.jsonl --output out",
                "Keep one document of each group; out/report.html says why the others went",
                "每组保留一篇；out/report.html 说明其余文档为何去除",
            ),
            example(
                "nearsift dedup news --output longest --output-file longest.jsonl.gz --keep longest",
                "Read a folder, keep the longest of each group, and write them as one file",
                "读取文件夹，每组保留最长的一篇，写成一个文件",
            ),
            example(
                "nearsift dedup corpus.jsonl --output dry --dry-run",
                "Say what would be removed, and write no document",
                "只说明会去除什么，不写文档",
            ),
            example(
                "zcat corpus.jsonl.gz | nearsift dedup - --format jsonl --output - > kept.jsonl",
                "In a pipe",
                "用在管道中",
            ),
        ],
    ),
    (
        "trim",
        &[
            example(
                "nearsift trim news --output trimmed",
                "Remove lines that were there before, such as menus and notices",
                "去除前面出现过的行，如菜单和声明",
            ),
            example(
                "nearsift trim corpus.jsonl --output cut --substrings 200 --narrow sentence",
                "Remove exact repeats of at least 200 bytes, in whole sentences",
                "去除至少 200 字节的完全重复，以整句为单位",
            ),
        ],
    ),
    (
        "decontaminate",
        &[
            example(
                "nearsift decontaminate corpus.jsonl --output clean --benchmarks questions.jsonl",
                "Remove documents that have passages of a test set",
                "去除含有测试集段落的文档",
            ),
            example(
                "nearsift decontaminate corpus.jsonl --output checked --benchmarks questions.jsonl --mark",
                "Keep all documents, with columns that say what was found",
                "保留所有文档，并加上说明所发现内容的列",
            ),
        ],
    ),
    (
        "sketch",
        &[
            example(
                "nearsift sketch news/1.jsonl --output part-1",
                "Make a part of some files, on one machine",
                "在一台机器上用一些文件制作一个分片",
            ),
            example(
                "nearsift sketch news/2.jsonl --output part-2",
                "Make a part of other files, on another machine",
                "在另一台机器上用其他文件制作一个分片",
            ),
        ],
    ),
    (
        "join",
        &[example(
            "nearsift join part-1 part-2 --output joined",
            "Decide about the documents of two parts",
            "判定两个分片中的文档",
        )],
    ),
    (
        "apply",
        &[example(
            "nearsift apply part-1 --decisions joined --output kept-1",
            "Write what stays of the files of a part",
            "写出一个分片的文件中保留的文档",
        )],
    ),
    (
        "regroup",
        &[
            example(
                "nearsift dedup corpus.jsonl --output run --keep-pairs-from 0.5",
                "Keep what other decisions need",
                "保留其他判定所需的数据",
            ),
            example(
                "nearsift regroup run --output stricter --min-score 0.8",
                "Decide anew with a larger score, without the input",
                "用更高的得分重新判定，不需要输入",
            ),
            example(
                "nearsift apply run --decisions stricter --output kept-stricter",
                "Write the documents that stay",
                "写出保留的文档",
            ),
        ],
    ),
    (
        "pairs",
        &[
            example(
                "nearsift pairs corpus.jsonl > pairs.jsonl",
                "Print pairs with their scores",
                "输出各对及其得分",
            ),
            example(
                "nearsift pairs corpus.jsonl --method simhash --max-distance 3",
                "Pairs of SimHash fingerprints that differ in at most 3 bits",
                "相差不超过 3 位的 SimHash 指纹对",
            ),
        ],
    ),
    (
        "fingerprint",
        &[example(
            "nearsift fingerprint corpus.jsonl --recipe simhash64",
            "Print 64-bit SimHash fingerprints",
            "输出 64 位 SimHash 指纹",
        )],
    ),
    (
        "compare",
        &[
            example(
                "nearsift compare a.txt b.txt",
                "Compare two files, and mark their differences",
                "比较两个文件，并标出差异",
            ),
            example(
                "nearsift compare title-pool-a title-pool-b --in corpus.jsonl --html compared.html",
                "Compare two documents of a file by their ids, and write a page about it",
                "按 id 比较一个文件中的两篇文档，并写成网页",
            ),
        ],
    ),
    (
        "why",
        &[
            example(
                "nearsift why out title-pool-b",
                "What a run decided about a document, and on what",
                "一次运行对某篇文档的判定及依据",
            ),
            example(
                "nearsift why out title-pool-a title-pool-b --in corpus.jsonl",
                "Why two documents are together, with their differences",
                "两篇文档为何在一起，并标出差异",
            ),
        ],
    ),
    (
        "clusters",
        &[example(
            "nearsift clusters clusters.jsonl out",
            "Add the clusters of a run to a table, which is made if there is none",
            "把一次运行的聚类加入表中，没有表则创建",
        )],
    ),
    (
        "keywords",
        &[example(
            "nearsift keywords a.txt --top 10",
            "The ten features that weigh most",
            "权重最大的十个特征",
        )],
    ),
    (
        "recipes",
        &[example(
            "nearsift recipes --json",
            "All recipes with their parameters, a JSON line each",
            "所有配方及其参数，每行一个 JSON",
        )],
    ),
    (
        "eval",
        &[example(
            "nearsift eval corpus.jsonl --truth truth.tsv",
            "Recall and precision against labelled pairs",
            "对照已标注的对，测量召回率和准确率",
        )],
    ),
    (
        "tune",
        &[
            example(
                "nearsift tune corpus.jsonl --output tuned",
                "Propose a threshold, and write it as a settings file",
                "建议一个阈值，并写成设置文件",
            ),
            example(
                "nearsift dedup corpus.jsonl --output tuned-out --config tuned/nearsift.toml",
                "Use that file",
                "使用该文件",
            ),
        ],
    ),
    (
        "index",
        &[
            example("nearsift index create seen", "Make an empty index", "创建空索引"),
            example(
                "nearsift index add seen corpus.jsonl --new-only",
                "Add documents that are near to none, and print the others",
                "加入与已有文档都不近似的文档，并输出其余的",
            ),
            example(
                "nearsift index query seen corpus.jsonl",
                "Which documents of the index is each of these near to?",
                "索引中有哪些文档与各篇近似？",
            ),
        ],
    ),
    (
        "index create",
        &[
            example("nearsift index create sketches", "An index of sketches", "草图的索引"),
            example(
                "nearsift index create prints --recipe simhash64 --max-distance 3",
                "An index of 64-bit fingerprints",
                "64 位指纹的索引",
            ),
            example(
                "nearsift index create pages --keep-texts",
                "An index that keeps the texts and compares them",
                "保存并比较文本的索引",
            ),
        ],
    ),
    (
        "index add",
        &[example(
            "nearsift index add pages corpus.jsonl --expire-after 2592000",
            "Add documents that are forgotten after 30 days",
            "加入文档，30 天后忘记",
        )],
    ),
    (
        "index query",
        &[example(
            "nearsift index query pages corpus.jsonl --limit 3",
            "The three nearest of each document, as JSON lines",
            "每篇文档最近的三篇，每行一个 JSON",
        )],
    ),
    (
        "index remove",
        &[example(
            "nearsift index remove pages beekeeping-letter",
            "Remove a document by its id",
            "按 id 删除一篇文档",
        )],
    ),
    (
        "index stats",
        &[example(
            "nearsift index stats pages --json",
            "Documents, segments and bytes",
            "文档数、段数和字节数",
        )],
    ),
    (
        "index verify",
        &[example(
            "nearsift index verify pages",
            "Read every byte and check it",
            "读取并检查每个字节",
        )],
    ),
    (
        "index repair",
        &[example(
            "nearsift index repair pages",
            "Keep what is whole after damage",
            "损坏之后保留完好的部分",
        )],
    ),
    (
        "index compact",
        &[example(
            "nearsift index compact pages",
            "Free the space of removed documents",
            "释放已删除文档的空间",
        )],
    ),
    (
        "index snapshot",
        &[example(
            "nearsift index snapshot pages backup",
            "Copy the index into a new folder, as a backup",
            "把索引复制到新文件夹，作为备份",
        )],
    ),
    (
        "index restore",
        &[example(
            "nearsift index restore restored backup",
            "Make an index from a backup, checked byte by byte",
            "由备份恢复索引，逐字节检查",
        )],
    ),
    (
        "vectors",
        &[example(
            "nearsift vectors vectors.jsonl",
            "Check that fingerprints are still those of the file",
            "检查指纹是否仍与文件中的一致",
        )],
    ),
    #[cfg(unix)]
    (
        "view",
        &[
            example(
                "nearsift view out",
                "Show a run at http://127.0.0.1:7718",
                "在 http://127.0.0.1:7718 显示一次运行",
            ),
            example(
                "nearsift view out --review reviewed.csv --listen 127.0.0.1:0",
                "Also keep judgements on pairs; take a free port",
                "另外保存对各对的判断；使用空闲端口",
            ),
        ],
    ),
    #[cfg(unix)]
    (
        "serve",
        &[
            example(
                "nearsift serve data",
                "Serve this machine at http://127.0.0.1:7717",
                "在 http://127.0.0.1:7717 为本机服务",
            ),
            example(
                "nearsift serve --new-key write",
                "Make an API key, and its line for the file of keys",
                "生成 API 密钥，以及密钥文件中的一行",
            ),
            example(
                "nearsift serve data --listen 0.0.0.0:7717 --keys-file keys.txt --tls-cert cert.pem --tls-key key.pem",
                "Serve other machines, by HTTPS and with keys",
                "用 HTTPS 和密钥为其他机器服务",
            ),
            example(
                "nearsift serve --ready || echo down",
                "Ask the service at 127.0.0.1:7717 whether it is ready",
                "询问 127.0.0.1:7717 的服务是否就绪",
            ),
            example(
                "nearsift serve --print-config > service.toml",
                "Write all settings as a file",
                "把所有设置写成文件",
            ),
        ],
    ),
    (
        "bench",
        &[
            example(
                "nearsift bench --calibrate",
                "Measure the speeds by which plans are chosen",
                "测量选择方案所依据的速度",
            ),
            example(
                "nearsift bench plan --n 100000000",
                "The plans for 10^8 fingerprints, with their costs",
                "10^8 个指纹的方案及其代价",
            ),
        ],
    ),
    (
        "bench hamming",
        &[example(
            "nearsift bench hamming --n 1000000 --rounds 3",
            "Measure the search among 10^6 fingerprints",
            "测量在 10^6 个指纹中的搜索",
        )],
    ),
    (
        "bench plan",
        &[example(
            "nearsift bench plan --n 1000000000 --bits 64 --max-distance 3 --memory 24GB",
            "The plans for 10^9 fingerprints in 24 GB of memory",
            "10^9 个指纹在 24 GB 内存中的方案",
        )],
    ),
    (
        "completions",
        &[
            example(
                "nearsift completions bash > ~/.local/share/bash-completion/completions/nearsift",
                "Bash",
                "Bash",
            ),
            example(
                "nearsift completions zsh > ~/.zfunc/_nearsift",
                "Zsh, where ~/.zshrc has `fpath+=~/.zfunc` before `compinit`",
                "Zsh，~/.zshrc 中 `compinit` 之前要有 `fpath+=~/.zfunc`",
            ),
            example(
                "nearsift completions fish > ~/.config/fish/completions/nearsift.fish",
                "Fish",
                "Fish",
            ),
        ],
    ),
    (
        "man",
        &[example(
            "nearsift man --output ~/.local/share/man/man1",
            "Then `man nearsift` and `man nearsift-dedup` show them",
            "之后可用 `man nearsift` 和 `man nearsift-dedup` 查看",
        )],
    ),
];

/// The command line with examples at the end of each long help.
pub fn add(command: Command, language: PageLanguage) -> Command {
    add_below(command, "", language)
}

fn add_below(command: Command, path: &str, language: PageLanguage) -> Command {
    let command = command.mut_subcommands(|own| {
        let below = format!("{path} {}", own.get_name());
        add_below(own, below.trim_start(), language)
    });
    match EXAMPLES.iter().find(|(name, _)| *name == path) {
        Some((_, examples)) => command.after_long_help(text(examples, language)),
        None => command,
    }
}

fn text(examples: &[Example], language: PageLanguage) -> String {
    let mut text = language.pick(["Examples:", "示例："]).to_owned();
    for example in examples {
        let about = language.pick([example.english, example.chinese]);
        text.push_str(&format!("\n  # {about}\n  $ {}\n", continued(example.line)));
    }
    text.truncate(text.trim_end().len());
    text
}

/// The line in several where it is long: terminals of 80 columns do not wrap it, and a shell reads it as one.
fn continued(line: &str) -> String {
    const WIDTH: usize = 72;
    let mut lines = String::new();
    let mut width = 0;
    for word in line.split(' ') {
        if width + word.len() > WIDTH {
            lines.push_str("\\\n      ");
            width = 6;
        }
        lines.push_str(word);
        lines.push(' ');
        width += word.len() + 1;
    }
    lines.truncate(lines.trim_end().len());
    lines
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::args::Cli;

    fn paths(command: &Command, path: &str, all: &mut Vec<String>) {
        all.push(path.to_owned());
        for own in command.get_subcommands() {
            paths(own, format!("{path} {}", own.get_name()).trim_start(), all);
        }
    }

    #[test]
    fn every_command_has_examples_and_every_example_a_command() {
        let mut expected = Vec::new();
        paths(&Cli::command(), "", &mut expected);
        let mut found: Vec<String> = EXAMPLES.iter().map(|(name, _)| (*name).to_owned()).collect();
        expected.sort();
        found.sort();
        assert_eq!(found, expected);
    }

    #[test]
    fn long_lines_are_continued() {
        assert_eq!(continued("nearsift dedup in"), "nearsift dedup in");
        let line = format!("nearsift {} end", "word ".repeat(20).trim_end());
        let lines = continued(&line);
        assert!(lines.lines().all(|line| line.len() <= 76) && lines.contains(" \\\n"), "{lines}");
        assert_eq!(lines.replace("\\\n      ", ""), line);
    }

    /// The lines of a help, as a shell would read them.
    fn lines(help: &str) -> Vec<String> {
        let help = help.replace("\\\n      ", "");
        help.lines().filter_map(|line| line.trim().strip_prefix("$ ").map(str::to_owned)).collect()
    }

    #[test]
    fn every_example_in_the_help_is_a_command_line() {
        for language in [PageLanguage::English, PageLanguage::Chinese] {
            let mut program = add(Cli::command(), language);
            if language == PageLanguage::Chinese {
                program = crate::chinese::translate(program);
            }
            program.build();
            let mut read = 0;
            let mut commands = vec![program];
            while let Some(mut command) = commands.pop() {
                commands.extend(command.get_subcommands().cloned());
                for line in lines(&command.render_long_help().to_string()) {
                    let own = line.split(" | ").find(|part| part.starts_with("nearsift "));
                    let own = own.unwrap_or_else(|| panic!("{line}"));
                    let words = own.split(['>', '|']).next().unwrap_or_default().trim().split(' ');
                    match Cli::command().try_get_matches_from(words) {
                        Ok(_) => read += 1,
                        // Of `nearsift help`.
                        Err(error) => assert_eq!(error.exit_code(), 0, "{line}\n{error}"),
                    }
                }
            }
            let all: usize = EXAMPLES.iter().map(|(_, examples)| examples.len()).sum();
            assert_eq!(read, all - 1);
        }
    }
}
