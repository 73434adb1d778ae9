#!/usr/bin/env bash
# The examples of docs/containers.md in real containers: Podman under the name of docker, with Docker's default profile
# of system calls, and a Debian 12 tree as the image. Root only; fetches Debian's packages. Without Podman or
# debootstrap it says that it is skipped.
set -euo pipefail
cd "$(dirname "$0")/.."
for need in podman debootstrap; do
    command -v $need > /dev/null || { echo "skipped: no $need (apt-get install podman debootstrap)"; exit 0; }
done
[ "$(id -u)" = 0 ] || { echo "skipped: only root can make a Debian tree"; exit 0; }
target=$(realpath "${CARGO_TARGET_DIR:-target}")/containers
mkdir -p "$target"
[ -e "$target/debian.tar" ] || {
    debootstrap --variant=minbase bookworm "$target/debian" > "$target/debootstrap.log"
    tar -C "$target/debian" -cf "$target/debian.tar" .
    rm -rf "$target/debian"
}
# Docker's profile is that of docs/examples without our entry, which is the last one.
python3 - docs/examples/seccomp.json "$target/docker.json" << 'END'
import json, sys
profile = json.load(open(sys.argv[1]))
assert "Largesse" in profile["syscalls"].pop()["comment"]
json.dump(profile, open(sys.argv[2], "w"))
END
temporary=$(mktemp -d -p /var/tmp) # Podman's store must not lie on an overlay, as a checkout in a container does
store=(--root "$temporary/store" --runroot "$temporary/run")
trap 'umount -R "$temporary/store/overlay" 2> /dev/null || true; rm -rf "$temporary"' EXIT
podman "${store[@]}" import --quiet "$target/debian.tar" debian:12-slim > /dev/null
# A control group is left to the machine: nested ones are not permitted everywhere.
cat > "$target/docker" << END
#!/usr/bin/env bash
words=()
while [ \$# -gt 0 ]; do
    case \$1 in --memory) shift ;; *) words+=("\$1") ;; esac
    shift
done
set -- "\${words[@]}"
if [ "\$1" = run ]; then
    shift
    case " \$* " in *seccomp=*) ;; *) set -- --security-opt "seccomp=$target/docker.json" "\$@" ;; esac
    set -- run --network none --cgroups=disabled --ulimit nofile=1024:1024 --ulimit nproc=4096:4096 \\
        --cap-drop net_raw "\$@"
fi
exec podman ${store[*]@Q} "\$@"
END
chmod +x "$target/docker"
# crun refuses a machine with both versions of control groups; the newer one is hidden from it.
unshare --mount bash -c 'umount -l /sys/fs/cgroup/unified 2> /dev/null || true
    LARGESSE_DOCKER=$1 exec ci/documents.py docs/containers.md' - "$target/docker"
