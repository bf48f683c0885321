//! Names from other programs for the same work, and what to write here instead.

use clap::{Command, CommandFactory};
use nearsift_batch::PageLanguage;

use crate::args::Cli;

/// Options of other programs that one option of this program stands for.
struct OtherNames {
    /// The others, without dashes.
    names: &'static [&'static str],
    /// Commands that have this option are meant.
    own: &'static str,
    english: &'static str,
    chinese: &'static str,
}

/// Of two rows with a name the first counts whose option the command has.
const OPTIONS: &[OtherNames] = &[
    OtherNames {
        names: &["threshold", "similarity", "jaccard", "overlap", "cutoff"],
        own: "min-coverage",
        english: "--min-coverage gives the smallest share of a text that a passage has",
        chinese: "段落至少占文本多大比例由 --min-coverage 给出",
    },
    OtherNames {
        names: &[
            "threshold",
            "similarity",
            "jaccard",
            "min-similarity",
            "similarity-threshold",
            "jaccard-threshold",
            "min-jaccard",
            "cutoff",
        ],
        own: "min-score",
        english: "--min-score gives the smallest score that is near, from 0 to 1",
        chinese: "算作近似的最低得分由 --min-score 给出，0 至 1",
    },
    OtherNames {
        names: &["distance", "hamming", "hamming-distance", "bit-diff"],
        own: "max-distance",
        english: "--max-distance gives the largest Hamming distance that is near, in bits",
        chinese: "算作近似的最大汉明距离由 --max-distance 给出，单位为位",
    },
    OtherNames {
        names: &[
            "num-perm",
            "num-perms",
            "permutations",
            "num-hashes",
            "hashes",
            "bands",
            "num-bands",
            "rows",
            "num-rows",
            "rows-per-band",
        ],
        own: "min-score",
        english: "there is none to choose: the sketch is of one size; --min-score says what is near",
        chinese: "无需选择：草图大小固定；什么算近似由 --min-score 给出",
    },
    OtherNames {
        names: &["ngram", "ngrams", "ngram-size", "n-gram", "shingle", "shingle-size", "kshingle"],
        own: "recipe",
        english: "the recipe says what a feature is: --recipe, and `nearsift recipes` lists them",
        chinese: "特征由配方决定：--recipe，`nearsift recipes` 列出所有配方",
    },
    OtherNames {
        names: &["column", "text-column", "text-key", "content-field", "content", "field"],
        own: "text-field",
        english: "--text-field names the field or column of the text",
        chinese: "文本所在的字段或列由 --text-field 给出",
    },
    OtherNames {
        names: &["id-column", "id-key", "index-column", "id"],
        own: "id-field",
        english: "--id-field names the field or column of the id",
        chinese: "id 所在的字段或列由 --id-field 给出",
    },
    OtherNames {
        names: &["encoding", "input-encoding"],
        own: "charset",
        english: "--charset names the charset of the input",
        chinese: "输入的字符集由 --charset 给出",
    },
    OtherNames {
        names: &["sep", "separator", "field-separator", "delim"],
        own: "delimiter",
        english: "--delimiter gives the character between the fields of CSV",
        chinese: "CSV 的分隔符由 --delimiter 给出",
    },
    OtherNames {
        names: &["type", "input-format", "file-type", "filetype"],
        own: "format",
        english: "--format names the format of the input",
        chinese: "输入的格式由 --format 给出",
    },
    OtherNames {
        names: &["out", "output-dir", "out-dir", "outdir", "output-folder", "output-path", "dest"],
        own: "output",
        english: "--output names the folder for the results",
        chinese: "存放结果的文件夹由 --output 给出",
    },
    OtherNames {
        names: &["to", "out-format"],
        own: "output-format",
        english: "--output-format names the format of the documents that are written",
        chinese: "写出文档的格式由 --output-format 给出",
    },
    OtherNames {
        names: &["compress", "compression", "codec"],
        own: "output-compression",
        english: "--output-compression says how converted files are compressed",
        chinese: "转换后的文件如何压缩由 --output-compression 给出",
    },
    OtherNames {
        names: &["input", "inputs", "input-dir", "input-file", "input-path", "files", "i"],
        own: "files-from",
        english: "inputs stand without an option, as in `nearsift pairs FILE FOLDER`; --files-from names a list of them",
        chinese: "输入不用选项，直接写出，如 `nearsift pairs FILE FOLDER`；--files-from 给出输入的清单",
    },
    OtherNames {
        names: &["recursive", "r"],
        own: "files-from",
        english: "a folder is read with all folders below it",
        chinese: "读取文件夹时总是包含其下所有文件夹",
    },
    OtherNames {
        names: &["input", "documents", "corpus"],
        own: "in",
        english: "--in names the files or folders of the documents",
        chinese: "文档所在的文件或文件夹由 --in 给出",
    },
    OtherNames {
        names: &[
            "workers",
            "num-workers",
            "jobs",
            "j",
            "n-jobs",
            "processes",
            "num-processes",
            "num-proc",
            "nproc",
            "cpus",
            "parallel",
        ],
        own: "threads",
        english: "--threads gives the number of worker threads",
        chinese: "工作线程数由 --threads 给出",
    },
    OtherNames {
        names: &["verbose", "v", "debug"],
        own: "progress",
        english: "progress, notes and warnings are shown unless --quiet is given; --progress json prints each step",
        chinese: "除非给出 --quiet，进度、说明和警告都会显示；--progress json 逐步输出",
    },
    OtherNames {
        names: &["verbose", "v", "debug", "log-level"],
        own: "log",
        english: "--log says how the log is written, which has a line for each request",
        chinese: "日志的格式由 --log 给出，每个请求一行",
    },
    OtherNames {
        names: &["verbose", "v", "debug"],
        own: "quiet",
        english: "notes and warnings are shown unless --quiet is given",
        chinese: "除非给出 --quiet，说明和警告都会显示",
    },
    OtherNames {
        names: &["silent", "no-progress"],
        own: "quiet",
        english: "--quiet shows no progress, notes or warnings",
        chinese: "--quiet 不显示进度、说明和警告",
    },
    OtherNames {
        names: &["no-color", "no-colour", "colour"],
        own: "color",
        english: "--color says when to use colour: auto, always or never",
        chinese: "何时使用颜色由 --color 给出：auto、always 或 never",
    },
    OtherNames {
        names: &["force", "clobber", "f"],
        own: "overwrite",
        english: "--overwrite replaces the results of an earlier run",
        chinese: "--overwrite 替换上一次运行的结果",
    },
    OtherNames {
        names: &["continue", "restart"],
        own: "resume",
        english: "--resume goes on with a run that was stopped",
        chinese: "--resume 接续中断的运行",
    },
    OtherNames {
        names: &["max-memory", "memory-limit", "mem", "ram"],
        own: "memory",
        english: "--memory gives the memory to use, such as 4GB",
        chinese: "可用的内存由 --memory 给出，如 4GB",
    },
    OtherNames {
        names: &["lang", "locale"],
        own: "language",
        english: "--language names the language, en or zh",
        chinese: "语言由 --language 给出，en 或 zh",
    },
    OtherNames {
        names: &["port", "host", "bind", "address", "addr", "p"],
        own: "listen",
        english: "--listen gives the address and the port, as 127.0.0.1:7717",
        chinese: "地址和端口由 --listen 给出，如 127.0.0.1:7717",
    },
    OtherNames {
        names: &["cert", "certificate", "ssl-cert"],
        own: "tls-cert",
        english: "--tls-cert names the certificate, and --tls-key its private key",
        chinese: "证书由 --tls-cert 给出，其私钥由 --tls-key 给出",
    },
    OtherNames {
        names: &["api-key", "token", "auth"],
        own: "keys-file",
        english: "--keys-file names a file of API keys, whose lines --new-key prints",
        chinese: "API 密钥的文件由 --keys-file 给出，其中的行由 --new-key 输出",
    },
    OtherNames {
        names: &["config-file", "settings", "c"],
        own: "config",
        english: "--config names a settings file",
        chinese: "设置文件由 --config 给出",
    },
];

