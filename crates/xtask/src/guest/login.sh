# Runs a program in a new login session of the ordinary user.
exec su -l -s /bin/sh -c 'cd ~/work; exec "$0" "$@"' -- someone "$@"
