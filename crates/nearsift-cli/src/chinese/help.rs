//! The help of the commands that people use most, in Chinese.
//!
//! A table has the text of each argument by its id. Defaults and possible values, which clap adds in English, are added here.

use clap::builder::StyledStr;
use clap::{Arg, Command};

/// The commands that have a help in Chinese, with what they are for.
const COMMANDS: [(&str, &str); 3] = [
    ("dedup", "去除近似重复：写出值得保留的文档，以及其余文档为何去除。"),
    ("compare", "用各种度量比较两篇文档，并标出差异。"),
    (
        "serve",
        "通过 HTTP 提供文件夹中的集合，直到收到停止信号（SIGTERM、Ctrl-C）。\n\n设置可用命令行选项、环境变量（--max-body 对应 NEARSIFT_MAX_BODY）或 TOML 文件（max-body = \"16MiB\"）给出；选项优先于环境变量，环境变量优先于文件。路由见 docs/operate/http-api.md。",
    ),
];

/// How a command begins.
const TEMPLATE: &str = "{about-with-newline}\n用法：{usage}\n\n{all-args}{after-help}";

const HEADINGS: [(&str, &str); 7] = [
    ("What is read", "读取什么"),
    ("What decides a fingerprint", "指纹由什么决定"),
    ("What is near", "什么算近似"),
    ("What comes out", "输出什么"),
    ("How it runs", "如何运行"),
    ("Settings", "设置"),
    ("Common options", "通用选项"),
];

