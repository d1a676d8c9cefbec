
# `runner eval …` completes like `runner-eval …` if the script of `runner eval completions zsh` is installed.
_runner_with_eval() {
    if (( CURRENT > 2 && $+functions[_runner-eval] )) && [[ ${words[2]} == eval ]]; then
        words=(runner-eval "${(@)words[3,-1]}")
        (( CURRENT-- ))
        _runner-eval
    else
        _runner "$@"
    fi
}
compdef _runner_with_eval runner
