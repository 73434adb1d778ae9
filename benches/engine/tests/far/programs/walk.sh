# Becomes the program that the test compiled.
exec "$PROGRAMS/walk" "$@"
