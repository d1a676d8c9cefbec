printf '#!/bin/sh\necho hello\n' > /app/greet.sh
chmod +x /app/greet.sh