/// Commands of other programs, and what stands for them here.
const COMMANDS: &[(&[&str], &str)] = &[
    (&["deduplicate", "dedupe", "deduplication", "unique", "uniq", "minhash"], "dedup"),
    (&["simhash", "hash", "signature", "signatures"], "fingerprint"),
    (&["diff", "similarity", "distance"], "compare"),
    (&["search", "query", "lookup"], "index query"),
    (&["add", "insert"], "index add"),
    (&["server", "start", "api", "daemon"], "serve"),
    (&["ui", "web", "browse", "gui"], "view"),
    (&["merge", "union"], "join"),
    (&["evaluate", "benchmark", "score"], "eval"),
    (&["completion", "complete", "autocomplete"], "completions"),
    (&["manual", "manpage", "manpages", "docs"], "man"),
];

/// What to write in place of an option that `command` does not have.
pub fn of_option(given: &str, command: &Command, language: PageLanguage) -> Option<&'static str> {
    // Names are compared as they are mostly written.
    let name = given.split('=').next().unwrap_or_default().trim_start_matches('-');
    let name = name.replace('_', "-").to_lowercase();
    let has = |own: &str| command.get_arguments().any(|arg| arg.get_long() == Some(own));
    let row = OPTIONS.iter().find(|row| row.names.contains(&name.as_str()) && has(row.own))?;
    Some(language.pick([row.english, row.chinese]))
}

