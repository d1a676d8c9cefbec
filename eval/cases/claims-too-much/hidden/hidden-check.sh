grep -q "hello, world" greeting.txt