/// What an argument is for, by its id.
const ARGUMENTS: &[(&str, &str)] = &[
    // Of all commands.
    ("help", "显示帮助。"),
    ("version", "显示版本。"),
    (
        "quiet",
        "不显示进度、说明和警告，也不显示 dedup、trim 和 decontaminate 的小结；错误、结果和退出状态不变。",
    ),
    ("color", "何时使用颜色。"),
    ("json", "凡有输出处都输出 JSON；pairs、fingerprint 和 index query 总是如此。"),
    ("threads", "工作线程数 [默认：每核一个]；对 serve 而言是处理文档的线程。"),
    // What is read.
    (
        "inputs",
        "文件、文件夹、通配模式，或表示标准输入的 -；.gz、.zst、.xz 和 .bz2 直接解压，.tar 和 .zip 直接读取其中成员。",
    ),
    ("files_from", "另读此文件所列的文件、文件夹和模式，每行一个；- 为标准输入。"),
    ("format", "输入的格式。"),
    ("text_field", "文本所在的字段（a.b 表示嵌套字段）。"),
    ("id_field", "id 所在的字段；没有该字段的文档用 FILE:LINE。"),
    (
        "delimiter",
        "CSV 的分隔符：`;`、`|`、`tab` 等 [默认：由 `sep=` 行或表头判断；判断不出则为逗号]。",
    ),
    (
        "charset",
        "字符集，如 gbk 或 big5 [默认：JSON 和 CSV 为 UTF-8；文本和 HTML 按其声明，否则按字节判断]。",
    ),
    ("follow_links", "也跟随指向输入文件夹之外的链接。指向文件夹之内的链接总是跟随。"),
    ("max_record_bytes", "可读取的最长记录，如 1GB；更长的计为无法读取 [默认：64MiB]。"),
    ("max_file_bytes", "一个压缩文件解压后的最大字节数，如 100GB [默认：1TiB]。"),
    ("max_ratio", "压缩文件解压后平均最多为原大小的多少倍 [默认：256]。"),
    ("max_window_log", "最大的 zstd 窗口，以 2 为底的字节数对数 [默认：27]。"),
    (
        "config",
        "从 TOML 文件读取设置，例如 `nearsift tune` 写出的文件：名称与长选项相同，命令行优先。",
    ),
    // What decides a fingerprint.
    (
        "recipe",
        "指纹由什么决定：名称，或 名称:参数=值,...（见 `nearsift recipes`）[默认：sketch；要求 SimHash 时为 simhash64；索引用其自身的；keywords 命令为 keywords64]。",
    ),
    ("bits", "指纹的位数：32、64、128 或 256 [默认：由配方决定]。"),
    ("idf", "各特征有多罕见：`corpus` 按输入统计，否则为每行 `词 idf` 的文件。"),
    ("user_dictionary", "供分词用的更多词语：每行 `词 [频次] [词性]`。"),
    ("stop_words", "永远不作关键词的词，每行一个，代替自带的词表。"),
    ("levels", "weight=levels 所用的级别：每行 `词 级别`，级别为 1 至 5。"),
    // What is near.
    (
        "method",
        "如何查找近似重复：sketch 为双重草图，先按最小哈希键找候选，再精确比较；simhash 为汉明距离以内的 SimHash 指纹 [默认：sketch；给出 --max-distance、--bits 或指纹配方时为 simhash]。",
    ),
    ("max_distance", "SimHash：最大汉明距离（含），单位为位 [默认：64 位为 3，其他按比例]。"),
    (
        "min_score",
        "最低得分（含），0 至 1：核对文本的草图由文本的余弦和对齐得出 [默认：0.63]；不核对的草图用草图自身的得分 [默认：0.46，索引为 0.4]；指纹为 1 - 2 x 距离 / 位数。",
    ),
    (
        "preset",
        "适合某类文本的最低得分，默认值适合文章和网页。records：格式相同、靠少数字段区分的记录，如书目、联系人、商品（得分 0.9）。",
    ),
    ("verify", "草图：exact 重新读取候选的文本并精确比较，off 只按草图的得分判定 [默认：exact]。"),
    (
        "memory",
        "可用的内存，如 4GB：`dedup` 的输入超过 128 MiB 时为全部内存，否则为文档各列之外用于搜索的内存。放不下的写入磁盘；限额过小时报错，并给出够用的值。",
    ),
    // What comes out.
    (
        "output",
        "存放结果的文件夹，必须为空或尚不存在。为 - 时把保留的文档（加 --mark 则为全部）写到标准输出，格式为 JSON 行或 --output-format 所定；此外什么也不写：没有 removed.jsonl、报告、无法读取的清单，也没有可供 --resume 接续的工作。",
    ),
    (
        "output_file",
        "把所有输入中保留的文档（加 --mark 则为全部）写成这一个文件，而不是一个文件夹。格式和压缩由扩展名决定，如 .jsonl.gz 或 .parquet。各表和报告仍在文件夹中。",
    ),
    (
        "overwrite",
        "替换该文件夹中上一次运行的结果。新结果完成之前旧结果保留，且只删除上一次运行写的文件：含有其他文件的文件夹会被拒绝。中断的工作会删除，除非用 --resume 接续。--output-file 的文件也会替换。",
    ),
    (
        "output_format",
        "以此格式写出保留的文档：每个文件换扩展名，所有字段照搬；压缩包以及文件夹中的文本和网页各成一个文件 [默认：与输入相同；--output-file 则由扩展名决定]。",
    ),
    (
        "output_compression",
        "转换后的文件如何压缩：none、gz、zst、xz 或 bz2；Parquet 和 Arrow 按页压缩，用 none、gz（Parquet）或 zst [默认：Parquet 和 Arrow 为 zst，其他为 none；--output-file 则由扩展名决定]。",
    ),
    (
        "keep",
        "组中保留哪一篇：first、longest、newest:FIELD、highest:FIELD 或 ranked:FIELD=VALUE,VALUE,...（先列出的值保留，例如来源）。",
    ),
    (
        "cluster",
        "各对如何成组：majority 在两组之间抽样的对至少一半近似时合并；components 合并一切相连的；star 只含与保留的文档直接相连的 [默认：草图，以及距离超过位数八分之一的 SimHash 为 majority，否则为 components]。",
    ),
    (
        "max_cluster",
        "用于 majority：一篇文档最多代表多少不同的文本。n 篇相似的文档约保留 n / N 篇。",
    ),
    (
        "source_field",
        "说明文档来源的字段，如 site 或 dump：报告给出每个来源有多少重复、与谁重复 [默认：输入的顶层文件夹]。",
    ),
    (
        "partial",
        "另写 partial.jsonl：保留的文档之间共有的段落，如引文、页中之页、拼合的页面；哪篇的哪一部分。不会因此去除任何文档。",
    ),
    (
        "against",
        "同时去除对照中已有的文档，对照本身不变：以前运行的输出（与其全部文档比较，包括当时去除的：重读其输入，有 --keep-state 则读其留下的数据）、文档的文件或文件夹，或 `nearsift index` 的索引；索引不存文本，因此与 --verify off 一样按草图得分判定。可多次给出。",
    ),
    (
        "against_kept_only",
        "对照为以前的运行时，只与其保留的文档比较：与被去除的文档相近的会留下来。",
    ),
    (
        "keep_state",
        "另写 part/：以后 --against 所需的全部文档的数据，每篇 221 字节，另加约五分之二的文本。",
    ),
    (
        "keep_pairs_from",
        "另写 part/：`nearsift regroup` 不读输入而重新判定所需的数据，含压缩的文本，以及从此得分起的各对的得分。",
    ),
    ("tables", "removed、pairs 和 clusters 的格式：parquet 与 JSON 行并存，列表写作 JSON 文本。"),
    (
        "mark",
        "保留所有文档：marked/ 按输入的格式和顺序包含全部文档，各加 cluster、cluster_size、representative、score、kept 和 reason 列。WARC、文本、HTML 文件和压缩包保持不变；其文档的列在 marks.jsonl 中。",
    ),
    ("mark_names", "这些列的其他名称，如 cluster=near_cluster,kept=near_kept。"),
    ("dry_run", "只说明会去除什么，除保留的文档外其余照写。"),
    ("language", "report.html 的语言 [默认：区域设置为中文时是中文，否则是英文]。"),
    ("date", "report.html 写明的日期，YYYY-MM-DD [默认：无，使同样的输入得到同样的报告]。"),
    ("resume", "接续写入同一文件夹而中断的运行；没有则从头开始。"),
    (
        "progress",
        "标准错误上如何显示进度：bar 为终端上的进度条，json 为 JSON 行，off 为不显示 [默认：终端上为进度条]。",
    ),
    // Of compare.
    ("a", "第一篇文档：文本或 HTML 文件；有 --in 时为 id。"),
    ("b", "第二篇文档。"),
    (
        "like",
        "按 `dedup` 已完成的一次运行来比较：用它的特征罕见度表；未另行给出时也用它的配方和最低得分。所得数字与其 pairs.jsonl 相同，但运行所见的、在文档的邻居之间变化的值除外。",
    ),
    ("verbose", "另外输出两个指纹或草图，以及它们的特征有多相似。"),
    ("html", "另把比较写成一个网页：单个文件，不含脚本。该文件必须尚不存在。"),
    ("documents", "A 和 B 为这些文件或文件夹中文档的 id。"),
    // Of serve.
    ("dir", "集合所在的文件夹；没有则创建。"),
    ("print_config", "输出各项设置及其出处，不做别的。"),
    ("ready", "询问以这些设置运行的服务是否就绪，不做别的：就绪时退出状态为 0，否则为 1。"),
    ("new_key", "生成一个 API 密钥：输出密钥，以及密钥文件中的一行。"),
    ("listen", "监听的地址；回环以外的地址需要密钥。"),
    ("keys-file", "API 密钥：每行 `SCOPE sha256:HEX [NAME]`，由 --new-key 输出。"),
    ("keys", "同样的行，以分号分隔。"),
    ("allowed-hosts", "请求可以使用的主机名，以逗号分隔；IP 地址和 localhost 总是允许。"),
    ("tls-cert", "PEM 格式的证书链：给出后只用 HTTPS。"),
    ("tls-key", "PEM 格式的证书私钥。"),
    ("header-timeout", "客户端发送请求头最多用多久。"),
    ("body-timeout", "客户端发送请求体最多用多久。"),
    ("idle-timeout", "连接最多多久没有请求。"),
    ("queue-timeout", "工作最多等待多久，之后回答 503。"),
    ("work-timeout", "轮到之后一个请求最多处理多久，之后回答 503。"),
    ("write-timeout", "客户端接收回答最多用多久，每 64 KiB 另加一秒。"),
    ("stop-timeout", "结束时最多等待进行中的请求多久。"),
    ("max-connections", "同时的连接数；超过时结束闲置最久的，没有闲置的则拒绝新的。"),
    ("max-connections-per-address", "同一地址同时的连接数（IPv6 按前 64 位），规则相同。"),
    ("max-requests", "同时处理的带请求体的请求数；更多的回答 503。"),
    ("max-body", "请求体的最大字节数。"),
    ("max-body-memory", "所有请求体以及尚未取走的回答可用的内存；超过时回答 503。"),
    ("max-work-memory", "同时处理文档可用的内存（估计）；需要更多的文档会被拒绝。"),
    ("max-batch", "一个请求最多的文档数。"),
    ("max-collections", "最多的集合数。"),
    ("workers", "提取文本和计算指纹的线程数；未给出时每核一个。"),
    ("store-workers", "读取单篇文档和制作快照的线程数。"),
    ("queue", "每类线程最多有多少工作等待；更多的回答 503。"),
    ("log", "写到标准错误的日志的格式。"),
];

