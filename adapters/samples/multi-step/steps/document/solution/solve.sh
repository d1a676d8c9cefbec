printf '# Greeting\n\n`greet.sh` greets the name in `config.txt`.\n' > /app/README.md
