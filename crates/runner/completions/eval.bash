
# `runner eval …` completes like `runner-eval …` if the script of `runner eval completions bash` is installed.
_runner_with_eval() {
    if [[ ${COMP_CWORD} -gt 1 && ${COMP_WORDS[1]} == eval ]]; then
        if ! declare -F _runner-eval >/dev/null && declare -F _completion_loader >/dev/null; then
            _completion_loader runner-eval
        fi
        if declare -F _runner-eval >/dev/null; then
            COMP_WORDS=(runner-eval "${COMP_WORDS[@]:2}")
            COMP_CWORD=$((COMP_CWORD - 1))
            _runner-eval runner-eval "$2" "$3"
            return
        fi
    fi
    _runner "$@"
}
complete -F _runner_with_eval -o bashdefault -o default runner
