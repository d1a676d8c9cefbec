. /tests/helpers.sh
cd /app
points=0
[ -e prepared.txt ] && [ "$(sh greet.sh)" = "$EXPECTED_GREETING" ] && grep -q "$EXPECTED_NAME" config.txt && points=0.5
cp config.txt /tmp/config.before
echo name=Bo > config.txt
[ "$(sh greet.sh)" = "$(cat /tests/expected.txt)" ] && [ "$points" = 0.5 ] && points=1
cp /tmp/config.before config.txt
reward "$points"
