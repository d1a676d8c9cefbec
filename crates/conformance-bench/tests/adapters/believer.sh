# The smallest loop: run the agent for each open task, tick the task if the output ends with DONE, commit everything.
left=$CONFORMANCE_ITERATIONS
while grep -q '^- \[ \]' TASKS.md && [ "$left" -gt 0 ]; do
    left=$((left - 1))
    if "$CONFORMANCE_AGENT" | tail -n 1 | grep -qx DONE; then
        sed -i '0,/^- \[ \]/s//- [x]/' TASKS.md
    fi
    git add -A
    git commit -qm "Iteration" || true
done
! grep -q '^- \[ \]' TASKS.md
