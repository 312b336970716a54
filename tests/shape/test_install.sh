#!/bin/sh
# An installed tree is complete: the program runs from it, and a C program finds libtagine through
# pkg-config, links it shared and static, and runs.
set -eu
if [ -n "${TAGINE_SANITIZE:-}" ]; then
    echo "skipped: a sanitizer build is not installed"
    exit 77
fi
cc=${CC:-cc}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$TAGINE_BINARY_DIR" --prefix "$work/usr" >/dev/null

pc=$(find "$work/usr" -name tagine.pc)
[ -n "$pc" ] || { echo "no tagine.pc installed"; exit 1; }
libraries=$(dirname "$(dirname "$pc")")
for file in libtagine.a libtagine.so; do
    [ -e "$libraries/$file" ] || { echo "no $file installed"; exit 1; }
done
if [ -n "${TAGINE:-}" ]; then
    "$work/usr/bin/tagine" --version
fi

# moved: the pkg-config file has no absolute path of the place it was installed to
mv "$work/usr" "$work/moved"
libraries=$work/moved${libraries#"$work/usr"}
export PKG_CONFIG_PATH="$libraries/pkgconfig"
cat >"$work/use.c" <<'C'
int tg_status_exit_code(int status);
int main(void)
{
    return tg_status_exit_code(-3) == 3 ? 0 : 1;
}
C
# shellcheck disable=SC2046  # lists of words
"$cc" "$work/use.c" -o "$work/shared" $(pkg-config --cflags --libs tagine)
LD_LIBRARY_PATH="$libraries" "$work/shared"
# shellcheck disable=SC2046
"$cc" -Wall -Wextra -Werror "$TAGINE_SOURCE_DIR/examples/predict.c" -o "$work/example" \
    $(pkg-config --cflags --libs tagine)
LD_LIBRARY_PATH="$libraries" "$work/example" 2>/dev/null && { echo "the example took no model"; exit 1; }
rm "$libraries"/libtagine.so*
# shellcheck disable=SC2046
"$cc" "$work/use.c" -o "$work/static" $(pkg-config --cflags --libs --static tagine)
"$work/static"
