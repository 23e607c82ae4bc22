# Runs a program with a shell beside it in its group.
"$@"
exit $?
