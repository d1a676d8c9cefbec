cat > /app/greet.sh <<'S'
#!/bin/sh
name=$(sed -n 's/^name=//p' "$(dirname "$0")/config.txt")
echo "Hello, $name!"
S
chmod +x /app/greet.sh
