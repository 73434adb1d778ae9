# Sourced: every date in a package is that of the last commit. An archive without a history names its own date.
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2> /dev/null || stat -c %Y Cargo.lock)}
export LC_ALL=C TZ=UTC
umask 022
