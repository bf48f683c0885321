//! From the summary to the report.

use super::{Search, Summary};
use crate::context::Context;
use crate::numbers::{grouped, plural};
use crate::report::{
    Example, Gone, Group, Nearness, Report, Setting, Sizes, visible, visible_line,
};

impl Summary {
    /// The report, with pairs to show, the least alike first.
    pub(in crate::dedup) fn report(&self, context: &Context<'_>, examples: Vec<Example>) -> Report {
        Report {
            documents: self.documents,
            text_bytes: self.text_bytes,
            kept: self.kept,
            removed_exact: self.removed.exact + self.removed.exact_of_reference,
            removed_near: self.removed.near + self.removed.near_of_reference,
            unreadable: self.unreadable,
            groups: self.groups,
            largest_group: self.largest_group,
            pairs: self.pairs,
            warnings: self.warnings().iter().map(|w| visible(&context.spell(w))).collect(),
            nearness: match &self.search {
                Search::Simhash { distances, max_distance, .. } => {
                    Nearness::of_distances(distances, *max_distance)
                }
                Search::Sketch { scores, min_score, .. } => Nearness::of_scores(scores, *min_score),
            },
            group_sizes: Sizes::of(self.group_sizes.iter().map(|(&size, &groups)| (size, groups))),
            sources: self.sources.clone(),
            largest: self.groups_shown(),
            examples,
            settings: self.settings_shown(),
        }
    }

    fn groups_shown(&self) -> Vec<Group> {
        let gone = |m: &super::MemberShown| Gone { id: visible_line(&m.id), why: m.what.clone() };
        let group = |g: &super::GroupShown| Group {
            size: g.size,
            kept: visible_line(&g.members[0].id),
            more: g.more(),
            removed: g.members[1..].iter().map(gone).collect(),
        };
        self.largest.iter().map(group).collect()
    }

    fn settings_shown(&self) -> Vec<Setting> {
        let near = match &self.search {
            Search::Simhash { max_distance, bits, .. } => {
                ("Largest distance", format!("{max_distance} of {bits} bits"))
            }
            Search::Sketch { min_score, verify, .. } => {
                ("Smallest score", format!("{min_score}, verified: {verify}"))
            }
        };
        let settings = [
            ("Program", format!("nearsift {}", self.nearsift)),
            ("Input", self.input()),
            ("Method", self.method.to_owned()),
            ("Recipe", self.recipe.clone()),
            ("Recipe digest", self.recipe_digest.clone()),
            near,
            ("Groups are", self.cluster.to_owned()),
            ("Kept is", self.keep.clone()),
            ("Search plan", self.search.plan().to_owned()),
        ];
        let against = self.against.iter().map(|reference| ("Against", reference.to_string()));
        let all = settings.into_iter().chain(against);
        all.map(|(name, value)| Setting { name, value: visible(&value) }).collect()
    }

    /// The files by format.
    fn input(&self) -> String {
        let formats: Vec<String> =
            self.formats.iter().map(|(format, &n)| format!("{} {format}", grouped(n))).collect();
        let files = plural(self.formats.values().sum(), "file");
        format!("{files}: {}", formats.join(", "))
    }
}
