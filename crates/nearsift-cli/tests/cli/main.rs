//! The program as scripts see it: what it writes, where, and with which exit status.

mod adversary;
mod against;
mod answers;
mod bad_input;
mod clusters;
mod commands;
mod data;
mod decontaminate;
mod environment;
mod eval;
mod examples;
mod faults;
mod groups;
mod help;
mod index;
mod large;
mod marks;
mod one_file;
mod one_form;
mod other_names;
mod overwrite;
mod partial;
mod parts;
mod report;
mod resume;
mod same_bytes;
mod same_text;
#[cfg(unix)]
mod serve;
mod shells;
mod sketch;
mod streams;
mod substrings;
mod support;
mod trim;
mod tune;
#[cfg(unix)]
mod view;
mod why;
