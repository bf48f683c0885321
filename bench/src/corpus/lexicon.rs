//! Words for generated text: Chinese and English, some thousands each, in a fixed order of frequency.

use std::collections::HashSet;

use testkit::random::Random;

/// The number of words a lexicon holds.
pub const WORDS: usize = 4_096;

/// The slots of the table that frequencies are drawn from: a power of two, so that one draw is one
/// look-up by 16 random bits.
const SLOTS: usize = 1 << 16;

/// The words of one language, the most frequent first.
pub struct Lexicon {
    words: Vec<String>,
    /// Grammatical words, which stand between the others.
    particles: &'static [&'static str],
    slots: Vec<u16>,
}

impl Lexicon {
    /// Chinese: words of two characters and, more of them and rarer, compounds of two such words.
    pub fn chinese() -> Lexicon {
        Lexicon::new(CHINESE, CHINESE_PARTICLES)
    }

    /// English: short words and, more of them and rarer, compounds of two such words.
    pub fn english() -> Lexicon {
        Lexicon::new(ENGLISH, ENGLISH_PARTICLES)
    }

    fn new(simple: &str, particles: &'static [&'static str]) -> Lexicon {
        let mut random = Random::new(0x6c65_7869_636f_6e31);
        let mut words: Vec<String> = Vec::with_capacity(WORDS);
        let mut known = HashSet::new();
        let mut add = |words: &mut Vec<String>, word: String| {
            if known.insert(word.clone()) {
                words.push(word);
            }
        };
        simple.split_whitespace().for_each(|word| add(&mut words, word.to_owned()));
        let count = words.len();
        // The simple words are in no order of frequency as they are written here.
        for index in (1..count).rev() {
            words.swap(index, random.below(index + 1));
        }
        while words.len() < WORDS {
            let (first, second) = (random.below(count), random.below(count));
            let compound = format!("{}{}", words[first], words[second]);
            add(&mut words, compound);
        }
        Lexicon { words, particles, slots: frequencies() }
    }

    /// Word `index`.
    pub fn word(&self, index: u16) -> &str {
        let index = usize::from(index);
        self.words.get(index).map_or_else(|| self.particles[index - WORDS], String::as_str)
    }

    /// A word by its frequency.
    #[inline]
    pub fn draw(&self, random: &mut Random) -> u16 {
        self.slots[(random.next_u64() >> 48) as usize]
    }

    /// A grammatical word.
    #[inline]
    pub fn particle(&self, random: &mut Random) -> u16 {
        // The smaller of two draws: the first are the most frequent.
        let n = self.particles.len();
        (WORDS + random.below(n).min(random.below(n))) as u16
    }
}

/// Slots in proportion to 1 / (rank + 8), Mandelbrot's form of Zipf's law with the head flattened as
/// content words have it. In integers: the same table on every platform.
fn frequencies() -> Vec<u16> {
    const SCALE: u64 = 1 << 40;
    let shares: Vec<u64> = (0..WORDS as u64).map(|rank| SCALE / (rank + 8)).collect();
    let total: u64 = shares.iter().sum();
    let (mut word, mut sum) = (0, shares[0]);
    (0..SLOTS as u64)
        .map(|slot| {
            // The word in whose share the middle of this slot falls.
            while u128::from(sum) * 2 * SLOTS as u128
                <= u128::from(total) * u128::from(2 * slot + 1)
            {
                word += 1;
                sum += shares[word];
            }
            word as u16
        })
        .collect()
}

const CHINESE_PARTICLES: &[&str] = &[
    "的", "了", "在", "和", "是", "将", "与", "对", "为", "也", "并", "从", "就", "等", "于", "把",
    "被", "让", "都", "还", "以及", "通过", "已经", "正在", "根据", "由于", "因此", "其中", "同时",
    "目前",
];

const ENGLISH_PARTICLES: &[&str] = &[
    "the", "of", "and", "to", "a", "in", "for", "that", "on", "with", "as", "by", "from", "at",
    "is", "was", "are", "has", "which", "its", "their", "were", "will", "after", "into", "than",
    "over", "while", "before", "under",
];

