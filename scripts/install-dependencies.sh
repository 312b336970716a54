#!/bin/sh
# Installs what tagine needs on Debian 12 or newer and on Ubuntu, and only what is missing.
#
#   scripts/install-dependencies.sh          to build and run
#   scripts/install-dependencies.sh --test   also what ./test.sh uses: clang, sanitizers, a locale, both MPIs,
#                                            what makes hosts of their own (iproute2), and Slurm where that
#                                            starts no services
#
# Uses sudo when not root, asks nothing, and does nothing at all when everything is there.
set -eu

build='build-essential cmake ninja-build pkg-config libdnnl-dev libjpeg-dev libspng-dev
    libwebp-dev libheif-dev libyaml-dev libjansson-dev zlib1g-dev libcmocka-dev'
test='clang libomp-dev locales libopenmpi-dev openmpi-bin libmpich-dev mpich iproute2'
# Tests start Slurm's daemons themselves. Where systemd runs, the packages would start and enable services of
# the machine, which only its owner may want; without it they start none.
services='slurm-wlm munge'

say() { printf '%s\n' "$*" >&2; }

installed() {
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

# libjpeg-dev, pkg-config and others are provided by packages of other names in some releases.
present() {
    case $1 in
    build-essential) command -v gcc >/dev/null && installed libc6-dev && command -v make >/dev/null ;;
    pkg-config) command -v pkg-config >/dev/null ;;
    libjpeg-dev) installed libjpeg62-turbo-dev || installed libjpeg-turbo8-dev || installed libjpeg-dev ;;
    clang) command -v clang >/dev/null && [ -n "$(clang_runtime)" ] ;;
    *) installed "$1" ;;
    esac
}

# The sanitizer runtime of clang lies in libclang-common before release 14 and apart since.
clang_runtime() {
    file=$(clang -print-file-name=libclang_rt.fuzzer-"$(uname -m)".a 2>/dev/null) || return 0
    [ -f "$file" ] && echo "$file" && return 0
    resource=$(clang -print-resource-dir 2>/dev/null) || return 0
    find "$resource/lib" -name 'libclang_rt.fuzzer*.a' 2>/dev/null | head -n 1
}

clang_runtime_package() {
    version=$(clang -dumpversion | cut -d. -f1)
    echo "libclang-rt-$version-dev"
}

as_root() {
    if [ "$(id -u)" = 0 ]; then
        env DEBIAN_FRONTEND=noninteractive "$@"
    elif command -v sudo >/dev/null; then
        sudo env DEBIAN_FRONTEND=noninteractive "$@"
    else
        say "install-dependencies: need to run '$*' as root, and there is no sudo."
        exit 4
    fi
}

apt_updated=no
apt_install() {
    if [ $apt_updated = no ]; then
        as_root apt-get update -q >&2
        apt_updated=yes
    fi
    as_root apt-get install -q -y --no-install-recommends "$@" >&2
}

if ! command -v apt-get >/dev/null; then
    say "install-dependencies: no apt-get here; install by other means: $build" $test
    exit 4
fi
wanted=$build
[ "${1:-}" = --test ] && wanted="$build $test"
[ "${1:-}" = --test ] && [ ! -d /run/systemd/system ] && wanted="$wanted $services"
missing=
for package in $wanted; do
    present "$package" || missing="$missing $package"
done
if [ -n "$missing" ]; then
    say "installing:$missing"
    # shellcheck disable=SC2086  # a list of words
    apt_install $missing
fi
if [ "${1:-}" = --test ] && [ -z "$(clang_runtime)" ]; then
    apt_install "$(clang_runtime_package)"
fi
if [ "${1:-}" = --test ] && ! locale -a 2>/dev/null | grep -qi '^de_DE\.utf-\?8$'; then
    say "making the locale de_DE.UTF-8"
    as_root localedef -i de_DE -f UTF-8 de_DE.UTF-8
fi
