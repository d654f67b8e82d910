complete -c retryx -l mode -d 'The policy: delay formula, attempts and limits [default: standard]' -r -f -a "standard\t''
aws\t''
adaptive\t''
legacy\t''
google\t''
fixed\t''
linear\t''
exponential\t''
decorrelated\t''"
complete -c retryx -l service -d 'Apply the defaults that AWS documents for a service' -r -f -a "dynamodb\t''"
complete -c retryx -s n -l max-attempts -d 'Most runs of the command, the first included; \'unlimited\' for no limit' -r -f
complete -c retryx -l delays -d 'Spell the delays out, as in 1s,5s,30s; the last repeats' -r -f
complete -c retryx -l base-delay -d 'The delay that the formula starts from [default: 50ms in standard mode, else 1s]' -r -f
complete -c retryx -l throttle-base-delay -d 'The same after a failure that was throttling [default: 1s]' -r -f
complete -c retryx -l factor -d 'What each delay grows by, in place of the 2 of the formulas; at least 1' -r -f
complete -c retryx -l max-backoff -d 'The longest delay [default: that of the mode]' -r -f
complete -c retryx -l min-delay -d 'The shortest delay, jitter included [default: 0]' -r -f
complete -c retryx -l jitter -d 'How a delay d is spread [default: that of the mode]' -r -f -a "full\t''
equal\t''
fraction\t''
none\t''"
complete -c retryx -l stagger -d 'Wait a random part of this before the first attempt' -r -f
complete -c retryx -l seed -d 'Draw the same random numbers each time' -r -f
complete -c retryx -l retry-on -d 'Failures to retry; given, the list is the whole list' -r -f
complete -c retryx -l throttle-on -d 'Failures that ask for rest: retried with the long base delay' -r -f
complete -c retryx -l fail-on -d 'Failures never to retry; beats --throttle-on and --retry-on' -r -f
complete -c retryx -l succeed-on -d 'Outcomes that are success; retryx exits 0' -r -f
complete -c retryx -l quota-capacity -d 'Tokens that pay for retries [default: 500 in the modes that have a quota]' -r -f
complete -c retryx -l quota-cost -d 'Tokens a retry costs: N, or transient=N,throttling=N' -r -f
complete -c retryx -l quota-refill -d 'Tokens that come back each second [default: 0]' -r -f
complete -c retryx -l deadline -d 'Start no attempt after this [default: 300s in google mode, else none]' -r -f
complete -c retryx -l timeout -d 'End an attempt that takes longer; it is retried' -r -f
complete -c retryx -l total-timeout -d 'End everything after this, a running attempt included' -r -f
complete -c retryx -s k -l kill-after -d 'How long after the --kill-signal KILL follows [default: 10s]' -r -f
complete -c retryx -l kill-signal -d 'What a limit sends first, by name or number [default: TERM]' -r -f
complete -c retryx -l stdin -d 'What attempts read [default: auto]' -r -f -a "auto\t''
replay\t''
inherit\t''
null\t''"
complete -c retryx -l stdout -d 'Whose output is written [default: each]' -r -f -a "each\t''
final\t''
success\t''"
complete -c retryx -l stderr -d 'The same for standard error [default: each]' -r -f -a "each\t''
final\t''
success\t''"
complete -c retryx -l exit-code-on-failure -d 'Exit with this when the run fails, whatever the command returned' -r -f
complete -c retryx -l events -d 'Append each step as a line of JSON to a file, or write it to a descriptor' -r -F
complete -c retryx -l retry-429 -d 'Retry HTTP status 429 in google mode too'
complete -c retryx -l no-quota -d 'Retry without a quota'
complete -c retryx -l long-poll -d 'Wait also where the quota refuses the retry'
complete -c retryx -l shell -d 'The command is one string for the shell'
complete -c retryx -l own-group -d 'Give each attempt a process group of its own'
complete -c retryx -l log-arguments -d 'Let --events hold the command\'s arguments, which may be secret'
complete -c retryx -s q -l quiet -d 'Say only what retryx itself could not do'
complete -c retryx -s v -l verbose -d 'Say how each delay came about; twice: everything'
complete -c retryx -s h -l help -d 'Print help; -h prints less of it'
complete -c retryx -s V -l version -d 'Print the version'
complete -c retryx -x -a '(__fish_complete_subcommand -- --mode --service -n --max-attempts --delays --base-delay --throttle-base-delay --factor --max-backoff --min-delay --jitter --stagger --seed --retry-on --throttle-on --fail-on --succeed-on --quota-capacity --quota-cost --quota-refill --deadline --timeout --total-timeout -k --kill-after --kill-signal --stdin --stdout --stderr --exit-code-on-failure --events --class --format --exit --signal --program --stdout-text --stderr-text --status --header --body --format)'
