#!/bin/sh
# The shape of the tree: a folder includes only what its row in docs/ARCHITECTURE.md allows, outside
# headers stay in the folder that wraps them, only cli/ touches the process, every header compiles
# alone, and no file is longer than 800 lines.
set -u
cd "$TAGINE_SOURCE_DIR" || exit 1
cc=${CC:-cc}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
faults=$work/faults
: >"$faults"

fault() { printf '%s\n' "$*" >>"$faults"; }

# "folder allowed..." a line, from the table's first and last columns.
awk -F'|' '/^\| `[a-z]+\/` \|/ {
    folder = $2; gsub(/[` \/]/, "", folder)
    allowed = $(NF - 1); gsub(/^ +| +$/, "", allowed)
    print folder, allowed
}' docs/ARCHITECTURE.md >"$work/rows"
[ "$(wc -l <"$work/rows")" -ge 17 ] || fault "docs/ARCHITECTURE.md: the table of folders was not found"

for folder in src/*/; do
    name=$(basename "$folder")
    grep -q "^$name " "$work/rows" || fault "src/$name: no row in docs/ARCHITECTURE.md"
done

# Comments go away before anything is searched.
find src include -name '*.[ch]' 2>/dev/null | sort >"$work/files"
mkdir "$work/bare"
while read -r file; do
    mkdir -p "$work/bare/$(dirname "$file")"
    awk '{
        line = $0; out = ""
        while (line != "") {
            if (inside) {
                end = index(line, "*/")
                if (!end) { line = ""; break }
                line = substr(line, end + 2); inside = 0
            }
            start = index(line, "/*")
            if (!start) { out = out line; break }
            out = out substr(line, 1, start - 1)
            line = substr(line, start + 2); inside = 1
        }
        print out
    }' "$file" >"$work/bare/$file"
done <"$work/files"

cd "$work/bare" || exit 1
grep -rn '^ *# *include *"' src | sed 's/^\([^:]*\):\([0-9]*\):.*"\(.*\)".*/\1 \2 \3/' >"$work/includes"
awk -v rows="$work/rows" '
    BEGIN {
        while ((getline line < rows) > 0) {
            n = split(line, word, " ")
            for (i = 2; i <= n; i++)
                may[word[1], word[i]] = 1
        }
    }
    {
        split($1, from, "/")
        if (split($3, to, "/") < 2) {
            print $1 ":" $2 ": include \"" $3 "\" by its path below src/"
            next
        }
        if (to[1] != from[2] && to[1] != "tagine" && !((from[2], to[1]) in may) && !((from[2], "all") in may))
            print $1 ":" $2 ": " from[2] "/ may not include " to[1] "/ (" $3 ")"
    }' "$work/includes" >>"$faults"

# outside PATTERN FOLDERS: headers that match stay in folders that match.
outside() {
    grep -rnE "^ *# *include *[<\"]($1)" src include 2>/dev/null | grep -vE "^($2)/" |
        sed 's/$/   (outside header not allowed here)/' >>"$faults"
}
outside 'dnnl|oneapi/' 'src/(dev|kern)/cpu'
outside 'omp\.h' 'src/(dev|kern)/cpu'
outside 'jansson|yaml' 'src/base'
outside 'jpeglib|jerror|turbojpeg|spng|png|webp/|libheif/' 'src/image'
outside 'zlib' 'src/(base|image|trace|data|ckpt)'
outside 'mpi\.h' 'src/comm/mpi'
outside 'nccl' 'src/comm/nccl'
outside 'cuda|cublas|cudnn' 'src/[a-z]+/cuda|src/comm/nccl'
grep -rnE '^ *# *pragma +omp' src include 2>/dev/null | grep -vE '^src/(dev|kern)/cpu/' |
    sed 's/$/   (OpenMP only in dev\/cpu and kern\/cpu)/' >>"$faults"

process='getenv|secure_getenv|setenv|putenv|exit|abort|printf|vprintf|puts|putchar|perror'
grep -rnE "(^|[^A-Za-z0-9_.>])($process) *\\(" src --include='*.[ch]' | grep -v '^src/cli/' |
    sed 's/$/   (only cli\/ may do this)/' >>"$faults"
grep -rnE '(^|[^A-Za-z0-9_.>])(signal|sigaction) *\(' src | grep -vE '^src/(cli|os)/' |
    sed 's/$/   (only cli\/ and os\/ may do this)/' >>"$faults"
grep -rnE '\bstd(out|in)\b' src | grep -v '^src/cli/' | sed 's/$/   (only cli\/ may do this)/' >>"$faults"
grep -rnE '\bstderr\b' src | grep -vE '^src/(cli|base/log)' | sed 's/$/   (through base\/log)/' >>"$faults"

cd "$TAGINE_SOURCE_DIR" || exit 1
find src include tests bench scripts -name '*.[ch]' -o -name '*.sh' -o -name '*.py' 2>/dev/null |
    while read -r file; do
        lines=$(wc -l <"$file")
        [ "$lines" -le 800 ] || echo "$file: $lines lines, more than 800" >>"$faults"
    done

# Headers of one instruction set are for its files; they compile with its flags.
flags=$(pkg-config --cflags spng libwebp libheif yaml-0.1 jansson 2>/dev/null)
case $(uname -m) in
x86_64) isa='-mavx2 -mfma -mf16c -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512bf16 -mamx-tile -mamx-bf16 -mamx-int8' ;;
*) isa= ;;
esac
grep '\.h$' "$work/files" >"$work/headers"
while read -r header; do
    case $header in
    src/kern/cpu/*) extra="$isa -fopenmp" ;;
    *) extra= ;;
    esac
    # shellcheck disable=SC2086  # lists of words
    "$cc" -std=gnu11 -D_GNU_SOURCE -fsyntax-only -Wall -Wextra -Werror -Wno-unused-function -Wno-unused-const-variable \
        -Isrc -Iinclude $flags $extra -x c "$header" 2>"$work/log" ||
        fault "$header does not compile alone: $(grep -m 1 error "$work/log")"
done <"$work/headers"

if [ -s "$faults" ]; then
    cat "$faults"
    echo "$(wc -l <"$faults") faults in $(wc -l <"$work/files") files"
    exit 1
fi
echo "$(wc -l <"$work/files") files, $(wc -l <"$work/includes") includes, $(wc -l <"$work/headers") headers: as the table says"
