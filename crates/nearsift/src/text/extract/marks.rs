//! What the names, classes and roles of elements say of them.
//!
//! A class or an id is read by its words: `eu-cookie-law`, `euCookieLaw` and `eu_cookie` hold the word
//! `cookie`. The families of words are those that frameworks, consent managers and forum software use.

/// A set of the constants of this module.
pub(super) type Marks = u32;

/// Is not shown: `hidden`, `display: none`.
pub(super) const HIDDEN: Marks = 1;
/// Is shown, but not to be used: `aria-hidden`, `inert`.
pub(super) const INERT: Marks = 1 << 1;
/// Says of itself by name or role that it is a dialog.
pub(super) const DIALOG: Marks = 1 << 2;
/// Looks like a dialog by its class.
pub(super) const POPUP: Marks = 1 << 3;
/// Asks for consent to cookies, or says that they are used.
pub(super) const CONSENT: Marks = 1 << 4;
/// Asks for another browser.
pub(super) const BROWSER: Marks = 1 << 5;
/// Stands there until the page is loaded.
pub(super) const SPLASH: Marks = 1 << 6;
/// A notice of the site to its visitors.
pub(super) const NOTICE: Marks = 1 << 7;
/// Navigation, footer and the like, by name or role.
pub(super) const FRAME: Marks = 1 << 8;
/// Navigation, sharing, adverts and the like, by class.
pub(super) const ASIDE: Marks = 1 << 9;
/// Something to fill in or to press; of any element: it is just around one.
pub(super) const CONTROL: Marks = 1 << 10;
/// The text of a post in a forum.
pub(super) const POST: Marks = 1 << 11;
/// The signature below a post.
pub(super) const SIGNATURE: Marks = 1 << 12;
/// The page's main area.
pub(super) const MAIN: Marks = 1 << 13;
/// Was sent late, for a place further up.
pub(super) const STREAMED: Marks = 1 << 14;
/// Has a heading of the first order, an article or the main area in it.
pub(super) const HOLDS_CONTENT: Marks = 1 << 15;
/// Has a text about cookies.
pub(super) const COOKIE_TEXT: Marks = 1 << 16;

/// Is named as a post, an answer, a comment or a part of one.
pub(super) const RECORD: Marks = 1 << 17;
/// Is named as a comment, a reply or a review, which stand below articles too.
pub(super) const COMMENT: Marks = 1 << 25;
/// Who wrote a post, and when, and what can be done with it.
pub(super) const BYLINE: Marks = 1 << 18;
/// Holds the description or the specification of a product.
pub(super) const DESCRIBES: Marks = 1 << 19;
/// Stands beside a product: reviews, other products, delivery.
pub(super) const BESIDE: Marks = 1 << 20;
/// A discussion, a question or an answer, by its microdata.
pub(super) const DISCUSSION: Marks = 1 << 21;
/// A product, by its microdata.
pub(super) const PRODUCT: Marks = 1 << 22;
/// The caption or the credit of a picture.
pub(super) const CAPTION: Marks = 1 << 24;
/// An article, by its microdata.
pub(super) const ARTICLE: Marks = 1 << 23;

/// What an element inherits from those that it holds.
pub(super) const UPWARDS: Marks = HOLDS_CONTENT | COOKIE_TEXT;

/// What an element passes on to those around it, by its name.
pub(super) fn upwards_of(name: &str) -> Marks {
    match name {
        "h1" | "main" | "article" => HOLDS_CONTENT,
        _ => 0,
    }
}

/// An attribute whose value says something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Attribute {
    Role,
    Style,
    AriaHidden,
    AriaModal,
    Itemtype,
}

pub(super) fn attribute(name: &[u8]) -> Option<Attribute> {
    Some(match name {
        b"role" => Attribute::Role,
        b"style" => Attribute::Style,
        b"aria-hidden" => Attribute::AriaHidden,
        b"aria-modal" => Attribute::AriaModal,
        b"itemtype" => Attribute::Itemtype,
        _ => return None,
    })
}

pub(super) fn of_name(name: &[u8]) -> Marks {
    match name {
        b"nav" | b"footer" | b"aside" => FRAME,
        b"dialog" => DIALOG,
        b"main" => MAIN,
        b"figcaption" => CAPTION,
        b"input" | b"textarea" => CONTROL,
        _ => 0,
    }
}

/// Of `<input type=...>`: what is hidden is not filled in.
pub(super) fn of_input_type(value: &[u8]) -> Marks {
    if value.trim_ascii().eq_ignore_ascii_case(b"hidden") { HIDDEN } else { 0 }
}

pub(super) fn of_value(attribute: Attribute, value: &[u8]) -> Marks {
    match attribute {
        Attribute::Role => match value {
            b"navigation" | b"contentinfo" | b"complementary" | b"search" | b"menu" => FRAME,
            b"dialog" | b"alertdialog" => DIALOG,
            b"main" => MAIN,
            _ => 0,
        },
        Attribute::Style if hides(value) => HIDDEN,
        Attribute::AriaHidden if value == b"true" => INERT,
        Attribute::AriaModal if value == b"true" => DIALOG,
        Attribute::Itemtype => of_type(&String::from_utf8_lossy(&value[..value.len().min(200)])),
        _ => 0,
    }
}

