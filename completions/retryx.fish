# Completion of retryx for fish.
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
            case --base-delay --body --cacert --cert --checksum --class --connect-timeout --connect-to --continue-at --cookie --data --data-binary --data-raw --data-urlencode --deadline --delays --dump-header --events --exit --exit-code-on-failure --factor --fail-on --form --format --header --idempotency-key --idle-timeout --jitter --json --key --kill-after --kill-signal --max-attempts --max-backoff --max-redirs --max-retry-after --max-time --min-delay --mode --noproxy --output --output-dir --preset --program --proto --proto-redir --proxy --quota-capacity --quota-cost --quota-refill --range --referer --request --resolve --retry-after-match --retry-on --scope --scope-ttl --seed --service --signal --stagger --state-dir --status --stderr --stderr-text --stdin --stdout --stdout-text --store --succeed-on --throttle-base-delay --throttle-on --timeout --tokens --total-timeout --unix-socket --upload-file --url --user --user-agent --variable --write-out -A -C -D -E -F -H -T -X -b -d -e -k -m -n -o -r -u -w -x
                set -e words[1]
            case '-*'
            case http plan explain quota
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

complete -c retryx -n '__retryx_in none http plan explain' -l mode -d 'The policy: delay formula, attempts and limits [default: standard]' -r -f -a "standard\t''
aws\t''
adaptive\t''
legacy\t''
google\t''
fixed\t''
linear\t''
exponential\t''
decorrelated\t''"
complete -c retryx -n '__retryx_in none http plan explain' -l service -d 'Apply the defaults that AWS documents for a service' -r -f -a "dynamodb\t''"
complete -c retryx -n '__retryx_in none http plan explain' -s n -l max-attempts -d 'Most runs of the command, the first included; \'unlimited\' for no limit' -r -f
complete -c retryx -n '__retryx_in none http plan explain' -l delays -d 'Spell the delays out, as in 1s,5s,30s; the last repeats' -r -f
complete -c retryx -n '__retryx_in none http plan explain' -l base-delay -d 'The delay that the formula starts from [default: 50ms in standard and adaptive mode, else 1s]' -r -f
complete -c retryx -n '__retryx_in none http plan explain' -l throttle-base-delay -d 'The same after a failure that was throttling [default: 1s]' -r -f
complete -c retryx -n '__retryx_in none http plan explain' -l factor -d 'What each delay grows by, in place of the 2 of the formulas; at least 1' -r -f
complete -c retryx -n '__retryx_in none http plan explain' -l max-backoff -d 'The longest delay [default: that of the mode]' -r -f
complete -c retryx -n '__retryx_in none http plan explain' -l min-delay -d 'The shortest delay, jitter included [default: 0]' -r -f
complete -c retryx -n '__retryx_in none http plan explain' -l jitter -d 'How a delay d is spread [default: that of the mode]' -r -f -a "full\t''
equal\t''
fraction\t''
none\t''"
complete -c retryx -n '__retryx_in none http plan explain' -l stagger -d 'Wait a random part of this before the first attempt' -r -f
complete -c retryx -n '__retryx_in none http plan explain' -l seed -d 'Draw the same random numbers each time' -r -f
complete -c retryx -n '__retryx_in none http plan explain' -l retry-on -d 'Failures to retry; given, the list is the whole list' -r -f
complete -c retryx -n '__retryx_in none http plan explain' -l throttle-on -d 'Failures that ask for rest: retried with the long base delay' -r -f
complete -c retryx -n '__retryx_in none http plan explain' -l fail-on -d 'Failures never to retry; beats --throttle-on and --retry-on' -r -f
complete -c retryx -n '__retryx_in none http plan explain' -l succeed-on -d 'Outcomes that are success; retryx exits 0' -r -f
complete -c retryx -n '__retryx_in none http plan explain' -l preset -d 'What is known of the program\'s failures: auto, none, or a program\'s name [default: auto]' -r -f
complete -c retryx -n '__retryx_in none http plan explain' -l retry-after-match -d 'Wait as long as the output asks for, as in \'stderr:/retry in (\\d+)s/\'' -r -f
complete -c retryx -n '__retryx_in none http plan explain' -l max-retry-after -d 'The longest wait that a server or the output may ask for [default: the longest delay, at least 60s]' -r -f
complete -c retryx -n '__retryx_in none http plan explain' -l quota-capacity -d 'Tokens that pay for retries [default: 500 in the modes that have a quota]' -r -f
complete -c retryx -n '__retryx_in none http plan explain' -l quota-cost -d 'Tokens a retry costs: N, or transient=N,throttling=N' -r -f
complete -c retryx -n '__retryx_in none http plan explain' -l quota-refill -d 'Tokens that come back each second [default: 0; of a scope, what fills it in --scope-ttl]' -r -f
complete -c retryx -n '__retryx_in none http plan explain' -l scope -d 'Share quota and rate limiter with every run of that scope' -r -f
complete -c retryx -n '__retryx_in none http plan explain' -l scope-ttl -d 'A scope not used for that long starts full again [default: 1h]' -r -f
complete -c retryx -n '__retryx_in none http plan explain' -l store -d 'Where scopes are kept: file, or redis://HOST for many machines [default: file]' -r -f
complete -c retryx -n '__retryx_in none http plan explain' -l state-dir -d 'The folder of the scopes\' files [default: $XDG_STATE_HOME/retryx, or ~/.local/state/retryx]' -r -f -a "(__fish_complete_directories)"
complete -c retryx -n '__retryx_in none http plan explain' -l deadline -d 'Start no attempt after this [default: 300s in google mode, else none]' -r -f
complete -c retryx -n '__retryx_in none http plan explain' -l timeout -d 'End an attempt that takes longer; it is retried' -r -f
complete -c retryx -n '__retryx_in none http plan explain' -l idle-timeout -d 'End an attempt that writes nothing for so long; it is retried' -r -f
complete -c retryx -n '__retryx_in none http plan explain' -l total-timeout -d 'End everything after this, a running attempt included' -r -f
complete -c retryx -n '__retryx_in none http plan explain' -s k -l kill-after -d 'How long after the --kill-signal KILL follows [default: 10s]' -r -f
complete -c retryx -n '__retryx_in none http plan explain' -l kill-signal -d 'What a limit sends first, by name or number [default: TERM]' -r -f
complete -c retryx -n '__retryx_in none http plan explain' -l stdin -d 'What attempts read [default: auto]' -r -f -a "auto\t''
replay\t''
inherit\t''
null\t''"
complete -c retryx -n '__retryx_in none http plan explain' -l stdout -d 'Whose output is written [default: each]' -r -f -a "each\t''
final\t''
success\t''"
complete -c retryx -n '__retryx_in none http plan explain' -l stderr -d 'The same for standard error [default: each]' -r -f -a "each\t''
final\t''
success\t''"
complete -c retryx -n '__retryx_in none http plan explain' -l exit-code-on-failure -d 'Exit with this when the run fails, whatever the command returned' -r -f
complete -c retryx -n '__retryx_in none http plan explain' -l events -d 'Append each step as a line of JSON to a file, or write it to a descriptor' -r -F
complete -c retryx -n '__retryx_in none http plan explain' -l retry-429 -d 'Retry HTTP status 429 in google mode too'
complete -c retryx -n '__retryx_in none http plan explain' -l watch -d 'Let --preset auto read the program\'s messages on a terminal too'
complete -c retryx -n '__retryx_in none http plan explain' -l sole-retrier -d 'Switch the program\'s own retries off, so that they do not multiply'
complete -c retryx -n '__retryx_in none http plan explain' -l no-quota -d 'Retry without a quota'
complete -c retryx -n '__retryx_in none http plan explain' -l long-poll -d 'Wait also where the quota refuses the retry'
complete -c retryx -n '__retryx_in none http plan explain' -l shell -d 'The command is one string for the shell'
complete -c retryx -n '__retryx_in none http plan explain' -l own-group -d 'Give each attempt a process group of its own'
complete -c retryx -n '__retryx_in none http plan explain' -l log-arguments -d 'Let --events hold the command\'s arguments, which may be secret'
complete -c retryx -n '__retryx_in none http plan explain' -s q -l quiet -d 'Say only what retryx itself could not do'
complete -c retryx -n '__retryx_in none http plan explain' -s v -l verbose -d 'Say how each delay came about; twice: everything'
complete -c retryx -n '__retryx_in none http plan explain' -s h -l help -d 'Print help; -h prints less of it'
complete -c retryx -n '__retryx_in none http plan explain' -s V -l version -d 'Print the version'
complete -c retryx -n '__retryx_in http' -s X -l request -d 'The method [default: GET; POST with data, PUT with -T, HEAD with -I]' -r -f
complete -c retryx -n '__retryx_in http' -s H -l header -d 'A header, as \'Name: value\'; \'Name:\' takes a default one away, \'Name;\' sends it empty; @FILE reads lines' -r -f
complete -c retryx -n '__retryx_in http' -s d -l data -d 'Send this; @FILE sends what the file holds without its line ends and NULs, @- standard input' -r -f
complete -c retryx -n '__retryx_in http' -l data-raw -d 'The same, and @ means nothing' -r -f
complete -c retryx -n '__retryx_in http' -l data-binary -d 'The same, and @FILE is sent as it is' -r -f
complete -c retryx -n '__retryx_in http' -l data-urlencode -d 'The same, percent-encoded: content, =content, name=content, @FILE or name@FILE' -r -f
complete -c retryx -n '__retryx_in http' -l json -d 'Send this as JSON, and accept JSON; @FILE as in --data-binary' -r -f
complete -c retryx -n '__retryx_in http' -s F -l form -d 'A part of a form (multipart): name=text, name=@FILE, name=<FILE' -r -f
complete -c retryx -n '__retryx_in http' -s T -l upload-file -d 'Send the file with PUT; - is standard input' -r -f
complete -c retryx -n '__retryx_in http' -s u -l user -d 'Basic authentication' -r -f
complete -c retryx -n '__retryx_in http' -s A -l user-agent -d 'The User-Agent' -r -f
complete -c retryx -n '__retryx_in http' -s e -l referer -d 'The Referer, also along redirects to the same origin' -r -f
complete -c retryx -n '__retryx_in http' -s b -l cookie -d 'Send this as Cookie, as in \'a=1; b=2\'' -r -f
complete -c retryx -n '__retryx_in http' -s r -l range -d 'Only these bytes, as in 0-499; a number alone is where they begin' -r -f
complete -c retryx -n '__retryx_in http' -l max-redirs -d 'The most redirects; -1 for no limit [default: 50]' -r -f
complete -c retryx -n '__retryx_in http' -l url -d 'The URL, in place of the word without an option' -r -f
complete -c retryx -n '__retryx_in http' -l variable -d 'Set a variable for {{NAME}} in options with expand- in front, such as --expand-header' -r -f
complete -c retryx -n '__retryx_in http' -l idempotency-key -d 'Send this as Idempotency-Key in every attempt, and repeat; auto makes one' -r -f
complete -c retryx -n '__retryx_in http' -s o -l output -d 'Write the body to this file, all at once when it is whole' -r -f
complete -c retryx -n '__retryx_in http' -l output-dir -d 'Where -o and -O put it' -r -f
complete -c retryx -n '__retryx_in http' -s D -l dump-header -d 'Write the answer\'s heads to this file; - for standard output' -r -f
complete -c retryx -n '__retryx_in http' -s w -l write-out -d 'Print this afterwards, as in \'%{http_code} %{num_attempts}\\n\'' -r -f
complete -c retryx -n '__retryx_in http' -s C -l continue-at -d 'Go on with a file that is partly there; - goes by its size' -r -f
complete -c retryx -n '__retryx_in http' -l checksum -d 'Take only a body with this checksum' -r -f
complete -c retryx -n '__retryx_in http' -l proto -d 'Ask these schemes only, as in =https; all else, a redirect too, exits 1' -r -f
complete -c retryx -n '__retryx_in http' -l proto-redir -d 'The same for redirects only' -r -f
complete -c retryx -n '__retryx_in http' -l cacert -d 'Trust these certificates in place of the system\'s' -r -f
complete -c retryx -n '__retryx_in http' -s E -l cert -d 'The client\'s certificate (PEM), with its key unless --key is given' -r -f
complete -c retryx -n '__retryx_in http' -l key -d 'The key of --cert (PEM)' -r -f
complete -c retryx -n '__retryx_in http' -s x -l proxy -d 'Go over this HTTP proxy, not what http_proxy, https_proxy or all_proxy say' -r -f
complete -c retryx -n '__retryx_in http' -l noproxy -d 'Hosts to be reached without it, as in NO_PROXY' -r -f
complete -c retryx -n '__retryx_in http' -l resolve -d 'The address of a host and port' -r -f
complete -c retryx -n '__retryx_in http' -l connect-to -d 'Go to another host and port in place of one' -r -f
complete -c retryx -n '__retryx_in http' -l unix-socket -d 'Speak through this socket' -r -f
complete -c retryx -n '__retryx_in http' -l connect-timeout -d 'The limit on making a connection' -r -f
complete -c retryx -n '__retryx_in http' -s m -l max-time -d 'The same as --timeout: the limit on an attempt, redirects included' -r -f
complete -c retryx -n '__retryx_in http' -s G -l get -d 'Put the data into the URL\'s query and use GET'
complete -c retryx -n '__retryx_in http' -l basic -d 'Accepted: -u is Basic authentication anyway'
complete -c retryx -n '__retryx_in http' -l compressed -d 'Ask for gzip or deflate, and take it off'
complete -c retryx -n '__retryx_in http' -s L -l location -d 'Follow redirects'
complete -c retryx -n '__retryx_in http' -l location-trusted -d 'Follow redirects, and send credentials to all of them'
complete -c retryx -n '__retryx_in http' -s g -l globoff -d 'Accepted: braces and brackets in the URL mean themselves anyway'
complete -c retryx -n '__retryx_in http' -l idempotent -d 'Repeat a POST or PATCH too, as doing it twice does no harm'
complete -c retryx -n '__retryx_in http' -s O -l remote-name -d 'Write it to a file named as the URL\'s last part'
complete -c retryx -n '__retryx_in http' -l create-dirs -d 'Make the folders of -o, --output-dir and -D where they are missing'
complete -c retryx -n '__retryx_in http' -s i -l include -d 'Write the heads before the body'
complete -c retryx -n '__retryx_in http' -s I -l head -d 'Ask for the head only (HEAD), and write it'
complete -c retryx -n '__retryx_in http' -s s -l silent -d 'No progress; retryx\'s own messages stay, unless --quiet'
complete -c retryx -n '__retryx_in http' -l no-progress-meter -d 'The same'
complete -c retryx -n '__retryx_in http' -s # -l progress-bar -d 'Accepted: how far a transfer is shows on a terminal anyway'
complete -c retryx -n '__retryx_in http' -s S -l show-error -d 'With -s, say errors all the same'
complete -c retryx -n '__retryx_in http' -s f -l fail -d 'Accepted: a status that is a failure exits 22 with or without it'
complete -c retryx -n '__retryx_in http' -l fail-early -d 'Accepted: one request is made a run'
complete -c retryx -n '__retryx_in http' -l fail-with-body -d 'Write the body of a failure too'
complete -c retryx -n '__retryx_in http' -s N -l no-buffer -d 'Pass the body on as it comes, also where it turns out to be cut'
complete -c retryx -n '__retryx_in http' -s k -l insecure -d 'Trust any certificate'
complete -c retryx -n '__retryx_in http' -l tlsv1.2 -d 'Accepted: TLS 1.2 or later is spoken anyway'
complete -c retryx -n '__retryx_in http' -l http1.1 -d 'Accepted: HTTP/1.1 is spoken anyway'
complete -c retryx -n '__retryx_in http' -s 4 -l ipv4 -d 'IPv4 addresses only'
complete -c retryx -n '__retryx_in http' -s 6 -l ipv6 -d 'IPv6 addresses only'
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
complete -c retryx -n '__retryx_in quota quota-verb' -l quota-capacity -d 'Tokens that pay for retries [default: 500 in the modes that have a quota]' -r -f
complete -c retryx -n '__retryx_in quota quota-verb' -l quota-refill -d 'Tokens that come back each second [default: 0; of a scope, what fills it in --scope-ttl]' -r -f
complete -c retryx -n '__retryx_in quota quota-verb' -l scope-ttl -d 'A scope not used for that long starts full again [default: 1h]' -r -f
complete -c retryx -n '__retryx_in quota quota-verb' -l store -d 'Where scopes are kept: file, or redis://HOST for many machines [default: file]' -r -f
complete -c retryx -n '__retryx_in quota quota-verb' -l state-dir -d 'The folder of the scopes\' files [default: $XDG_STATE_HOME/retryx, or ~/.local/state/retryx]' -r -f -a "(__fish_complete_directories)"
complete -c retryx -n '__retryx_in quota quota-verb' -l tokens -d 'The tokens that set gives a scope' -r -f
complete -c retryx -n '__retryx_in quota quota-verb' -l format -d 'How to print scopes [default: text]' -r -f -a "text\t''
json\t''"
complete -c retryx -n '__retryx_in quota quota-verb' -s q -l quiet -d 'Say only what retryx itself could not do'
complete -c retryx -n '__retryx_in quota quota-verb' -s h -l help -d 'Print help; -h prints less of it'
complete -c retryx -n '__retryx_in quota quota-verb' -s V -l version -d 'Print the version'
complete -c retryx -n '__retryx_in none' -x -a http -d 'Make an HTTP request, and repeat it where that is safe'
complete -c retryx -n '__retryx_in none' -x -a plan -d 'Show the delays that a policy gives, without running anything'
complete -c retryx -n '__retryx_in none' -x -a explain -d 'Say what an outcome is taken for, and which rule says so'
complete -c retryx -n '__retryx_in none' -x -a quota -d 'Show and mend the scopes that runs share, their quotas and rate limiters'
complete -c retryx -n '__retryx_in quota' -x -a 'list show reset set'
complete -c retryx -n '__retryx_in quota-verb' -x
complete -c retryx -n 'not __retryx_in explain quota quota-verb' -x -a '(__fish_complete_subcommand -- --base-delay --body --cacert --cert --checksum --class --connect-timeout --connect-to --continue-at --cookie --data --data-binary --data-raw --data-urlencode --deadline --delays --dump-header --events --exit --exit-code-on-failure --factor --fail-on --form --format --header --idempotency-key --idle-timeout --jitter --json --key --kill-after --kill-signal --max-attempts --max-backoff --max-redirs --max-retry-after --max-time --min-delay --mode --noproxy --output --output-dir --preset --program --proto --proto-redir --proxy --quota-capacity --quota-cost --quota-refill --range --referer --request --resolve --retry-after-match --retry-on --scope --scope-ttl --seed --service --signal --stagger --state-dir --status --stderr --stderr-text --stdin --stdout --stdout-text --store --succeed-on --throttle-base-delay --throttle-on --timeout --tokens --total-timeout --unix-socket --upload-file --url --user --user-agent --variable --write-out -A -C -D -E -F -H -T -X -b -d -e -k -m -n -o -r -u -w -x)'
