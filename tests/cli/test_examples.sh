#!/bin/sh
# Every example of --help runs as it stands, one after the other in one folder, and stands on its manual page.
set -u
[ -x "${TAGINE:-}" ] || { echo "skipped: no program"; exit 77; }
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
mkdir bin && ln -s "$TAGINE" bin/tagine
PATH=$work/bin:$PATH
count=0
for command in "data synth" train distill eval predict embed plan "tune train" "tune distill" "data check" "data stats" "bench train" "bench distill" "bench infer" \
    "bench loader" diagnose compare watch metrics monitor man completion; do
    # shellcheck disable=SC2086
    tagine $command --help | sed -n '/^Examples:/,/^$/s/^      \(tagine .*\)/\1/p' >examples
    [ -s examples ] || { echo "FAILED: $command has no example"; exit 1; }
    # shellcheck disable=SC2086
    tagine man $command | grep -q '^\.SH EXAMPLES' || { echo "FAILED: none on the page of $command"; exit 1; }
    while IFS= read -r line; do
        case ${TAGINE_SANITIZE:-}/$line in
        ?*/"tagine bench train"* | ?*/"tagine bench distill"* | ?*/"tagine bench infer"*)
            count=$((count + 1)) # minutes under a sanitizer, and cli.bench runs them all
            continue
            ;;
        esac
        sh -c "$line" >out 2>&1 || { echo "FAILED: $line"; cat out; exit 1; }
        count=$((count + 1))
    done <examples
done
[ $count -ge 21 ] || { echo "FAILED: only $count examples"; exit 1; }
tagine man | grep -q '^\.SH MODELS' || { echo "FAILED: tagine.1 does not say what MODEL is"; exit 1; }
if tagine man --help | grep -q -- --threads; then echo "FAILED: man has no use for --threads"; exit 1; fi
exit 0