/// Of a schema.org type, with or without its address.
pub(super) fn of_type(name: &str) -> Marks {
    match name.rsplit('/').next().unwrap_or_default() {
        "DiscussionForumPosting" | "QAPage" | "Question" | "Answer" => DISCUSSION,
        "Product" | "ProductGroup" => PRODUCT,
        "Article"
        | "NewsArticle"
        | "ReportageNewsArticle"
        | "BlogPosting"
        | "TechArticle"
        | "Report" => ARTICLE,
        _ => 0,
    }
}

pub(super) fn of_text(text: &str) -> Marks {
    let cookie = memchr::memmem::find(text.as_bytes(), b"ookie").is_some();
    if cookie { COOKIE_TEXT } else { 0 }
}

/// Whether a `style` hides the element.
fn hides(style: &[u8]) -> bool {
    let compact: Vec<u8> = style
        .iter()
        .take(256)
        .filter(|b| !b.is_ascii_whitespace())
        .map(u8::to_ascii_lowercase)
        .collect();
    memchr::memmem::find(&compact, b"display:none").is_some()
        || memchr::memmem::find(&compact, b"visibility:hidden").is_some()
}

/// Of `class`, `id` and `itemprop`, at most some hundred bytes.
pub(super) fn of_tokens(class: &str, id: &str, itemprop: &str) -> Marks {
    let mut marks = 0;
    let mut about_browser = false;
    let mut about_age = false;
    for value in [class, id] {
        for name in value.split(' ') {
            marks |= of_whole(&name.to_ascii_lowercase()) | of_ends(name);
        }
        each_word(value, |word| {
            marks |= of_word(word);
            about_browser |= matches!(word, "browser" | "browsers" | "ie" | "ie6" | "ie7" | "ie8");
            about_age |= matches!(
                word,
                "old"
                    | "older"
                    | "update"
                    | "upgrade"
                    | "outdated"
                    | "unsupported"
                    | "support"
                    | "warning"
                    | "happy"
                    | "legacy"
                    | "obsolete"
                    | "notice"
                    | "alert"
            );
        });
    }
    if about_browser && about_age {
        marks |= BROWSER;
    }
    for name in itemprop.split(' ') {
        marks |= match name {
            "text" => RECORD,
            "description" => DESCRIBES,
            _ => 0,
        };
    }
    if id.starts_with("S:") && id.len() > 2 {
        marks |= STREAMED;
    }
    marks
}

/// The words of a class or id in lower case: letters and digits, cut where a capital follows a small letter.
fn each_word(value: &str, mut each: impl FnMut(&str)) {
    let mut word = String::new();
    let mut before = ' ';
    for c in value.chars().chain([' ']) {
        let begins = before.is_ascii_lowercase() && c.is_ascii_uppercase();
        if (begins || !c.is_ascii_alphanumeric()) && !word.is_empty() {
            each(&word);
            word.clear();
        }
        if c.is_ascii_alphanumeric() {
            word.push(c.to_ascii_lowercase());
        }
        before = c;
    }
}

fn of_word(word: &str) -> Marks {
    if word.contains("cookie") || word.contains("consent") {
        return CONSENT;
    }
    post_of(word)
        | match word {
            "gdpr" | "ccpa" | "dsgvo" | "onetrust" | "didomi" | "cookiebot" | "usercentrics"
            | "truste" | "cmp" | "cmpbox" | "qc" => CONSENT,
            "modal" | "modals" | "popup" | "popups" | "popin" | "popover" | "lightbox"
            | "dialog" | "dialogue" | "dialogs" | "fancybox" | "tooltip" | "toast" | "snackbar"
            | "layer" => POPUP,
            "browsehappy" | "browserupgrade" | "browserupdate" | "chromeframe" | "oldbrowser"
            | "outdatedbrowser" | "nojs" | "noscript" => BROWSER,
            "splash" | "loader" | "preloader" | "preload" | "loading" | "spinner" | "skeleton" => {
                SPLASH
            }
            "notice" | "notices" | "announcement" | "announcements" | "announce" | "rules"
            | "guest" => NOTICE,
            "nav" | "navbar" | "navigation" | "menu" | "breadcrumb" | "breadcrumbs" | "crumbs"
            | "footer" | "sidebar" | "share" | "sharing" | "social" | "related" | "recommended"
            | "recommendations" | "recommend" | "pagination" | "pager" | "newsletter"
            | "subscribe" | "advert" | "advertisement" | "ads" | "ad" | "promo" | "sponsored"
            | "login" | "toolbar" | "byline" | "tags" | "comments" => ASIDE,
            "signature" | "sig" | "signatures" => SIGNATURE,
            "caption" | "captions" | "figcaption" | "credit" | "credits" | "gallery"
            | "slideshow" => CAPTION,
            "description" | "descriptions" | "desc" | "spec" | "specs" | "specification"
            | "specifications" | "feature" | "features" | "detail" | "details" | "overview"
            | "highlights" | "ingredients" | "attributes" => DESCRIBES,
            "rating" | "ratings" | "upsell" | "upsells" | "recently" | "similar" | "carousel"
            | "slider" | "cart" | "price" | "prices" | "pricing" | "quantity" | "delivery"
            | "shipping" | "returns" | "swatch" | "swatches" | "stock" => BESIDE,
            _ => 0,
        }
}

