//! The completions: `clap_complete` makes those of the options; the words of the wrapped
//! command are completed as if it stood alone.

use clap::ValueHint;
use clap_complete::Shell;
use retryx::cli::full_command;
use retryx::cli::options::{OPTIONS, Sub};

/// What `clap_complete` makes of the options.
fn completion(shell: Shell) -> String {
    let mut command = full_command(Sub::Run).mut_args(|arg| {
        let option = OPTIONS.iter().find(|option| arg.get_id() == option.long);
        match option.and_then(|option| option.value.filter(|_| option.choices.is_empty())) {
            // The colon of the name shown elsewhere has a meaning in zsh.
            Some("FILE|fd:N") => arg.value_name("FILE").value_hint(ValueHint::FilePath),
            Some(_) => arg.value_hint(ValueHint::Other),
            None => arg,
        }
    });
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, "retryx", &mut script);
    String::from_utf8(script).unwrap()
}

/// Every spelling of the options that take a value as a word of its own.
fn options_with_values() -> Vec<String> {
    let spellings = |option: &retryx::cli::options::Opt| {
        let short = option.short.map(|letter| format!("-{letter}"));
        short.into_iter().chain([format!("--{}", option.long)]).collect::<Vec<_>>()
    };
    OPTIONS.iter().filter(|option| option.value.is_some()).flat_map(spellings).collect()
}

/// Replaces a piece that must be there once.
fn replaced(text: &str, from: &str, to: &str) -> String {
    assert_eq!(text.matches(from).count(), 1, "{from}");
    text.replace(from, to)
}

/// For bash, with or without the package bash-completion.
pub fn bash() -> String {
    let start = format!(
        r#"    opts=""

    # Bash takes --option=value for three words.
    if [[ "${{prev}}" == "=" ]]; then
        prev="${{COMP_WORDS[COMP_CWORD - 2]}}"
    elif [[ "${{cur}}" == "=" ]]; then
        cur=""
    fi

    # The first word that is no option of retryx begins the command, whose words are its own to complete.
    i=1
    while [[ ${{i}} -lt ${{COMP_CWORD}} ]]; do
        case "${{COMP_WORDS[i]}}" in
            --) i=$((i + 1)); break ;;
            {}) [[ "${{COMP_WORDS[i + 1]}}" == "=" ]] && i=$((i + 1)); i=$((i + 2)) ;;
            -*) i=$((i + 1)) ;;
            *) break ;;
        esac
    done
    if [[ ${{i}} -lt ${{COMP_CWORD}} ]] || [[ ${{i}} -eq ${{COMP_CWORD}} && "${{cur}}" != -* ]]; then
        if declare -F _command_offset >/dev/null; then
            _command_offset "${{i}}"
        elif [[ ${{i}} -eq ${{COMP_CWORD}} ]]; then
            COMPREPLY=($(compgen -c -- "${{cur}}"))
        fi
        return 0
    fi
"#,
        options_with_values().join("|")
    );
    replaced(&completion(Shell::Bash), "    opts=\"\"\n", &start)
}

/// For zsh.
pub fn zsh() -> String {
    let own = replaced(
        &completion(Shell::Zsh),
        "'*::command -- The command to run, and its arguments:_default'",
        "'*::command:_normal -p retryx'",
    );
    // Options end at the first word that is none.
    let own = replaced(&own, "_arguments_options=(-s -S -C)", "_arguments_options=(-s -S -C -A '-*')");
    replaced(&own, "_arguments_options=(-s -C)", "_arguments_options=(-s -C -A '-*')")
}

/// For fish.
pub fn fish() -> String {
    let own = completion(Shell::Fish);
    let valued = options_with_values().join(" ");
    format!("{}\ncomplete -c retryx -x -a '(__fish_complete_subcommand -- {valued})'\n", own.trim_end())
}