/// What to write in place of a command that is not there.
pub fn of_command(given: &str, language: PageLanguage) -> Option<String> {
    let given = given.to_lowercase();
    let (_, own) = COMMANDS.iter().find(|(names, _)| names.contains(&given.as_str()))?;
    // Some are on Unix alone.
    Cli::command().find_subcommand(own.split(' ').next()?)?;
    let own = format!("`nearsift {own}`");
    Some(language.pick([format!("{own} does that"), format!("请用 {own}")]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All commands, with those below others.
    #[cfg(unix)]
    fn all(command: &Command) -> Vec<Command> {
        let below = command.get_subcommands().flat_map(all);
        std::iter::once(command.clone()).chain(below).collect()
    }

    #[cfg(unix)]
    fn commands() -> Vec<Command> {
        let mut program = Cli::command();
        program.build();
        all(&program)
    }

    #[cfg(unix)]
    #[test]
    fn every_row_is_for_a_command() {
        let commands = commands();
        for row in OPTIONS {
            let longs = |command: &Command| -> Vec<String> {
                command.get_arguments().filter_map(|a| a.get_long()).map(str::to_owned).collect()
            };
            let with_own: Vec<&Command> = commands
                .iter()
                .filter(|command| longs(command).contains(&row.own.to_owned()))
                .collect();
            assert!(!with_own.is_empty(), "{}", row.own);
            for name in row.names {
                let reaches = |command: &&Command| {
                    !longs(command).contains(&(*name).to_owned())
                        && of_option(name, command, PageLanguage::English) == Some(row.english)
                        && of_option(name, command, PageLanguage::Chinese) == Some(row.chinese)
                };
                assert!(with_own.iter().any(reaches), "{name}: {}", row.own);
            }
            // Each option that the text names is one.
            for word in row.english.split(|c: char| !c.is_ascii_alphanumeric() && c != '-') {
                if let Some(option) = word.strip_prefix("--") {
                    let is_there = |command: &Command| longs(command).contains(&option.to_owned());
                    assert!(with_own.iter().any(|command| is_there(command)), "{option}");
                    assert!(row.chinese.contains(word), "{word}: {}", row.chinese);
                }
            }
        }
    }

    #[cfg(unix)]
    #[test]
    fn every_command_that_is_named_is_one() {
        let names: Vec<String> = commands().iter().map(|c| c.get_name().to_owned()).collect();
        for (others, own) in COMMANDS {
            let own = own.split(' ').next_back().unwrap_or_default();
            assert!(names.iter().any(|name| name == own), "{own}");
            for other in *others {
                let program = Cli::command();
                assert!(program.find_subcommand(other).is_none(), "{other}");
            }
        }
    }

    #[test]
    fn names_are_compared_as_they_are_written() {
        let program = Cli::command();
        let dedup = program.find_subcommand("dedup").expect("dedup");
        for given in ["--threshold", "--Threshold=0.8", "-threshold", "--min_similarity"] {
            let tip = of_option(given, dedup, PageLanguage::English).unwrap_or_default();
            assert!(tip.starts_with("--min-score"), "{given}: {tip}");
        }
        assert_eq!(of_option("--none-such", dedup, PageLanguage::English), None);
    }
}