/// The words by which people who write templates name a post and its parts.
fn post_of(word: &str) -> Marks {
    let begins = |with: &str| word.starts_with(with);
    let is_comment = begins("comment")
        || matches!(
            word,
            "reply" | "replies" | "response" | "responses" | "review" | "reviews" | "pinglun"
        );
    let is_post = begins("answer")
        || begins("message")
        || (begins("post") && !begins("poster") && !begins("postal"))
        || matches!(
            word,
            "msg" | "question" | "floor" | "topic" | "thread" | "discussion" | "tiezi" | "huifu"
        );
    match () {
        () if is_comment => RECORD | COMMENT,
        () if is_post => RECORD,
        () => 0,
    }
}

/// A by-line, by the first or the last word of a class: a class of another place (`comment-author-ann`) may hold the
/// word too.
fn of_ends(name: &str) -> Marks {
    let (mut first, mut last) = (String::new(), String::new());
    each_word(name, |word| {
        if first.is_empty() {
            first.push_str(word);
        }
        last.clear();
        last.push_str(word);
    });
    let is_byline = |word: &str| {
        matches!(
            word,
            "author"
                | "authors"
                | "username"
                | "userinfo"
                | "userdetails"
                | "poster"
                | "meta"
                | "metadata"
                | "date"
                | "time"
                | "timestamp"
                | "datetime"
                | "avatar"
                | "profile"
                | "byline"
                | "actions"
                | "controls"
                | "buttons"
                | "permalink"
                | "rank"
                | "badge"
                | "badges"
                | "votes"
                | "voting"
                | "score"
                | "likes"
                | "reactions"
                | "stats"
                | "subscribe"
        )
    };
    if is_byline(&first) || is_byline(&last) { BYLINE } else { 0 }
}

/// The class or id by which an element says that it is a post or a part of one, without numbers and in lower case.
pub(super) fn post_name(attributes: [&str; 3]) -> Option<String> {
    let [class, id, itemprop] = attributes;
    let mut names = class.split(' ').chain(id.split(' '));
    let is_post = |name: &&str| {
        let mut is = of_whole(&name.to_ascii_lowercase()) != 0;
        each_word(name, |word| is |= post_of(word) != 0);
        is
    };
    let name = names.find(is_post);
    let name = name.or_else(|| itemprop.split(' ').find(|name| *name == "text"))?;
    Some(name.chars().filter(|c| !c.is_ascii_digit()).map(|c| c.to_ascii_lowercase()).collect())
}

/// Classes and ids by which forum software marks the text of a post.
fn of_whole(name: &str) -> Marks {
    let is_post = matches!(
        name,
        // Discourse, phpBB, XenForo, vBulletin, Discuz!, NGA, Tieba, Stack Exchange, Reddit, Hacker News.
        "cooked" | "crawler-post" | "postbody" | "bbwrapper" | "messagetext" | "message-body" | "postcontent" | "post_message"
            | "t_f" | "t_fsz" | "pcb" | "d_post_content" | "s-prose" | "js-post-body"
            | "usertext-body" | "commtext"
            // MyBB, SMF, Invision, Khoros, Flarum, bbPress, NodeBB, FluxBB, Vanilla, V2EX.
            | "post_body" | "cpost_contentwrap" | "ipstype_richtext" | "lia-message-body-content"
            | "bbp-reply-content" | "bbp-topic-content" | "postmsg" | "usercontent" | "topic_content"
            | "reply_content" | "forum-post-content" | "js-comment-body" | "forumpost"
    ) || name.starts_with("post_message_")
        || name.starts_with("postmessage_")
        || name.starts_with("post_content_");
    if is_post { POST } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_read_by_their_words() {
        let check = |class: &str, want: Marks| {
            assert_eq!(of_tokens(class, "", "") & want, want, "{class}");
            assert_eq!(of_tokens("", class, "") & want, want, "{class}");
        };
        check("eu-cookie-law", CONSENT);
        check("euCookieLaw", CONSENT);
        check("widget eu_cookie", CONSENT);
        check("update-browser", BROWSER);
        check("browser-upgrade x", BROWSER);
        check("ui modal", POPUP);
        check("d-splash", SPLASH);
        check("post_message_17", POST);
        assert_eq!(of_tokens("cookery modality oldies", "", ""), 0);
        assert_eq!(of_tokens("", "S:0", "") & STREAMED, STREAMED);
    }
}
