
# `runner eval …` completes like `runner-eval …` if the script of `runner eval completions fish` is installed.
complete -c runner -n "__fish_seen_subcommand_from eval" -f -a "(complete -C (string replace -r '^\s*(\S*/)?runner\s+eval' runner-eval -- (commandline -cp)))"
