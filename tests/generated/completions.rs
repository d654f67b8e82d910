//! The completions, made from the table of options: by `clap_complete` for zsh and fish,
//! here for bash. The words of the wrapped command are completed as if it stood alone.

use std::fmt::Write as _;

use clap::ValueHint;
use clap_complete::Shell;
use retryx::cli::options::{OPTIONS, Opt, Sub};
use retryx::scopes::VERBS;

use crate::{is_besides, with_options};

/// What the value of the options that name a file is called.
const FILE: &str = "FILE|fd:N";
/// What it is called where it is a folder.
const FOLDER: &str = "DIR";

/// Whether the options of a run may be given to it, so that its own come besides these.
fn takes_those_of_a_run(sub: Sub) -> bool {
    sub != Sub::Quota
}

/// The options of a run, and those that a subcommand takes besides; all of one that takes
/// but few of a run's.
fn is_shown(option: &Opt, sub: Sub) -> bool {
    if takes_those_of_a_run(sub) { is_besides(option, sub) } else { option.of(sub) }
}

fn options(sub: Sub) -> impl Iterator<Item = &'static Opt> {
    OPTIONS.iter().filter(move |option| is_shown(option, sub))
}

/// The ways to write an option.
fn spellings(option: &Opt) -> impl Iterator<Item = String> {
    let short = option.short.map(|letter| format!("-{letter}"));
    short.into_iter().chain([format!("--{}", option.long)])
}

/// Every spelling of the options that take a value as a word of its own.
fn options_with_values() -> Vec<String> {
    let mut all: Vec<_> = OPTIONS.iter().filter(|option| option.value.is_some()).flat_map(spellings).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// The names of the subcommands.
fn subcommands(separator: &str) -> String {
    Sub::NAMED.map(|(name, _)| name).join(separator)
}

/// For bash, with or without the package bash-completion.
pub fn bash() -> String {
    let (mut values, mut words) = (String::new(), String::new());
    for sub in [Sub::Run].into_iter().chain(Sub::NAMED.map(|(_, sub)| sub)) {
        let place = if sub == Sub::Run { "*" } else { sub.name() };
        for option in options(sub).filter(|option| option.value.is_some()) {
            let names: Vec<_> = spellings(option).map(|name| format!("{place},{name}")).collect();
            let action = match (option.choices, option.value) {
                ([], Some(FILE)) => {
                    r#"compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- "${cur}")"#.to_owned()
                }
                ([], Some(FOLDER)) => {
                    r#"compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -d -- "${cur}")"#.to_owned()
                }
                ([], _) => continue,
                (choices, _) => {
                    format!(r#"COMPREPLY=($(compgen -W "{}" -- "${{cur}}"))"#, choices.join(" "))
                }
            };
            let _ = writeln!(values, "            {}) {action} ;;", names.join("|"));
        }
        let list: Vec<_> = options(sub).flat_map(spellings).collect();
        let _ = match sub {
            Sub::Run => writeln!(words, "    words=\"{}\"", list.join(" ")),
            _ if takes_those_of_a_run(sub) => {
                writeln!(words, "    [[ \"${{sub}}\" == {} ]] && words+=\" {}\"", sub.name(), list.join(" "))
            }
            _ => writeln!(words, "    [[ \"${{sub}}\" == {} ]] && words=\"{}\"", sub.name(), list.join(" ")),
        };
    }
    format!(
        r#"# Completion of retryx for bash.
# Generated: change the code, then BLESS=1 cargo test --test generated

_retryx() {{
    local cur="$2" prev="$3" i=1 sub="" verbatim="" first="" verb="" words
    COMPREPLY=()

    # Bash takes --option=value for three words.
    if [[ "${{prev}}" == "=" ]]; then
        prev="${{COMP_WORDS[COMP_CWORD - 2]}}"
    elif [[ "${{cur}}" == "=" ]]; then
        cur=""
    fi

    # The first word that is no option begins a subcommand or the command.
    while [[ ${{i}} -lt ${{COMP_CWORD}} ]]; do
        case "${{COMP_WORDS[i]}}" in
            --) verbatim=yes; i=$((i + 1)); break ;;
            {valued}) [[ "${{COMP_WORDS[i + 1]}}" == "=" ]] && i=$((i + 1)); i=$((i + 2)) ;;
            -*) i=$((i + 1)) ;;
            {alternatives})
                [[ -n "${{sub}}" ]] && break
                sub="${{COMP_WORDS[i]}}"
                i=$((i + 1))
                ;;
            *)
                # The options of quota may stand after its words.
                [[ "${{sub}}" == quota ]] || break
                verb="${{COMP_WORDS[i]}}"
                i=$((i + 1))
                ;;
        esac
    done

    if [[ ${{i}} -gt ${{COMP_CWORD}} ]]; then
        case "${{sub}},${{prev}}" in
{values}        esac
        return 0
    fi

    if [[ "${{sub}}" == quota && "${{cur}}" != -* ]]; then
        [[ -z "${{verb}}" ]] && COMPREPLY=($(compgen -W "{verbs}" -- "${{cur}}"))
        return 0
    fi

    # The words of the command are its own to complete; explain takes none.
    if [[ ${{i}} -lt ${{COMP_CWORD}} || -n "${{verbatim}}" || "${{cur}}" != -* ]]; then
        [[ "${{sub}}" == explain ]] && return 0
        # What completes the command's words changes COMP_CWORD.
        [[ ${{i}} -eq ${{COMP_CWORD}} ]] && first=yes
        compopt -o bashdefault -o default 2>/dev/null
        if declare -F _command_offset >/dev/null; then
            _command_offset "${{i}}"
        elif [[ -n "${{first}}" ]]; then
            mapfile -t COMPREPLY < <(compgen -c -- "${{cur}}")
        fi
        if [[ -n "${{first}}" && -z "${{verbatim}}${{sub}}" ]]; then
            COMPREPLY+=($(compgen -W "{names}" -- "${{cur}}"))
        fi
        return 0
    fi

{words}    COMPREPLY=($(compgen -W "${{words}}" -- "${{cur}}"))
}}