/// What an argument of one command is for, where it differs from the others.
const OF_COMMANDS: [(&str, &str, &str); 2] = [
    ("compare", "language", "网页的语言 [默认：区域设置为中文时是中文，否则是英文]。"),
    ("serve", "config", "从 TOML 文件读取设置。"),
];

/// The command line with the help of the commands of [`COMMANDS`] in Chinese.
pub fn translate(mut command: Command) -> Command {
    // What clap adds itself is there only after this.
    command.build();
    for (name, about) in COMMANDS {
        command = command.mut_subcommands(|own| match own.get_name() == name {
            true => own
                .about(about.lines().next().unwrap_or_default())
                .long_about(about)
                .help_template(TEMPLATE)
                .mut_args(|arg| argument(name, arg)),
            false => own,
        });
    }
    command
}

fn argument(command: &str, arg: Arg) -> Arg {
    let Some(text) = text_of(command, arg.get_id().as_str()) else { return arg };
    let heading = match arg.get_help_heading() {
        Some(heading) => HEADINGS
            .iter()
            .find(|(english, _)| *english == heading)
            .map_or("选项", |(_, own)| own),
        None if arg.is_positional() => "参数",
        None => "选项",
    };
    let help = StyledStr::from(format!("{text}{}", values(&arg)));
    let arg = arg.help(help.clone()).long_help(help).help_heading(heading);
    arg.hide_default_value(true).hide_possible_values(true)
}

