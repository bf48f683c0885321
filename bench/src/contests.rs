//! Contests of single stages with their peers, and reports of benchmarks that measure by themselves.

use std::cell::RefCell;

use gaoya::simhash::{SimHash, SimSipHasher64};
use gaoya::text::shingle_text;
use nearsift::fingerprint::votes::Votes;
use nearsift::recipe::Recipe;

use crate::corpus::Corpus;
use crate::harness::{Contest, Expect, Report, Row, Work};
use crate::{Settings, join, votes, words};

/// Text for the stages: Chinese documents of the generated corpus, of this many bytes in all.
const TEXT_BYTES: usize = 4_000_000;
