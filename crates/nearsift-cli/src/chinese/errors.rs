//! Errors and warnings in Chinese.
//!
//! The library writes its messages in English. The catalogue has a pair of templates for each, in which `{}` stands for a value.
//! A message that the catalogue does not have stays in English, and so do names and messages of the system.

/// Messages as the program prints them, with settings as options. A value may be a message itself.
const CATALOGUE: &[(&str, &str)] = &[
    // The input.
    (
        "no input: name files, folders or patterns, or - for standard input",
        "没有输入：请给出文件、文件夹或通配模式，或用 - 表示标准输入",
    ),
    (
        "{}: no such file or folder; check the spelling, and quote a pattern",
        "{}：没有这个文件或文件夹；请检查拼写，通配模式要加引号",
    ),
    (
        "{}: no file matches this pattern; `*` stays inside one folder, `**` does not",
        "{}：没有文件符合此模式；`*` 只在一个文件夹之内，`**` 可跨文件夹",
    ),
    (
        "{}: unknown format: neither the extension nor the content tells it; give --format jsonl, json, csv, tsv, parquet, arrow, warc, text or html",
        "{}：格式未知，扩展名和内容都无法判断；请给出 --format jsonl、json、csv、tsv、parquet、arrow、warc、text 或 html",
    ),
    ("{}: cannot be read: {}; {}", "{}：无法读取：{}；{}"),
    ("{}: cannot be listed: {}; what it holds is not read", "{}：无法列出：{}；其中的内容没有读取"),
    ("{}: cannot be opened: {}", "{}：无法打开：{}"),
    ("{}: the same file as one before it; read once", "{}：与前面的一个文件相同；只读取一次"),
    (
        "{}: UTF-16 text; convert the file to UTF-8 first, as with `iconv -f UTF-16 -t UTF-8`",
        "{}：UTF-16 文本；请先把文件转换为 UTF-8，例如用 `iconv -f UTF-16 -t UTF-8`",
    ),
    (
        "{}: a record of {} bytes, the limit is {}: skipped; raise --max-record-bytes to read it",
        "{}：记录长 {} 字节，上限为 {}：已跳过；要读取请提高 --max-record-bytes",
    ),
    ("{}: not valid JSON at byte {}: {}", "{}：第 {} 字节处不是有效的 JSON：{}"),
    ("{}: expected an object, got {}", "{}：应为对象，实为 {}"),
    (
        "{}: grows more than {}-fold when decompressed: not read further; raise --max-ratio if that is no accident",
        "{}：解压后超过原来的 {} 倍：不再读取；如属正常，请提高 --max-ratio",
    ),
    (
        "{}: gives more than {} bytes: not read further; raise --max-file-bytes if that is no accident",
        "{}：内容超过 {} 字节：不再读取；如属正常，请提高 --max-file-bytes",
    ),
    (
        "{}: needs a {} window of more than 2^{} bytes: not read; raise --max-window-log, up to 31",
        "{}：{} 窗口超过 2^{} 字节：没有读取；请提高 --max-window-log，最高为 31",
    ),
    (
        "{}: {} data that unfolds to too much: not read further; raise --max-ratio if that is no accident",
        "{}：{} 数据展开后过大：不再读取；如属正常，请提高 --max-ratio",
    ),
    (
        "{}: damaged {} data from here on: {}; what comes before is kept, fetch the file again",
        "{}：从此处起 {} 数据损坏：{}；之前的内容已保留，请重新获取该文件",
    ),
    (
        "{}: damaged {} member: {}; the others are read, fetch the file again",
        "{}：{} 成员损坏：{}；其他成员已读取，请重新获取该文件",
    ),
    (
        "{}: not a readable {} file: {}; it is put aside whole",
        "{}：不是可读的 {} 文件：{}；整个文件已放到一边",
    ),
    ("{}: not a readable WARC record: {}", "{}：不是可读的 WARC 记录：{}"),
    (
        "{}: an archive inside an archive: not read, kept as in the input; unpack it first",
        "{}：压缩包中的压缩包：没有读取，按原样保留；请先解包",
    ),
    (
        "{}: encrypted: not read, and only in the input; decrypt it first",
        "{}：已加密：没有读取，只在输入中；请先解密",
    ),
    (
        "{}: no text: the field {} is {}; name the right one with --text-field",
        "{}：没有文本：字段 {} {}；请用 --text-field 指明正确的字段",
    ),
    (
        "{}: no text: expected a string in the field {}, got {}",
        "{}：没有文本：字段 {} 应为字符串，实为 {}",
    ),
    (
        "{}: no column {}, there are {}; name the right one with --text-field",
        "{}：没有列 {}，现有 {}；请用 --text-field 指明正确的列",
    ),
    (
        "{}: expected {} fields as in the header, got {}; quote a field that holds a delimiter",
        "{}：按表头应有 {} 个字段，实有 {} 个；含分隔符的字段请加引号",
    ),
    (
        "{}: cannot be converted: {}; the row is put aside as it is, in the input's format",
        "{}：无法转换：{}；该行以输入的格式原样放到一边",
    ),
    (
        "{}: changed while it was being read: expected {} {}, got {}; run again when nothing writes to it",
        "{}：读取过程中有变化：应有 {} {}，实有 {}；请在没有程序写入时重新运行",
    ),
    ("{}: could be read before and now cannot: {}", "{}：先前可以读取，现在不能：{}"),
    // The output.
    ("{}: cannot be written: {}; {}", "{}：无法写入：{}；{}"),
    ("{}: cannot be written: {}", "{}：无法写入：{}"),
    ("{}: cannot write: {}", "{}：无法写入：{}"),
    (
        "{}: the output folder is not empty; choose a new one, or empty it",
        "{}：输出文件夹不为空；请另选一个，或将其清空",
    ),
    (
        "{}: the output must be a folder, and this is a file; choose another name",
        "{}：输出应为文件夹，而这是文件；请换一个名字",
    ),
    (
        "{}: is there already; choose another name, or remove it",
        "{}：已经存在；请换一个名字，或将其删除",
    ),
    (
        "{}: the output {} the input {}; inputs are never written to: choose a place beside it",
        "{}：输出{}输入 {}；输入从不写入：请选择旁边的位置",
    ),
    (
        "--output-file: expected {}, or name the format by --output-format, got {}",
        "--output-file：应为 {}，或用 --output-format 指明格式，实为 {}",
    ),
    (
        "{}: {}, unlike {}: tables that become one file must have the same columns; give --output-format jsonl or a name that ends in .jsonl, whose lines may have any fields, or write a file for each input",
        "{}：{}，与 {} 不同：合成一个文件的表必须有相同的列；请给出 --output-format jsonl 或以 .jsonl 结尾的名字（各行可有任意字段），或为每个输入写一个文件",
    ),
    (
        "{}: holds {}, which the earlier run did not write: --overwrite replaces only results of an earlier run; move it away, or choose another folder",
        "{}：其中有 {}，不是上一次运行所写：--overwrite 只替换上一次运行的结果；请将其移走，或另选文件夹",
    ),
    (
        "{}: holds {}, and no run of nearsift wrote a list of its files there: --overwrite replaces only results of an earlier run; move it away, or choose another folder",
        "{}：其中有 {}，而没有一次 nearsift 运行在那里写过文件清单：--overwrite 只替换上一次运行的结果；请将其移走，或另选文件夹",
    ),
    (
        "--mark-names: {}: it has a column {} already; give the added one another name",
        "--mark-names：{}：已有列 {}；请为新增的列另取名字",
    ),
    (
        "the results are files and need a folder, not standard output: name a new folder; `nearsift pairs` prints pairs (a folder of this name is ./-)",
        "结果是文件，需要文件夹而不是标准输出：请给出新文件夹；`nearsift pairs` 可输出各对（名为 - 的文件夹写作 ./-）",
    ),
    // Settings.
    ("invalid value '{}' for '{}': {}", "'{}' 不是 '{}' 的有效值：{}"),
    ("invalid value '{}' for '{}' [possible values: {}]", "'{}' 不是 '{}' 的有效值：可用的值为 {}"),
    ("the argument '{}' cannot be used with '{}'", "'{}' 不能与 '{}' 同时使用"),
    ("the argument '{}' cannot be used with: {}", "'{}' 不能与以下选项同时使用：{}"),
    ("the following required arguments were not provided: {}", "缺少必需的参数：{}"),
    ("'{}' is no day: expected YYYY-MM-DD", "'{}' 不是日期：应为 YYYY-MM-DD"),
    (
        "--keep: '{}' is not a keep policy: expected first, longest, newest:FIELD, highest:FIELD or ranked:FIELD=VALUE,VALUE,...",
        "--keep：'{}' 不是保留规则：应为 first、longest、newest:字段、highest:字段 或 ranked:字段=值,值,...",
    ),
    (
        "--mark-names {}: expected COLUMN=NAME, with commas between them",
        "--mark-names {}：应为 列=名字，以逗号分隔",
    ),
    ("--mark-names {}: the columns are {}", "--mark-names {}：可用的列为 {}"),
    ("--mark-names {}: another column has the name {}", "--mark-names {}：另一列已有名字 {}"),
    ("--mark-names {}: its new name is empty", "--mark-names {}：新名字为空"),
    ("'{}' is not a score: expected a number from 0 to 1", "'{}' 不是得分：应为 0 至 1 的数"),
    (
        "{}: '{}' has no effect with features={} and weight={}: its parameters are {}",
        "{}：'{}' 在 features={}、weight={} 时不起作用：其参数为 {}",
    ),
    (
        "'{}' has no effect with features={} and weight={}: its parameters are {}",
        "'{}' 在 features={}、weight={} 时不起作用：其参数为 {}",
    ),
    (
        "the join of {} sketches needs {} bytes at least and may use {}: raise the memory limit to {} bytes",
        "连接 {} 个草图至少需要 {} 字节，而只可用 {}：请把内存上限提高到 {} 字节",
    ),
    (
        "--memory {} is too little for {}: they take at least {} bytes; give --memory {}",
        "--memory {} 对 {} 来说太小：至少需要 {} 字节；请给出 --memory {}",
    ),
    // Decontamination.
    (
        "{}: no item has {}; it has: {}; name the fields of the texts with --benchmark-fields",
        "{}：没有题目含有 {}；现有：{}；请用 --benchmark-fields 指明文本的字段",
    ),
    ("--benchmarks: there are no items in {}", "--benchmarks：{} 中没有题目"),
    (
        "{} is a benchmark and among the documents: its items are found in themselves",
        "{} 既是测试集又在文档之中：其题目会在自身中找到",
    ),
    (
        "--save-index {}: there is such a file; name a new one",
        "--save-index {}：已有此文件；请给出新的名字",
    ),
    (
        "{}: the saved benchmarks are damaged; make the file again from the benchmarks, by --save-index",
        "{}：保存的测试集已损坏；请用 --save-index 由测试集重新生成",
    ),
    (
        "{}: saved benchmarks of another version of nearsift; make the file again from the benchmarks, by --save-index",
        "{}：由另一版本的 nearsift 保存的测试集；请用 --save-index 由测试集重新生成",
    ),
    // References.
    ("{}: cannot read the reference: {}", "{}：无法读取对照：{}"),
    (
        "{}: the store holds documents of recipe {} and {} is asked: fingerprints of two recipes cannot be compared; use the store's recipe and dictionaries, or make a new store",
        "{}：库中的文档使用配方 {}，而要求的是 {}：两种配方的指纹不能比较；请使用库的配方和词典，或新建一个库",
    ),
    (
        "{}: the output would lie in the reference {}: choose another folder",
        "{}：输出会落在对照 {} 之中：请另选文件夹",
    ),
    (
        "{}: its input has changed: compared with the documents that this run kept, and what resembles only one that it removed stays; a run with --keep-state needs no input to be a reference",
        "{}：其输入已改变：只与该运行保留的文档比较，只与其去除的文档相近的会留下来；用 --keep-state 的运行不需要输入即可作对照",
    ),
    (
        "{}: its input {} is not there: compared with the documents that this run kept, and what resembles only one that it removed stays; a run with --keep-state needs no input to be a reference",
        "{}：其输入 {} 已不存在：只与该运行保留的文档比较，只与其去除的文档相近的会留下来；用 --keep-state 的运行不需要输入即可作对照",
    ),
    (
        "{}: a part knows of no document whether it stayed, and --against-kept-only asks for those that did: leave it out, or give the output of a run",
        "{}：部分中没有哪些文档被保留的信息，而 --against-kept-only 只要保留的文档：请去掉它，或给出一次运行的输出",
    ),
    // Trim.
    (
        "{}: the text of {} cannot be rewritten in its place: convert it first, by `nearsift dedup --output-format jsonl`",
        "{}：{} 的文本不能就地改写：请先用 `nearsift dedup --output-format jsonl` 转换",
    ),
    (
        "--substrings {} bytes is no length of a repeat: expected {} to {} bytes",
        "--substrings {} 字节不是重复段的长度：应为 {} 至 {} 字节",
    ),
    (
        "'{}' is no number of bytes: expected {} to {}; inputs come before --substrings, or behind its number",
        "'{}' 不是字节数：应为 {} 至 {}；输入应写在 --substrings 之前，或写在其数值之后",
    ),
    (
        "--unit {} cannot be used with --substrings: expected bytes or letters; --widen and --narrow choose where cuts end",
        "--unit {} 不能与 --substrings 同时使用：应为 bytes 或 letters；切口的位置由 --widen 和 --narrow 选择",
    ),
    (
        "--unit {} is for --substrings: expected line or paragraph without it",
        "--unit {} 只用于 --substrings：没有它时应为 line 或 paragraph",
    ),
    (
        "--charset {}: a text that is rewritten must be UTF-8; convert the files first, as with `iconv -f {} -t UTF-8`",
        "--charset {}：要改写的文本必须是 UTF-8；请先转换文件，例如用 `iconv -f {} -t UTF-8`",
    ),
    (
        "--keep {}: expected first or none; other policies are for --substrings",
        "--keep {}：应为 first 或 none；其他规则用于 --substrings",
    ),
    (
        "documents without a value for the keep policy '{}': {}; they come after all others",
        "没有保留规则“{}”所需的值的文档：{} 篇；它们排在其他文档之后",
    ),
    (
        "documents with a field of the name of an added column: {}; they stayed as they were; give the column another name with --mark-names",
        "已有与新增列同名的字段的文档：{} 篇；它们保持原样；请用 --mark-names 为该列另取名字",
    ),
    // Measuring.
    (
        "{}: none of its ids is the id of a document, such as '{}'; see --id-field",
        "{}：其中没有一个 id 是文档的 id，例如 '{}'；见 --id-field",
    ),
    (
        "{}: the truth has no pair of near duplicates: with one class only, nothing can be measured",
        "{}：真值中没有近似重复的对：只有一类，无法衡量",
    ),
    (
        "{}: '{}' and '{}' are labelled both {} and {}: keep one of the two",
        "{}：'{}' 与 '{}' 同时标为 {} 和 {}：请保留其一",
    ),
    // Finished runs.
    ("interrupted: nothing was written", "已中断：没有写入任何内容"),
    (
        "interrupted: the work so far is kept; go on with --resume",
        "已中断：已完成的工作保留；用 --resume 接续",
    ),
    ("{}: the run has not finished: go on with --resume", "{}：运行尚未完成：用 --resume 接续"),
    (
        "{}: no results of `nearsift dedup`: expected {} in the folder",
        "{}：不是 `nearsift dedup` 的结果：文件夹中应有 {}",
    ),
    ("{}: no results of `nearsift dedup`", "{}：不是 `nearsift dedup` 的结果"),
    (
        "{}: lookup.idx is damaged, or of other results than those beside it: run `nearsift dedup` again",
        "{}：lookup.idx 已损坏，或属于另外的结果：请重新运行 `nearsift dedup`",
    ),
    (
        "{}: not a loopback address, and a view asks for no key: listen on 127.0.0.1 or [::1]",
        "{}：不是回环地址，而查看页面不要求密钥：请监听 127.0.0.1 或 [::1]",
    ),
    (
        "{}: expected judgements of --review, found another line at byte {}: {}",
        "{}：应为 --review 的判断，第 {} 字节处为其他内容：{}",
    ),
    (
        "{}: damaged, or no line of `nearsift dedup`, at byte {}: {}; run `nearsift dedup` again",
        "{}：已损坏，或不是 `nearsift dedup` 所写的行，在第 {} 字节：{}；请重新运行 `nearsift dedup`",
    ),
    // Tables of clusters.
    (
        "{}: an earlier version wrote these results, in which clusters have no names: run `nearsift dedup` again",
        "{}：这些结果由较早的版本写成，其中的聚类没有名字：请重新运行 `nearsift dedup`",
    ),
    (
        "{}: the table has {}, which was compared with this run, so that documents would be counted twice: add runs in the order in which they were made, to a table of another name",
        "{}：表中已有 {}，而后者曾与此运行比较，文档会重复计数：请按运行产生的先后，把各运行加入另一个名字的表",
    ),
    (
        "{}: not the table that {} is of: one of the two was changed, or it is no table of `nearsift clusters`; give another name, and add all runs again",
        "{}：不是 {} 所属的表：两者之一被修改过，或它不是 `nearsift clusters` 的表；请换一个名字，重新加入所有运行",
    ),
    (
        "{}: no table of `nearsift clusters`, or without the list of its runs, {}: give another name, and add all runs again",
        "{}：不是 `nearsift clusters` 的表，或缺少其运行清单 {}：请换一个名字，重新加入所有运行",
    ),
    (
        "{}: the table is JSON lines: give it a name that ends in .jsonl",
        "{}：表为 JSON Lines：请用以 .jsonl 结尾的名字",
    ),
    (
        "{}: the table is a file that later runs are added to, not standard output: name a file, such as clusters.jsonl",
        "{}：表是以后还要加入其他运行的文件，不是标准输出：请给出文件名，例如 clusters.jsonl",
    ),
    (
        "{}: a folder, and the table is a file: name the table before the runs, as in `nearsift clusters clusters.jsonl RUN`",
        "{}：这是文件夹，而表是文件：请把表写在各运行之前，如 `nearsift clusters clusters.jsonl RUN`",
    ),
    (
        "{}: its folder does not exist: make the folder, or choose another place",
        "{}：所在的文件夹不存在：请建立该文件夹，或另选位置",
    ),
    // Parts.
    (
        "{}: no complete part, for it has no part.json: give the folder that `sketch` wrote, or begin it again to complete it",
        "{}：不是完整的部分，因为没有 part.json：请给出 `sketch` 所写的文件夹，或重新运行以完成",
    ),
    (
        "{}: this part is given twice, also as {}: leave one of them out",
        "{}：此部分给出了两次，另一次为 {}：请去掉其一",
    ),
    (
        "{}: this part was made with {} {}, and {} with {}: make one of them again by `sketch`",
        "{}：此部分以 {} {} 生成，而 {} 以 {} 生成：请用 `sketch` 重新生成其一",
    ),
    (
        "{}: this part was made by the recipe '{}' (digest {}), and '{}' (digest {}) was asked: give --recipe {}, with the dictionaries that it was made with",
        "{}：此部分由配方 '{}'（摘要 {}）生成，而要求的是 '{}'（摘要 {}）：请给出 --recipe {}，并使用生成时的词典",
    ),
    (
        "--verify exact compares texts, and these parts have none: make them again by `sketch` with texts, or let sketches decide by --verify off",
        "--verify exact 要比较文本，而这些部分没有文本：请用 `sketch` 连同文本重新生成，或用 --verify off 按草图判定",
    ),
    (
        "{}: with this part there are {} documents, and one join takes {}: join fewer parts at a time",
        "{}：加上此部分共有 {} 篇文档，而一次连接最多 {} 篇：请减少一次连接的部分",
    ),
    (
        "{}: this part has {} of its {} shards: copy it again as a whole, or make it again, by `sketch` or by the run that left it",
        "{}：此部分只有 {} 个分片，应有 {} 个：请完整地重新复制，或用 `sketch` 或留下它的运行重新生成",
    ),
    (
        "{}: damaged: make the part {} again, by `sketch` or by the run that left it",
        "{}：已损坏：请用 `sketch` 或留下它的运行重新生成部分 {}",
    ),
    (
        "{}: no decisions about parts: give the folder that `join` wrote, once it is complete",
        "{}：没有关于各部分的判定：请给出 `join` 写完的文件夹",
    ),
    (
        "{}: nothing was decided here about the part {}: these are decisions about {} ({}); give the part that was joined, as it was then",
        "{}：此处没有关于部分 {} 的判定：这些是关于 {}（{}）的判定；请给出当时连接的部分",
    ),
    (
        "{}: of this part these are not the files that were read: {} was there, and {} is in its place; name the same files, folders or patterns, in the same order",
        "{}：这些不是此部分所读的文件：原为 {}，现为 {}；请按同样的顺序给出同样的文件、文件夹或模式",
    ),
    (
        "{}: not the folder of a run that can be decided anew: run it with --keep-pairs-from",
        "{}：不是可以重新判定的运行的文件夹：请用 --keep-pairs-from 运行",
    ),
    (
        "--keep {}: the run kept the values of {}, and of no other policy: give that one or first, or run it again",
        "--keep {}：该运行只保存了 {} 的值，没有其他规则的值：请用该规则或 first，或重新运行",
    ),
    (
        "{}: damaged ({}): make the part again, by `sketch` or by the run that left it",
        "{}：已损坏（{}）：请用 `sketch` 或留下它的运行重新生成该部分",
    ),
    (
        "--keep-pairs-from {} is above --min-score {}, from which on pairs are kept anyway: give a score from 0 to that",
        "--keep-pairs-from {} 高于 --min-score {}，而从后者起各对本来就会保存：请给出不高于它的得分",
    ),
    (
        "{}: this run was made against references, and groups that are made anew know none: run it again with the other settings",
        "{}：该运行用了对照，而重新成组时没有对照：请用新的设置重新运行",
    ),
    (
        "{}: this run kept all documents, with marks, and --against-kept-only asks for those that stayed: leave it out, or give a run without --mark",
        "{}：该运行保留了全部文档并加了标记，而 --against-kept-only 只要当时保留的：请去掉它，或给出没有 --mark 的运行",
    ),
    (
        "--keep-pairs-from needs files that can be read again: not standard input or pipes",
        "--keep-pairs-from 需要可以再次读取的文件：不能是标准输入或管道",
    ),
    // What `dedup` says while it works.
    ("the run was complete: its results have their names", "运行已经完成：结果已有各自的名字"),
    ("the work so far is kept: go on with --resume", "已完成的工作保留：用 --resume 接续"),
    (
        "forecast: about {} documents, {} of memory, {} on disk, {} minutes",
        "预计：约 {} 篇文档，内存 {}，磁盘 {}，{} 分钟",
    ),
    (
        "--memory {} may be too little: about {} documents take at least {}; give --memory {}",
        "--memory {} 可能太小：约 {} 篇文档至少需要 {}；请给出 --memory {}",
    ),
    (
        "{}: {} are free on its disk, and up to {} may be needed: free some, or choose another place; where it fills up, the work is kept for --resume",
        "{}：所在磁盘空闲 {}，而最多可能需要 {}：请腾出空间，或另选位置；若磁盘写满，已完成的工作会保留，可用 --resume 接续",
    ),
    (
        "{}: {} of this reference could not be read; compared with {} documents",
        "{}：此对照中有 {} 篇无法读取；已与其余 {} 篇文档比较",
    ),
    (
        "{}: an index keeps no texts: sketches that score {} or more are near",
        "{}：索引不保存文本：草图得分不低于 {} 为近似",
    ),
    (
        "--partial: passages that documents share: {}, in pairs: {}",
        "--partial：文档共有的片段：{} 处，涉及 {} 对",
    ),
    (
        "--partial: short runs of letters in more than {} documents each, skipped as boilerplate: {}, at places: {}",
        "--partial：各在超过 {} 篇文档中出现、按套话跳过的短字串：{} 个，共 {} 处",
    ),
    (
        "--partial: one of {} short runs of letters was kept, for want of memory: short passages are missed; give a larger --memory",
        "--partial：因内存不足，每 {} 个短字串只保留一个：会漏掉短的片段；请给出更大的 --memory",
    ),
    ("more of the kind are counted, not listed", "其余同类情况只计数，不再列出"),
    (
        "{} document or file could not be read; all others were",
        "有 {} 篇文档或文件无法读取；其他均已读取",
    ),
    (
        "{} documents or files could not be read; all others were",
        "有 {} 篇文档或文件无法读取；其他均已读取",
    ),
    (
        "{}: {} not used: the environment or the command line asks for something else",
        "{}：没有使用 {}：环境变量或命令行要求的不同",
    ),
    ("{}: {} is set, too; keep one of the two", "{}：另设有 {}；请只保留其一"),
    ("{}: no answer: {}", "{}：没有回答：{}"),
    ("{}: not ready: status {}: {}", "{}：未就绪：状态 {}：{}"),
    ("unexpected argument '{}' found", "没有选项或参数 '{}'"),
    ("unrecognized subcommand '{}'", "没有命令 '{}'"),
    (
        "{}: {} not used: the command line asks for something else",
        "{}：没有使用 {}：命令行要求的与之不同",
    ),
    ("{} not used: the command line asks for something else", "没有使用 {}：命令行要求的不同"),
    (
        "{}: 1 link leads out of the folder, the first is {}: not followed; --follow-links follows them",
        "{}：有 1 个链接指向文件夹之外，第一个是 {}：没有跟随；用 --follow-links 可跟随",
    ),
    (
        "{}: {} links lead out of the folder, the first is {}: not followed; --follow-links follows them",
        "{}：有 {} 个链接指向文件夹之外，第一个是 {}：没有跟随；用 --follow-links 可跟随",
    ),
    (
        "{}: {} member is of no known format, the first is {}: not read, kept as in the input",
        "{}：有 {} 个成员格式未知，第一个是 {}：没有读取，按原样保留",
    ),
    (
        "{}: {} members are of no known format, the first is {}: not read, kept as in the input",
        "{}：有 {} 个成员格式未知，第一个是 {}：没有读取，按原样保留",
    ),
    ("{}: {} row from here on cannot be read: {}", "{}：从此处起有 {} 行无法读取：{}"),
    ("{}: {} rows from here on cannot be read: {}", "{}：从此处起有 {} 行无法读取：{}"),
    ("{}: cannot be read from here on: {}", "{}：从此处起无法读取：{}"),
    (
        "{}: this program was built without {}: use one that was built with the feature {}",
        "{}：本程序构建时不含 {}：请使用构建时带有 {} 特性的程序",
    ),
    (
        "{}: {} is open at the end of the file; the record may hold others that follow it",
        "{}：到文件末尾时{}仍未结束；该记录可能包含其后的其他记录",
    ),
    // Parts of other messages.
    ("whatever documents", "任何文档"),
    ("records of up to {} bytes (--max-record-bytes)", "长达 {} 字节的记录（--max-record-bytes）"),
    ("{} documents against a reference of {}", "{} 篇文档（对照有 {} 篇）"),
    ("a quoted field", "加引号的字段"),
    ("an object, array or string", "对象、数组或字符串"),
    ("something else writes here: choose another place", "另有程序在此写入：请另选位置"),
    ("ask for permission, or choose another place", "请取得权限，或另选位置"),
    ("free some space, or choose another place", "请腾出空间，或另选位置"),
    ("check that the folder exists", "请检查文件夹是否存在"),
    ("choose a place that can be written to", "请选择可以写入的位置"),
    ("check the place and try again", "请检查位置后重试"),
    ("is", "就是"),
    ("lies inside", "位于"),
    ("contains", "包含"),
    ("missing", "缺失"),
    ("null", "为 null"),
    ("cut short", "被截断"),
    ("a damaged header", "头部损坏"),
    ("its directory is missing, what is left of its members is read", "缺少目录，其余成员已读取"),
    (
        "its last bytes are not PAR1: it is cut short, or another format",
        "末尾不是 PAR1：被截断，或为其他格式",
    ),
    ("it is shorter than its Content-Length", "比其 Content-Length 短"),
];

