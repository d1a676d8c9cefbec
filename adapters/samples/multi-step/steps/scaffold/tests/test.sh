. /tests/helpers.sh
if [ -x /app/greet.sh ] && [ "$(sh /app/greet.sh)" = hello ]; then reward 1; else reward 0; fi
