#!/bin/sh
# An installed tree is complete: the program runs from it, and a C program finds libtagine through
# pkg-config, links it shared and static, and runs; the shared library exports the public header and
# nothing else.
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
sed 's|/\*.*||; /^ \*/d' "$work"/usr/include/tagine/*.h | grep -o 'tagine_[a-z_]*(' | tr -d '(' | sort >"$work/declared"
nm -D --defined-only "$libraries/libtagine.so" | awk '{ print $NF }' | sort >"$work/exported"
[ -s "$work/declared" ] || { echo "no function found in tagine.h"; exit 1; }
diff "$work/declared" "$work/exported" || { echo "exports (>) are not what tagine.h declares (<)"; exit 1; }

if [ -n "${TAGINE:-}" ]; then
    "$work/usr/bin/tagine" --version
fi

# moved: the pkg-config file has no absolute path of the place it was installed to
mv "$work/usr" "$work/moved"
libraries=$work/moved${libraries#"$work/usr"}
export PKG_CONFIG_PATH="$libraries/pkgconfig"
cat >"$work/use.c" <<'C'
#include <tagine/tagine.h>
int main(void)
{
    tagine_predictor *predictor;
    tagine_status status = tagine_predictor_open("/nowhere", NULL, &predictor);
    return status == TAGINE_INPUT && tagine_error()[0] ? 0 : 1;
}
C
# shellcheck disable=SC2046  # lists of words
"$cc" "$work/use.c" -o "$work/shared" $(pkg-config --cflags --libs tagine)
LD_LIBRARY_PATH="$libraries" "$work/shared"
# shellcheck disable=SC2046
"$cc" -Wall -Wextra -Werror "$TAGINE_SOURCE_DIR/examples/predict.c" -o "$work/example" \
    $(pkg-config --cflags --libs tagine)
LD_LIBRARY_PATH="$libraries" "$work/example" 2>/dev/null && { echo "the example took no model"; exit 1; }
# shellcheck disable=SC2046
"$cc" -Wall -Wextra -Werror "$TAGINE_SOURCE_DIR/examples/annotate.c" -o "$work/annotate" \
    $(pkg-config --cflags --libs tagine)
LD_LIBRARY_PATH="$libraries" "$work/annotate" "$work/annotate.json.gz"
[ "$(gzip -dc "$work/annotate.json.gz" | grep -c '"name":"resize"')" = 3 ] || { echo "the example's annotations"; exit 1; }
rm "$libraries"/libtagine.so*
# shellcheck disable=SC2046
"$cc" "$work/use.c" -o "$work/static" $(pkg-config --cflags --libs --static tagine)
"$work/static"
