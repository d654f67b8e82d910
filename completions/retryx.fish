# Completion of retryx for fish.
# Generated: change the code, then BLESS=1 cargo test --test generated

# Whether the words before the cursor are in one of these places: a subcommand, none as yet,
# or the command.
function __retryx_in
    set -l words (commandline -opc)[2..]
    set -l place none
    while set -q words[1]
        switch $words[1]
            case --
                set place command
                break
            case --base-delay --body --class --deadline --delays --events --exit --exit-code-on-failure --factor --fail-on --format --header --idle-timeout --jitter --kill-after --kill-signal --max-attempts --max-backoff --max-retry-after --min-delay --mode --preset --program --quota-capacity --quota-cost --quota-refill --retry-after-match --retry-on --seed --service --signal --stagger --status --stderr --stderr-text --stdin --stdout --stdout-text --succeed-on --throttle-base-delay --throttle-on --timeout --total-timeout -k -n
                set -e words[1]
            case '-*'
            case plan explain
                if test $place != none
                    break
                end
                set place $words[1]
            case '*'
                set place command
                break
        end
        set -e words[1]
    end
    contains -- $place $argv
end

complete -c retryx -n '__retryx_in none plan explain' -l mode -d 'The policy: delay formula, attempts and limits [default: standard]' -r -f -a "standard\t''
aws\t''
adaptive\t''
legacy\t''
google\t''
fixed\t''
linear\t''
exponential\t''
decorrelated\t''"
complete -c retryx -n '__retryx_in none plan explain' -l service -d 'Apply the defaults that AWS documents for a service' -r -f -a "dynamodb\t''"
complete -c retryx -n '__retryx_in none plan explain' -s n -l max-attempts -d 'Most runs of the command, the first included; \'unlimited\' for no limit' -r -f
complete -c retryx -n '__retryx_in none plan explain' -l delays -d 'Spell the delays out, as in 1s,5s,30s; the last repeats' -r -f
complete -c retryx -n '__retryx_in none plan explain' -l base-delay -d 'The delay that the formula starts from [default: 50ms in standard and adaptive mode, else 1s]' -r -f
complete -c retryx -n '__retryx_in none plan explain' -l throttle-base-delay -d 'The same after a failure that was throttling [default: 1s]' -r -f
complete -c retryx -n '__retryx_in none plan explain' -l factor -d 'What each delay grows by, in place of the 2 of the formulas; at least 1' -r -f
complete -c retryx -n '__retryx_in none plan explain' -l max-backoff -d 'The longest delay [default: that of the mode]' -r -f
complete -c retryx -n '__retryx_in none plan explain' -l min-delay -d 'The shortest delay, jitter included [default: 0]' -r -f
complete -c retryx -n '__retryx_in none plan explain' -l jitter -d 'How a delay d is spread [default: that of the mode]' -r -f -a "full\t''
equal\t''
fraction\t''
none\t''"
complete -c retryx -n '__retryx_in none plan explain' -l stagger -d 'Wait a random part of this before the first attempt' -r -f
complete -c retryx -n '__retryx_in none plan explain' -l seed -d 'Draw the same random numbers each time' -r -f
complete -c retryx -n '__retryx_in none plan explain' -l retry-on -d 'Failures to retry; given, the list is the whole list' -r -f
complete -c retryx -n '__retryx_in none plan explain' -l throttle-on -d 'Failures that ask for rest: retried with the long base delay' -r -f
complete -c retryx -n '__retryx_in none plan explain' -l fail-on -d 'Failures never to retry; beats --throttle-on and --retry-on' -r -f
complete -c retryx -n '__retryx_in none plan explain' -l succeed-on -d 'Outcomes that are success; retryx exits 0' -r -f
complete -c retryx -n '__retryx_in none plan explain' -l preset -d 'What is known of the program\'s failures: auto, none, or a program\'s name [default: auto]' -r -f
complete -c retryx -n '__retryx_in none plan explain' -l retry-after-match -d 'Wait as long as the output asks for, as in \'stderr:/retry in (\\d+)s/\'' -r -f
complete -c retryx -n '__retryx_in none plan explain' -l max-retry-after -d 'The longest wait that a server or the output may ask for [default: the longest delay, at least 60s]' -r -f
complete -c retryx -n '__retryx_in none plan explain' -l quota-capacity -d 'Tokens that pay for retries [default: 500 in the modes that have a quota]' -r -f
complete -c retryx -n '__retryx_in none plan explain' -l quota-cost -d 'Tokens a retry costs: N, or transient=N,throttling=N' -r -f
complete -c retryx -n '__retryx_in none plan explain' -l quota-refill -d 'Tokens that come back each second [default: 0]' -r -f
complete -c retryx -n '__retryx_in none plan explain' -l deadline -d 'Start no attempt after this [default: 300s in google mode, else none]' -r -f
complete -c retryx -n '__retryx_in none plan explain' -l timeout -d 'End an attempt that takes longer; it is retried' -r -f
complete -c retryx -n '__retryx_in none plan explain' -l idle-timeout -d 'End an attempt that writes nothing for so long; it is retried' -r -f
complete -c retryx -n '__retryx_in none plan explain' -l total-timeout -d 'End everything after this, a running attempt included' -r -f
complete -c retryx -n '__retryx_in none plan explain' -s k -l kill-after -d 'How long after the --kill-signal KILL follows [default: 10s]' -r -f
complete -c retryx -n '__retryx_in none plan explain' -l kill-signal -d 'What a limit sends first, by name or number [default: TERM]' -r -f
complete -c retryx -n '__retryx_in none plan explain' -l stdin -d 'What attempts read [default: auto]' -r -f -a "auto\t''
replay\t''
inherit\t''
null\t''"
complete -c retryx -n '__retryx_in none plan explain' -l stdout -d 'Whose output is written [default: each]' -r -f -a "each\t''
final\t''
success\t''"
complete -c retryx -n '__retryx_in none plan explain' -l stderr -d 'The same for standard error [default: each]' -r -f -a "each\t''
final\t''
success\t''"
complete -c retryx -n '__retryx_in none plan explain' -l exit-code-on-failure -d 'Exit with this when the run fails, whatever the command returned' -r -f
complete -c retryx -n '__retryx_in none plan explain' -l events -d 'Append each step as a line of JSON to a file, or write it to a descriptor' -r -F
complete -c retryx -n '__retryx_in none plan explain' -l retry-429 -d 'Retry HTTP status 429 in google mode too'
complete -c retryx -n '__retryx_in none plan explain' -l watch -d 'Let --preset auto read the program\'s messages on a terminal too'
complete -c retryx -n '__retryx_in none plan explain' -l sole-retrier -d 'Switch the program\'s own retries off, so that they do not multiply'
complete -c retryx -n '__retryx_in none plan explain' -l no-quota -d 'Retry without a quota'
complete -c retryx -n '__retryx_in none plan explain' -l long-poll -d 'Wait also where the quota refuses the retry'
complete -c retryx -n '__retryx_in none plan explain' -l shell -d 'The command is one string for the shell'
complete -c retryx -n '__retryx_in none plan explain' -l own-group -d 'Give each attempt a process group of its own'
complete -c retryx -n '__retryx_in none plan explain' -l log-arguments -d 'Let --events hold the command\'s arguments, which may be secret'
complete -c retryx -n '__retryx_in none plan explain' -s q -l quiet -d 'Say only what retryx itself could not do'
complete -c retryx -n '__retryx_in none plan explain' -s v -l verbose -d 'Say how each delay came about; twice: everything'
complete -c retryx -n '__retryx_in none plan explain' -s h -l help -d 'Print help; -h prints less of it'
complete -c retryx -n '__retryx_in none plan explain' -s V -l version -d 'Print the version'
complete -c retryx -n '__retryx_in plan' -l class -d 'The failures to plan for [default: transient]' -r -f -a "transient\t''
throttling\t''"
complete -c retryx -n '__retryx_in plan' -l format -d 'How to print the plan [default: table]' -r -f -a "table\t''
json\t''
csv\t''"
complete -c retryx -n '__retryx_in plan' -l explain-config -d 'Print each setting with where it came from'
complete -c retryx -n '__retryx_in explain' -l exit -d 'The command exited with this code' -r -f
complete -c retryx -n '__retryx_in explain' -l signal -d 'The command was killed by this signal' -r -f
complete -c retryx -n '__retryx_in explain' -l program -d 'The program that ran' -r -f
complete -c retryx -n '__retryx_in explain' -l stdout-text -d 'What it wrote to standard output' -r -f
complete -c retryx -n '__retryx_in explain' -l stderr-text -d 'What it wrote to standard error' -r -f
complete -c retryx -n '__retryx_in explain' -l status -d 'A server answered with this status' -r -f
complete -c retryx -n '__retryx_in explain' -l header -d 'A header of the answer, as in \'Retry-After: 5\'; can be repeated' -r -f
complete -c retryx -n '__retryx_in explain' -l body -d 'The body of the answer' -r -f
complete -c retryx -n '__retryx_in explain' -l format -d 'How to print it [default: text]' -r -f -a "text\t''
json\t''"
complete -c retryx -n '__retryx_in explain' -l timed-out -d 'A time limit ended the attempt'
complete -c retryx -n '__retryx_in none' -x -a plan -d 'Show the delays that a policy gives, without running anything'
complete -c retryx -n '__retryx_in none' -x -a explain -d 'Say what an outcome is taken for, and which rule says so'
complete -c retryx -n 'not __retryx_in explain' -x -a '(__fish_complete_subcommand -- --base-delay --body --class --deadline --delays --events --exit --exit-code-on-failure --factor --fail-on --format --header --idle-timeout --jitter --kill-after --kill-signal --max-attempts --max-backoff --max-retry-after --min-delay --mode --preset --program --quota-capacity --quota-cost --quota-refill --retry-after-match --retry-on --seed --service --signal --stagger --status --stderr --stderr-text --stdin --stdout --stdout-text --succeed-on --throttle-base-delay --throttle-on --timeout --total-timeout -k -n)'