complete -F _retryx -o nosort retryx 2>/dev/null || complete -F _retryx retryx
"#,
        valued = options_with_values().join("|"),
        alternatives = subcommands("|"),
        names = subcommands(" "),
        verbs = VERBS.join(" "),
    )
}

/// What `clap_complete` makes of the options of a run, or of those that a subcommand takes
/// besides.
fn completion(shell: Shell, sub: Sub) -> String {
    let mut command = with_options(
        sub,
        |option| is_shown(option, sub),
        |arg, option| match option.value.filter(|_| option.choices.is_empty()) {
            // The colon of the name shown elsewhere has a meaning in zsh.
            Some(FILE) => arg.value_name("FILE").value_hint(ValueHint::FilePath),
            Some(FOLDER) => arg.value_hint(ValueHint::DirPath),
            Some(_) => arg.value_hint(ValueHint::Other),
            None => arg,
        },
    );
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, "retryx", &mut script);
    String::from_utf8(script).unwrap()
}

/// For zsh.
pub fn zsh() -> String {
    // Each line of the specification of options is one word.
    let specs = |sub| {
        let script = completion(Shell::Zsh, sub);
        let lines = script.lines().filter(|line| line.starts_with('\''));
        lines.fold(String::new(), |text, line| text + "        " + line.trim_end_matches([' ', '\\']) + "\n")
    };
    let (mut arrays, mut cases, mut described) = (String::new(), String::new(), String::new());
    for (name, sub) in Sub::NAMED {
        let _ = write!(arrays, "    {name}_options=(\n{})\n", specs(sub) + "    ");
        let arguments = match sub {
            Sub::Quota => format!("-s -S : ${name}_options '1:what to do:({})' '2:scope:'", VERBS.join(" ")),
            Sub::Explain => format!("-s -S -A '-*' : $run_options ${name}_options"),
            _ => format!("-s -S -A '-*' : $run_options ${name}_options '*::command:_normal -p retryx'"),
        };
        let _ = writeln!(cases, "            {name}) _arguments {arguments}; return ;;");
        let about = retryx::cli::full_command(sub).get_about().unwrap().to_string();
        let _ = write!(described, " {name}\\:\"{about}\"");
    }
    format!(
        r"#compdef retryx
# Completion of retryx for zsh.
# Generated: change the code, then BLESS=1 cargo test --test generated

_retryx() {{
    local context curcontext=$curcontext state line
    typeset -A opt_args
    local -a run_options {names} typed=($words)
    run_options=(
{run}    )
{arrays}
    # Options end at the first word that is none.
    _arguments -s -S -C -A '-*' : $run_options '*::command:_retryx_command'
}}

# The words from the first that is no option on: a subcommand's, or the command's own.
_retryx_command() {{
    if [[ $typed[$(($#typed - $#words))] != -- ]]; then
        if ((CURRENT == 1)); then
            _alternative 'subcommands:subcommand:(({described} ))' 'commands:command:_normal -p retryx'
            return
        fi
        case $words[1] in
{cases}        esac
    fi
    _normal -p retryx
}}

if [[ $funcstack[1] == _retryx ]]; then
    _retryx
else
    compdef _retryx retryx
fi
",
        names = Sub::NAMED.map(|(name, _)| format!("{name}_options")).join(" "),
        run = specs(Sub::Run),
        described = described.trim_start(),
    )
}

/// For fish.
pub fn fish() -> String {
    let valued = options_with_values();
    let mut lines = String::new();
    for sub in [Sub::Run].into_iter().chain(Sub::NAMED.map(|(_, sub)| sub)) {
        let like_a_run = Sub::NAMED.into_iter().filter(|(_, sub)| takes_those_of_a_run(*sub));
        let places = match sub {
            Sub::Run => like_a_run.fold("none".to_owned(), |list, (name, _)| list + " " + name),
            Sub::Quota => "quota quota-verb".to_owned(),
            _ => sub.name().to_owned(),
        };
        let condition = format!("complete -c retryx -n '__retryx_in {places}' ");
        let made = completion(Shell::Fish, sub);
        lines.push_str(&made.replace("complete -c retryx ", &condition));
    }
    for (name, sub) in Sub::NAMED {
        let about = retryx::cli::full_command(sub).get_about().unwrap().to_string();
        let _ = writeln!(lines, "complete -c retryx -n '__retryx_in none' -x -a {name} -d '{about}'");
    }
    format!(
        r"# Completion of retryx for fish.
# Generated: change the code, then BLESS=1 cargo test --test generated

# Whether the words before the cursor are in one of these places: a subcommand, none as yet,
# or the command; quota-verb after it was said what quota does.
function __retryx_in
    set -l words (commandline -opc)[2..]
    set -l place none
    while set -q words[1]
        switch $words[1]
            case --
                set place command
                break
            case {valued}
                set -e words[1]
            case '-*'
            case {names}
                if test $place != none
                    break
                end
                set place $words[1]
            case '*'
                if contains $place quota quota-verb
                    set place quota-verb
                else
                    set place command
                    break
                end
        end
        set -e words[1]
    end
    contains -- $place $argv
end

{lines}complete -c retryx -n '__retryx_in quota' -x -a '{verbs}'
complete -c retryx -n '__retryx_in quota-verb' -x
complete -c retryx -n 'not __retryx_in explain quota quota-verb' -x -a '(__fish_complete_subcommand -- {valued})'
",
        valued = valued.join(" "),
        names = subcommands(" "),
        verbs = VERBS.join(" "),
    )
}