/// Ordinary words of news, notices and trade.
const CHINESE: &str = "
经济 市场 企业 城市 发展 技术 管理 服务 社会 教育 文化 环境 政策 投资 产品 项目 工程 系统 信息 网络
数据 平台 研究 学校 学生 教师 医院 医生 患者 药品 健康 生活 居民 社区 街道 交通 地铁 公交 铁路 公路
机场 航班 港口 码头 船舶 汽车 电池 能源 电力 煤炭 石油 天气 降雨 气温 台风 洪水 地震 森林 河流 湖泊
海洋 土地 农村 农民 粮食 小麦 水稻 玉米 大豆 蔬菜 水果 茶叶 牲畜 渔业 养殖 种植 收购 价格 成本 利润
收入 支出 预算 税收 银行 贷款 利率 股票 基金 债券 保险 合同 法律 法院 律师 案件 证据 判决 警方 调查
事故 安全 消防 救援 受伤 死亡 现场 记者 报道 采访 会议 论坛 代表 委员 主席 部门 政府 机构 组织 协会
公司 集团 工厂 车间 设备 机器 材料 钢铁 水泥 玻璃 塑料 纸张 纺织 服装 食品 饮料 餐厅 酒店 旅游 景区
游客 门票 假期 春节 国庆 中秋 比赛 球队 球员 教练 冠军 奖牌 训练 体育 足球 篮球 排球 乒乓 游泳 田径
音乐 电影 导演 演员 观众 票房 电视 节目 频道 广告 品牌 商标 专利 标准 质量 检测 认证 监督 检查 整改
处罚 罚款 违规 通知 公告 招标 中标 采购 供应 仓库 物流 快递 包裹 订单 客户 用户 消费 零售 超市 商场
店铺 租金 房屋 楼盘 住宅 装修 物业 业主 小区 电梯 停车 道路 桥梁 隧道 施工 规划 设计 建筑 面积 高度
手机 屏幕 芯片 软件 程序 算法 模型 智能 机器人 卫星 火箭 航天 飞机 雷达 信号 频率 通信 宽带 基站 终端
实验 论文 教授 学院 专业 课程 考试 成绩 录取 毕业 就业 招聘 岗位 工资 劳动 培训 技能 人才 团队 合作
国际 贸易 关税 出口 进口 外资 汇率 美元 欧洲 亚洲 非洲 全球 地区 边境 签证 移民 护照 使馆 外交 谈判
协议 声明 会谈 访问 总统 总理 选举 投票 议会 改革 创新 战略 目标 任务 计划 方案 措施 意见 建议 问题
原因 结果 影响 作用 水平 能力 效率 规模 速度 比例 数量 总额 增长 下降 上升 减少 增加 提高 降低 扩大
推进 实施 完成 启动 建设 开展 组建 成立 发布 公布 宣布 表示 指出 强调 认为 介绍 说明 要求 提出 解决
支持 鼓励 引导 保护 治理 污染 排放 垃圾 回收 节约 绿色 低碳 生态 湿地 草原 沙漠 山区 平原 海岸 岛屿
历史 传统 博物 文物 遗址 考古 古城 书籍 图书 作家 小说 诗歌 绘画 书法 雕塑 展览 艺术 舞蹈 戏剧 曲艺
儿童 老人 妇女 青年 家庭 婚姻 父母 子女 养老 托育 疫苗 病毒 感染 症状 治疗 手术 护理 康复 营养 睡眠
";

const ENGLISH: &str = "
market trade price cost profit budget bank loan fund bond stock share tax court judge law case proof
police crime fire flood storm rain wind heat frost river lake ocean coast island forest desert field
farm crop wheat rice corn bean fruit fish cattle horse sheep milk bread sugar salt water power coal oil
gas steel glass paper cotton wool cloth tool engine motor wheel train track road bridge tunnel port ship
boat plane flight rocket signal radio phone screen chip cable code data model test trial study paper
school class lesson course degree teacher student doctor nurse patient drug vaccine virus cell gene brain
heart blood bone skin sleep food meal kitchen hotel travel tour guest ticket holiday season winter summer
spring autumn month decade century history museum temple castle tower palace garden park street square
district village town city county state region border nation union treaty summit council senate vote
party leader minister mayor speech reform policy plan project target measure report survey record figure
number rate share growth rise drop change shift trend cycle crisis risk threat attack defence army force
peace war weapon soldier officer guard prison rescue safety accident injury damage repair build design
plant factory mill mine quarry store shop mall brand label patent licence permit standard quality
inspect audit fine notice tender bid contract order supply demand stock parcel post mail press news
editor writer author poem novel story theatre actor film music song band dance paint canvas statue
exhibit gallery coach player team league match goal score medal race run swim climb jump throw court
child parent mother father brother sister family marriage birth age youth elder home house flat rent
tenant owner estate roof wall window door floor lamp chair table bed clock watch ring coin gold silver
copper iron stone sand clay brick timber leaf root seed flower grass bird eagle wolf bear fox deer whale
climate carbon waste energy solar nuclear reactor battery storage network server cloud signal sensor
orbit planet moon star light colour sound noise voice language word grammar letter script page volume
";