/// A message may stand in a message in a message, and no deeper.
const DEPTH: u32 = 3;

/// The message in Chinese, where the catalogue has it.
pub fn translated(message: &str) -> Option<String> {
    in_depth(message, DEPTH)
}

fn in_depth(message: &str, depth: u32) -> Option<String> {
    let (values, chinese) = CATALOGUE
        .iter()
        .find_map(|(english, chinese)| Some((values_of(english, message)?, chinese)))?;
    let mut values = values.into_iter();
    let mut parts = chinese.split("{}");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let value = values.next().unwrap_or_default();
        let own = if depth > 0 { in_depth(value, depth - 1) } else { None };
        out += own.as_deref().unwrap_or(value);
        out += part;
    }
    Some(out)
}

/// The values of a template in a message, if it is made by that template: each as short as it can be, but for the last.
fn values_of<'m>(template: &str, message: &'m str) -> Option<Vec<&'m str>> {
    let mut parts = template.split("{}");
    let mut rest = message.strip_prefix(parts.next()?)?;
    let mut values = Vec::new();
    let mut parts = parts.peekable();
    while let Some(part) = parts.next() {
        let place = match parts.peek() {
            // What ends the template ends the message.
            None => rest.len().checked_sub(part.len()).filter(|_| rest.ends_with(part))?,
            Some(_) => rest.find(part)?,
        };
        values.push(&rest[..place]);
        rest = &rest[place + part.len()..];
    }
    rest.is_empty().then_some(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_of_one_shape() {
        for (english, chinese) in CATALOGUE {
            assert_eq!(english.matches("{}").count(), chinese.matches("{}").count(), "{english}");
            assert!(english.is_ascii(), "{english}");
            assert!(chinese.chars().any(|c| ('\u{4e00}'..='\u{9fff}').contains(&c)), "{chinese}");
        }
        let mut all: Vec<_> = CATALOGUE.iter().map(|(english, _)| english).collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), CATALOGUE.len(), "a message is there twice");
    }

    #[test]
    fn all_that_dedup_says_of_its_own_is_in_the_catalogue() {
        for remark in nearsift_batch::REMARKS {
            let message = nearsift_batch::spell(remark, crate::output::option);
            let is_known = CATALOGUE.iter().any(|(english, _)| *english == message);
            assert!(is_known, "no Chinese for: {message}");
        }
    }

    #[test]
    fn notes_of_what_was_not_read_are_in_the_catalogue() {
        use nearsift_io::{Lack, Reason};

        let text = || "what the system says".to_owned();
        let reasons = [
            Reason::Folder(text()),
            Reason::NamedTwice,
            Reason::Open(text()),
            Reason::Read(text()),
            Reason::Damaged { compression: "gzip", error: text() },
            Reason::LinksOut { links: 1, example: text() },
            Reason::LinksOut { links: 2, example: text() },
            Reason::OtherMembers { members: 1, example: text() },
            Reason::OtherMembers { members: 2, example: text() },
            Reason::NotReadable { format: "Parquet", error: text() },
            Reason::NotBuilt { format: "parquet" },
            Reason::Rows { rows: 1, why: Box::new(Reason::Read(text())) },
            Reason::Rows { rows: 2, why: Box::new(Reason::Read(text())) },
            Reason::Bomb { format: "Parquet" },
            Reason::Member { compression: "gzip", error: text() },
            Reason::TooLarge { limit: 1 },
            Reason::Ratio { limit: 1 },
            Reason::Window { compression: "zstd", limit: 27 },
            Reason::TooLong { bytes: 2, limit: 1 },
            Reason::Warc { error: "it is shorter than its Content-Length" },
            Reason::Json { message: text(), column: 1, is_cut: false },
            Reason::Json { message: text(), column: 1, is_cut: true },
            Reason::Utf16,
            Reason::NotAnObject { got: "a number" },
            Reason::MissingField { field: text(), got: Lack::Missing },
            Reason::WrongType { field: text(), got: "a number" },
            Reason::NoColumn { field: text(), columns: text() },
            Reason::Ragged { expected: 2, got: 1 },
            Reason::NotConverted { error: text() },
            Reason::Unclosed { what: "a quoted field" },
        ];
        for reason in reasons {
            let message = nearsift_batch::spell(&reason.to_string(), crate::output::option);
            // As a note has it: with its place.
            let message = format!("a.jsonl: {message}");
            assert!(translated(&message).is_some(), "no Chinese for: {message}");
        }
        // And what they say within: no English is left but what the system says.
        let message = "a.csv: 3 rows from here on cannot be read: damaged";
        assert_eq!(translated(message).as_deref(), Some("a.csv：从此处起有 3 行无法读取：damaged"));
    }

    #[test]
    fn messages_are_found_by_their_templates() {
        let check = |message: &str, expect: Option<&str>| {
            assert_eq!(translated(message).as_deref(), expect, "{message}");
        };
        check("", None);
        check("what nobody says", None);
        check(
            "in/closed: cannot be read: Permission denied (os error 13); ask for permission, or choose another place",
            Some("in/closed：无法读取：Permission denied (os error 13)；请取得权限，或另选位置"),
        );
        check(
            "in: the output is the input in; inputs are never written to: choose a place beside it",
            Some("in：输出就是输入 in；输入从不写入：请选择旁边的位置"),
        );
        check(
            "invalid value '1.5' for '--min-score <S>': '1.5' is not a score: expected a number from 0 to 1",
            Some("'1.5' 不是 '--min-score <S>' 的有效值：'1.5' 不是得分：应为 0 至 1 的数"),
        );
        // Names stay as they are, whatever they look like.
        check(
            "a: {}: b: no such file or folder; check the spelling, and quote a pattern",
            Some("a: {}: b：没有这个文件或文件夹；请检查拼写，通配模式要加引号"),
        );
    }
}
