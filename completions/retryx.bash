# Completion of retryx for bash.
# Generated: change the code, then BLESS=1 cargo test --test generated

_retryx() {
    local cur="$2" prev="$3" i=1 sub="" verbatim="" first="" verb="" words
    COMPREPLY=()

    # Bash takes --option=value for three words.
    if [[ "${prev}" == "=" ]]; then
        prev="${COMP_WORDS[COMP_CWORD - 2]}"
    elif [[ "${cur}" == "=" ]]; then
        cur=""
    fi

    # The first word that is no option begins a subcommand or the command.
    while [[ ${i} -lt ${COMP_CWORD} ]]; do
        case "${COMP_WORDS[i]}" in
            --) verbatim=yes; i=$((i + 1)); break ;;
            --base-delay|--body|--cacert|--cert|--checksum|--class|--connect-timeout|--connect-to|--continue-at|--cookie|--data|--data-binary|--data-raw|--data-urlencode|--deadline|--delays|--dump-header|--events|--exit|--exit-code-on-failure|--factor|--fail-on|--form|--format|--header|--idempotency-key|--idle-timeout|--jitter|--json|--key|--kill-after|--kill-signal|--max-attempts|--max-backoff|--max-redirs|--max-retry-after|--max-time|--min-delay|--mode|--noproxy|--output|--output-dir|--preset|--program|--proto|--proto-redir|--proxy|--quota-capacity|--quota-cost|--quota-refill|--range|--referer|--request|--resolve|--retry-after-match|--retry-on|--scope|--scope-ttl|--seed|--service|--signal|--stagger|--state-dir|--status|--stderr|--stderr-text|--stdin|--stdout|--stdout-text|--store|--succeed-on|--throttle-base-delay|--throttle-on|--timeout|--tokens|--total-timeout|--unix-socket|--upload-file|--url|--user|--user-agent|--variable|--write-out|-A|-C|-D|-E|-F|-H|-T|-X|-b|-d|-e|-k|-m|-n|-o|-r|-u|-w|-x) [[ "${COMP_WORDS[i + 1]}" == "=" ]] && i=$((i + 1)); i=$((i + 2)) ;;
            -*) i=$((i + 1)) ;;
            http|plan|explain|quota)
                [[ -n "${sub}" ]] && break
                sub="${COMP_WORDS[i]}"
                i=$((i + 1))
                ;;
            *)
                # The options of quota may stand after its words.
                [[ "${sub}" == quota ]] || break
                verb="${COMP_WORDS[i]}"
                i=$((i + 1))
                ;;
        esac
    done

    if [[ ${i} -gt ${COMP_CWORD} ]]; then
        case "${sub},${prev}" in
            *,--mode) COMPREPLY=($(compgen -W "standard aws adaptive legacy google fixed linear exponential decorrelated" -- "${cur}")) ;;
            *,--service) COMPREPLY=($(compgen -W "dynamodb" -- "${cur}")) ;;
            *,--jitter) COMPREPLY=($(compgen -W "full equal fraction none" -- "${cur}")) ;;
            *,--state-dir) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -d -- "${cur}") ;;
            *,--stdin) COMPREPLY=($(compgen -W "auto replay inherit null" -- "${cur}")) ;;
            *,--stdout) COMPREPLY=($(compgen -W "each final success" -- "${cur}")) ;;
            *,--stderr) COMPREPLY=($(compgen -W "each final success" -- "${cur}")) ;;
            *,--events) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- "${cur}") ;;
            plan,--class) COMPREPLY=($(compgen -W "transient throttling" -- "${cur}")) ;;
            plan,--format) COMPREPLY=($(compgen -W "table json csv" -- "${cur}")) ;;
            explain,--format) COMPREPLY=($(compgen -W "text json" -- "${cur}")) ;;
            quota,--state-dir) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -d -- "${cur}") ;;
            quota,--format) COMPREPLY=($(compgen -W "text json" -- "${cur}")) ;;
        esac
        return 0
    fi

    if [[ "${sub}" == quota && "${cur}" != -* ]]; then
        [[ -z "${verb}" ]] && COMPREPLY=($(compgen -W "list show reset set" -- "${cur}"))
        return 0
    fi

    # The words of the command are its own to complete; explain takes none.
    if [[ ${i} -lt ${COMP_CWORD} || -n "${verbatim}" || "${cur}" != -* ]]; then
        [[ "${sub}" == explain ]] && return 0
        # What completes the command's words changes COMP_CWORD.
        [[ ${i} -eq ${COMP_CWORD} ]] && first=yes
        compopt -o bashdefault -o default 2>/dev/null
        if declare -F _command_offset >/dev/null; then
            _command_offset "${i}"
        elif [[ -n "${first}" ]]; then
            mapfile -t COMPREPLY < <(compgen -c -- "${cur}")
        fi
        if [[ -n "${first}" && -z "${verbatim}${sub}" ]]; then
            COMPREPLY+=($(compgen -W "http plan explain quota" -- "${cur}"))
        fi
        return 0
    fi

    words="--mode --service -n --max-attempts --delays --base-delay --throttle-base-delay --factor --max-backoff --min-delay --jitter --stagger --seed --retry-on --throttle-on --fail-on --succeed-on --retry-429 --preset --watch --retry-after-match --max-retry-after --sole-retrier --quota-capacity --quota-cost --quota-refill --no-quota --scope --scope-ttl --store --state-dir --long-poll --deadline --timeout --idle-timeout --total-timeout -k --kill-after --kill-signal --stdin --stdout --stderr --shell --own-group --exit-code-on-failure --events --log-arguments -q --quiet -v --verbose -h --help -V --version"
    [[ "${sub}" == http ]] && words+=" -X --request -H --header -d --data --data-raw --data-binary --data-urlencode --json -F --form -T --upload-file -G --get --basic -u --user -A --user-agent -e --referer -b --cookie -r --range --compressed -L --location --location-trusted --max-redirs -g --globoff --url --variable --idempotent --idempotency-key -o --output -O --remote-name --output-dir --create-dirs -D --dump-header -i --include -I --head -s --silent --no-progress-meter -# --progress-bar -S --show-error -f --fail --fail-early --fail-with-body -w --write-out -N --no-buffer -C --continue-at --checksum --proto --proto-redir -k --insecure --tlsv1.2 --http1.1 --cacert -E --cert --key -x --proxy --noproxy --resolve --connect-to --unix-socket -4 --ipv4 -6 --ipv6 --connect-timeout -m --max-time"
    [[ "${sub}" == plan ]] && words+=" --class --format --explain-config"
    [[ "${sub}" == explain ]] && words+=" --exit --signal --timed-out --program --stdout-text --stderr-text --status --header --body --format"
    [[ "${sub}" == quota ]] && words="--quota-capacity --quota-refill --scope-ttl --store --state-dir -q --quiet -h --help -V --version --tokens --format"
    COMPREPLY=($(compgen -W "${words}" -- "${cur}"))
}

complete -F _retryx -o nosort retryx 2>/dev/null || complete -F _retryx retryx
