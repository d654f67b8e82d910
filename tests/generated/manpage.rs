//! The manual page: options from the parser's definition, all else from `cli::manual`.

use std::fmt::Write as _;

use clap::Arg;
use clap_mangen::Man;
use retryx::cli::differences::{DIFFERENCES, Difference};
use retryx::cli::full_command;
use retryx::cli::manual::{AFTER_OPTIONS, BEFORE_OPTIONS, EVENTS, Part, Section};
use retryx::cli::options::{Opt, Sub};
use retryx::exit;

use crate::{is_besides, with_options};

/// The whole page.
pub fn man_page() -> String {
    let man = Man::new(full_command(Sub::Run));
    let mut synopsis = Vec::new();
    man.render_synopsis_section(&mut synopsis).unwrap();

    let mut page = format!(
        "'\\\" t\n.\\\" Generated: change the code, then BLESS=1 cargo test --test generated\n\
         .ie \\n(.g .ds Aq \\(aq\n.el .ds Aq '\n.TH RETRYX 1 \"\" \"retryx {}\" \"User Commands\"\n",
        env!("CARGO_PKG_VERSION")
    );
    page.push_str(
        ".SH NAME\nretryx \\- run a command, and repeat it under the retry policies of AWS and Google Cloud\n",
    );
    page.push_str(without_preamble(&String::from_utf8(synopsis).unwrap()));
    for section in BEFORE_OPTIONS {
        page.push_str(&roff_section(section));
    }
    page.push_str(".SH OPTIONS\n");
    page.push_str(&roff_options(Sub::Run));
    for section in AFTER_OPTIONS {
        page.push_str(&roff_section(section));
    }
    page.replace('×', "\\(mu")
}

/// The options of a run, or those that a subcommand has besides, each group a subsection.
fn roff_options(sub: Sub) -> String {
    let mut made = Vec::new();
    Man::new(with_options(sub, |option| is_besides(option, sub), described)).render_options_section(&mut made).unwrap();
    let mut text = String::new();
    for line in without_preamble(&String::from_utf8(made).unwrap()).lines() {
        match (line.strip_prefix(".SH "), sub) {
            // Groups of options are parts of one section.
            (Some(heading), Sub::Run) => {
                let _ = writeln!(text, ".SS {}{}", &heading[..1], heading[1..].to_lowercase());
            }
            (Some(_), _) => {
                let _ = writeln!(text, ".SS \"Options of {}\"", sub.name());
            }
            (None, _) => text.extend([option_line(line).as_str(), "\n"]),
        }
    }
    text
}

/// An argument with all words of its option.
fn described(arg: Arg, option: &Opt) -> Arg {
    let mut text = format!("{}.\n", option.help);
    if !option.more.is_empty() {
        let _ = writeln!(text, "{}.", option.more);
    }
    if !option.choices.is_empty() {
        let _ = writeln!(text, "One of: {}.", option.choices.join(", "));
    }
    arg.hide_possible_values(option.value.is_some()).help(text.clone()).long_help(text)
}

/// A line of the options: hyphens stay hyphens but in options, and a sentence has its line.
fn option_line(line: &str) -> String {
    let line = line.replace("\\-", "-").replace("--", "\\-\\-");
    if line.starts_with('.') { line } else { line.replace(". ", ".\n") }
}

/// What a renderer of `clap_mangen` wrote, without the definition that the title has made.
fn without_preamble(roff: &str) -> &str {
    roff.find(".SH").map_or(roff, |start| &roff[start..])
}

fn roff_section(section: &Section) -> String {
    let mut text = format!(".SH {}\n", quoted(section.title));
    for (index, part) in section.parts.iter().enumerate() {
        let begins = index == 0 || matches!(section.parts[index - 1], Part::Options(_));
        if !begins && matches!(part, Part::Text(_)) {
            text.push_str(".PP\n");
        }
        text.push_str(&roff_part(part));
    }
    text
}

fn roff_part(part: &Part) -> String {
    let list = |terms: &[(&str, &str)], spacing: &str| -> String {
        let item = |(term, meaning): &(&str, &str)| format!(".TP{spacing}\n{}\n{}", roff(term), sentences(meaning));
        terms.iter().map(item).collect()
    };
    match part {
        Part::Text(text) => sentences(text),
        Part::List(terms) => list(terms, ""),
        Part::Code(lines) => {
            format!(".PP\n.RS 4\n.nf\n{}\n.fi\n.RE\n", lines.lines().map(roff_code).collect::<Vec<_>>().join("\n"))
        }
        // Text that follows is the section's again.
        Part::Options(sub) => format!("{}.SS \"What is printed\"\n", roff_options(*sub)),
        Part::Presets => {
            let presets = super::presets();
            let terms: Vec<_> = presets.iter().map(|(names, words)| (names.as_str(), words.as_str())).collect();
            list(&terms, "")
        }
        Part::Differences => {
            let item = |difference: &Difference| {
                format!(
                    ".IP \\(bu 2\n{}.\nThe reason: {}",
                    sentence(difference.what),
                    sentences(&(difference.reason.to_owned() + "."))
                )
            };
            DIFFERENCES.iter().map(item).collect()
        }
        Part::ExitStatuses => list(&exit::TABLE, ""),
        Part::Events => {
            let mut text = String::new();
            for (name, when, fields) in EVENTS {
                let _ = write!(text, ".SS \"Event {name}\"\n{}{}", sentences(when), list(fields, " 18"));
            }
            text
        }
        Part::Table(rows) => {
            let columns = rows.first().map_or(0, |row| row.len());
            let format = |font: &str| format!("{}l{font}", format!("l{font}2 ").repeat(columns.saturating_sub(1)));
            let mut text = format!(".PP\n.TS\n{}\n{}.\n", format("b"), format(""));
            for row in *rows {
                let cells: Vec<_> = row.iter().map(|cell| roff(cell)).collect();
                let _ = writeln!(text, "{}", cells.join("\t"));
            }
            text + ".TE\n"
        }
    }
}

/// Words that begin a sentence.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|letter| letter.to_uppercase().to_string()).unwrap_or_default();
    roff(&(first + letters.as_str()))
}

/// One sentence a line, as manuals are kept.
fn sentences(text: &str) -> String {
    roff(text).replace(". ", ".\n") + "\n"
}

/// Text with its backquoted words in bold.
fn roff(text: &str) -> String {
    let pieces = text.split('`').enumerate();
    let made: String = pieces.map(|(i, piece)| if i % 2 == 0 { escaped(piece) } else { roff_code(piece) }).collect();
    if made.starts_with(['.', '\'']) { format!("\\&{made}") } else { made }
}

fn roff_code(literal: &str) -> String {
    format!("\\fB{}\\fR", escaped(literal).replace('-', "\\-"))
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\e").replace('\'', "\\(aq").replace('^', "\\(ha").replace('~', "\\(ti")
}

fn quoted(title: &str) -> String {
    if title.contains(' ') { format!("\"{title}\"") } else { title.to_owned() }
}