fn text_of(command: &str, id: &str) -> Option<&'static str> {
    let own = OF_COMMANDS.iter().find(|(of, name, _)| (*of, *name) == (command, id));
    own.map(|(.., text)| *text)
        .or_else(|| ARGUMENTS.iter().find(|(name, _)| *name == id).map(|(_, text)| *text))
}

/// The possible values of an argument and its default.
fn values(arg: &Arg) -> String {
    let mut shown = String::new();
    if !arg.get_action().takes_values() {
        return shown;
    }
    let possible = arg.get_possible_values();
    let possible: Vec<&str> = possible.iter().map(clap::builder::PossibleValue::get_name).collect();
    if !possible.is_empty() {
        shown += &format!(" [可选：{}]", possible.join("、"));
    }
    let default: Vec<_> = arg.get_default_values().iter().map(|v| v.to_string_lossy()).collect();
    if !default.is_empty() {
        shown += &format!(" [默认：{}]", default.join("、"));
    }
    shown
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, FromArgMatches};

    use super::*;
    use crate::args::Cli;

    #[test]
    fn every_argument_has_a_text() {
        let mut command = Cli::command();
        command.build();
        for (name, _) in COMMANDS {
            let own = command.find_subcommand(name).unwrap_or_else(|| panic!("{name}"));
            for arg in own.get_arguments().filter(|arg| !arg.is_hide_set()) {
                let id = arg.get_id().as_str();
                assert!(text_of(name, id).is_some(), "{name}: {id}");
                let heading = arg.get_help_heading();
                let is_known = |own: &str| HEADINGS.iter().any(|(english, _)| *english == own);
                assert!(heading.is_none_or(is_known), "{name}: {id}: {heading:?}");
            }
        }
    }

    #[test]
    fn every_text_has_an_argument() {
        let mut command = Cli::command();
        command.build();
        let commands = || COMMANDS.iter().filter_map(|(name, _)| command.find_subcommand(name));
        for (id, text) in ARGUMENTS {
            let is_there = |own: &Command| own.get_arguments().any(|arg| arg.get_id() == id);
            assert!(commands().any(is_there), "{id}");
            assert!(text.chars().any(|c| ('\u{4e00}'..='\u{9fff}').contains(&c)), "{id}: {text}");
        }
        for (name, id, _) in OF_COMMANDS {
            let own = command.find_subcommand(name).unwrap_or_else(|| panic!("{name}"));
            assert!(own.get_arguments().any(|arg| arg.get_id() == id), "{name}: {id}");
        }
    }

    #[test]
    fn what_is_read_does_not_change() {
        for line in [
            &["nearsift", "dedup", "in", "-o", "out", "--mark", "--threads", "3"][..],
            &["nearsift", "compare", "a", "b", "--verbose"],
            &["nearsift", "serve", "data", "--max-body", "2MiB"],
            &["nearsift", "pairs", "in"],
        ] {
            let read = |command: Command| {
                let matches = command.try_get_matches_from(line).expect("arguments");
                format!("{:?}", Cli::from_arg_matches(&matches).expect("a command"))
            };
            assert_eq!(read(translate(Cli::command())), read(Cli::command()));
        }
    }
}
