#!/bin/sh
# Proves that tagine sets itself up on a bare machine: makes a minimal Debian root that has nothing
# but a shell, apt and git, copies the committed tree into it, and runs the commands there.
#
#   scripts/prove-in-fresh-root.sh ROOT [COMMAND...]      default commands: ./test.sh, then ./demo.sh
#
# Needs root and debootstrap. apt inside the root uses this machine's sources and settings. An
# existing ROOT is used again (the tree in it is replaced), which shows that a second run reuses
# what is there.
set -eu
cd "$(dirname "$0")/.."
[ $# -ge 1 ] || { sed -n '2,10s/^# \{0,1\}//p' "$0" >&2; exit 2; }
root=$1
shift
suite=bookworm

mirror() {
    find /etc/apt/sources.list /etc/apt/sources.list.d -type f \( -name '*.list' -o -name '*.sources' \) \
        -exec cat {} + 2>/dev/null |
        sed -n 's/^URIs: *\([^ ]*\).*/\1/p; s/^deb \(\[[^]]*\] \)\{0,1\}\([^ ]*\).*/\2/p' | head -n 1
}

in_root() {
    chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM="${TERM:-dumb}" LANG=C.UTF-8 "$@"
}

copy_apt_settings() {
    rm -rf "$root/etc/apt/sources.list" "$root/etc/apt/sources.list.d" "$root/etc/apt/apt.conf.d"
    for item in sources.list sources.list.d apt.conf.d apt.conf auth.conf.d keyrings trusted.gpg.d; do
        [ -e "/etc/apt/$item" ] && cp -a "/etc/apt/$item" "$root/etc/apt/"
    done
    mkdir -p "$root/etc/ssl/certs" "$root/usr/share/keyrings"
    cp -an /usr/share/keyrings/. "$root/usr/share/keyrings/"
    cp -aL /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/" 2>/dev/null || true
    cp -L /etc/resolv.conf /etc/hosts "$root/etc/" 2>/dev/null || true
}

if [ ! -x "$root/bin/sh" ]; then
    debootstrap --variant=minbase --include=git,ca-certificates "$suite" "$root" "$(mirror)"
fi
copy_apt_settings
mounted() { mountpoint -q "$root/$1"; }
mounted proc || mount -t proc proc "$root/proc"
mounted dev || mount --bind /dev "$root/dev"
trap 'umount "$root/dev" "$root/proc" 2>/dev/null || true' EXIT

mkdir -p "$root/root/tagine"
find "$root/root/tagine" -mindepth 1 -maxdepth 1 ! -name build ! -name runs -exec rm -rf {} +
git archive HEAD | tar -x -C "$root/root/tagine"

run() {
    echo "== in the fresh root: $*"
    in_root sh -c 'cd /root/tagine && exec "$@"' sh "$@"
}
if [ $# -gt 0 ]; then
    run "$@"
else
    run ./test.sh
    run ./demo.sh
fi
