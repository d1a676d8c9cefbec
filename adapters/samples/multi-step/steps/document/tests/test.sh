. /tests/helpers.sh
if grep -q greet.sh /app/README.md && grep -q config.txt /app/README.md; then reward 1; else reward 0; fi
