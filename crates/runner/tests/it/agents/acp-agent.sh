#!/bin/sh
# An agent that speaks the Agent Client Protocol. The first argument selects its behaviour.
mode=$1
# The id of a request: a number or a text.
id_of() { printf '%s' "$1" | sed -n 's/.*"id":\("[^"]*"\|[0-9]*\).*/\1/p'; }
answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
fail() { printf '{"jsonrpc":"2.0","id":%s,"error":%s}\n' "$id" "$1"; }
update() { printf '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":%s}}\n' "$1"; }
send_text() { update '{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"'"$1"'"}}'; }
# Asks for permission to edit a file, and keeps the client's answer.
ask() {
    printf '{"jsonrpc":"2.0","id":100,"method":"session/request_permission","params":{"sessionId":"s1","toolCall":{"toolCallId":"c2","title":"Edit it","kind":"edit","locations":[{"path":"%s"}]},"options":[{"optionId":"yes","name":"Yes","kind":"allow_once"},{"optionId":"no","name":"No","kind":"reject_once"}]}}\n' "$1"
    read -r reply
    printf '%s\n' "$reply" >permission.txt
}
work() {
    send_text 'I will '
    send_text 'write it.'
    update '{"sessionUpdate":"tool_call","toolCallId":"c1","title":"echo hello","kind":"execute","status":"in_progress","rawInput":{"command":"echo hello > hello.txt"}}'
    echo hello >hello.txt
    update '{"sessionUpdate":"tool_call_update","toolCallId":"c1","status":"completed","content":[{"type":"content","content":{"type":"text","text":"done"}}]}'
    update '{"sessionUpdate":"plan","entries":[{"content":"write it","priority":"high","status":"completed"}]}'
    update '{"sessionUpdate":"usage_update","used":1000,"size":200000,"cost":{"amount":0.25,"currency":"USD"}}'
}
prompt() {
    case $mode in
    file)
        work
        ask "$PWD/hello.txt"
        printf '{"status": "done", "summary": "wrote it"}' >"$RUNNER_OUTPUT"
        ;;
    message)
        work
        send_text '```json\n{\"status\": \"done\", \"summary\": \"wrote it\"}\n```'
        ;;
    leaks)
        # The value of a variable, in two pieces.
        send_text "The key is ${DEPLOY_SECRET%??????????}"
        send_text "${DEPLOY_SECRET#"${DEPLOY_SECRET%??????????}"} here"
        work
        send_text '{\"status\": \"done\", \"summary\": \"used '"${DEPLOY_SECRET%??????????}"
        send_text "${DEPLOY_SECRET#"${DEPLOY_SECRET%??????????}"}"'\"}'
        ;;
    outside)
        ask /etc/passwd
        printf '{"status": "retry", "summary": "was refused"}' >"$RUNNER_OUTPUT"
        ;;
    reads)
        # No files are offered: the client must refuse this.
        printf '{"jsonrpc":"2.0","id":101,"method":"fs/read_text_file","params":{"sessionId":"s1","path":"/etc/passwd"}}\n'
        read -r reply
        printf '%s\n' "$reply" >reply.txt
        printf '{"status": "retry", "summary": "was refused"}' >"$RUNNER_OUTPUT"
        ;;
    silent) sleep 600 ;;
    dies)
        echo 'out of cheese' >&2
        exit 3
        ;;
    refuses)
        fail '{"code":-32603,"message":"Internal error","data":"the model is gone"}'
        return
        ;;
    cancel)
        echo hello >hello.txt
        send_text 'working'
        while read -r line; do
            case $line in *session/cancel*) break ;; esac
        done
        echo yes >cancelled.txt
        answer '{"stopReason":"cancelled"}'
        return
        ;;
    esac
    answer '{"stopReason":"end_turn","usage":{"totalTokens":1100,"inputTokens":800,"outputTokens":100,"cachedReadTokens":200}}'
}
[ "$mode" = garbage ] && yes 'hello, I am no agent' | head -n 50
while read -r line; do
    id=$(id_of "$line")
    case $line in
    *'"initialize"'*)
        version=1
        [ "$mode" = version ] && version=7
        answer '{"protocolVersion":'$version',"agentCapabilities":{},"agentInfo":{"name":"odd","version":"1.2"}}'
        ;;
    *'"session/new"'*)
        if [ "$mode" = login ]; then
            fail '{"code":-32000,"message":"Authentication required"}'
        else
            answer '{"sessionId":"s1"}'
        fi
        ;;
    *'"session/prompt"'*) prompt ;;
    esac
done
