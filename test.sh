#!/bin/sh
# Installs what is missing, builds, and runs every test that this machine can run.
#
#   ./test.sh                 everything; what is skipped is named
#   ./test.sh STAGE...        only these stages: release caps clang address thread fuzz
#
# The last line is 'N passed, N failed, N skipped' over all stages; the exit status is 0 when none
# failed. Before it stand the last lines of each test that failed, once more: of a long log often only the end
# is kept. Builds lie in build/ and are reused by the next run.
set -eu
cd "$(dirname "$0")"

stages=${*:-release caps clang address thread fuzz}
jobs=$(nproc)
results=build/test-results
fuzz_seconds=10
failed_lines=40 # of each test that failed, at the end

say() { printf '\n== %s\n' "$*"; }

note_skip() {
    printf 'skipped: %s\n' "$1"
    echo "skip	$1" >>"$results/skipped"
}

# One line per test of a JUnit file: status (run, fail, notrun) and name.
tests_of() {
    sed -n 's/.*<testcase name="\([^"]*\)".* status="\([^"]*\)".*/\2 \1/p' "$1"
}

# What the failed tests of a JUnit file said last.
failures_of() {
    awk -v label="$(basename "$1" .xml)" -v most="$failed_lines" '
        function end_of_output(i) {
            printf "\n-- %s: %s\n", label, name
            for (i = count > most ? count - most : 0; i < count; i++) print line[i]
            inside = 0
        }
        /<testcase / {
            failed = / status="fail"/
            name = $0
            sub(/.*<testcase name="/, "", name)
            sub(/".*/, "", name)
        }
        failed && sub(/.*<system-out>/, "") { inside = 1; count = 0 }
        inside {
            last = sub(/<\/system-out>.*/, "")
            gsub(/&lt;/, "<"); gsub(/&gt;/, ">"); gsub(/&quot;/, "\""); gsub(/&amp;/, "\\&")
            if (!last || $0 != "") line[count++] = $0
            if (last) end_of_output()
        }' "$1"
}

# build_errors PRESET LINES
build_errors() {
    grep -E -A 5 'error|FAILED' "$results/$1.log" | tail -n "$2"
}

# build PRESET: configures and builds; a failure counts as one failed test.
build() {
    if cmake --preset "$1" >"$results/$1.log" 2>&1 &&
        cmake --build --preset "$1" -j "$jobs" -- -k 0 >>"$results/$1.log" 2>&1; then
        return 0
    fi
    build_errors "$1" 80
    echo "fail $1: build" >>"$results/outcomes"
    return 1
}

# suite LABEL PRESET [CTEST ARGUMENTS]: runs the tests and adds them to the sum.
suite() {
    label=$1 preset=$2
    shift 2
    junit=$PWD/$results/$(echo "$label" | tr ' /' '--').xml
    rm -f "$junit"
    ctest --preset "$preset" -j "$jobs" --output-junit "$junit" --no-tests=ignore "$@" || true
    if [ ! -f "$junit" ]; then
        echo "fail $label: ctest wrote no results" >>"$results/outcomes"
        return 0
    fi
    tests_of "$junit" | sed "s|^\([a-z]*\) |\1 $label: |" >>"$results/outcomes"
}

stage_release() {
    say "release build (gcc)"
    build release && suite release release
}

# The suites whose code depends on the instruction set, each with the machine's set cut down. Left out: those of
# train/ that are about files, signals and forecasts, not about numbers.
stage_caps() {
    build release || return 0
    for level in portable avx2 avx512; do
        if [ $level != portable ] && ! grep -qw "$(cpu_flag $level)" /proc/cpuinfo; then
            note_skip "instruction set $level: this CPU lacks it"
            continue
        fi
        say "instruction set capped at $level"
        TAGINE_TEST_CPU=$level suite "cap $level" release -R '^(kern|model|golden|train)\.' \
            -E '^train\.(damage|data|forecast|memory_rows|overlap|resume|start|straggler|tune)$'
    done
}

cpu_flag() {
    case $1 in
    avx512) echo avx512bw ;;
    *) echo "$1" ;;
    esac
}

# Left out: suites of launchers and rank processes whose subject is messages, files and signals, which no compiler
# changes; dist.train, dist.failures and dist.narrow stay.
stage_clang() {
    say "clang build"
    build clang || return 0
    suite clang clang \
        -E '^dist\.(first_rank|late_files|launchers|many_ranks|rank_.*|shared_save|slow_rank|slurm|tune)$'
}

stage_address() {
    say "address and undefined-behaviour sanitizers"
    build address && suite address address
}

# The suites with threads of their own or OpenMP. Left out: the file size limit of train.damage, which the
# sanitizer's own files do not survive; timings (kern.peak, cli.bench), which tell nothing under it;
# kern.attention, a minute of one thread's oracle (kern.attention_tiles, model.vit and train.* run
# attention on two); and suites that run on one thread.
stage_thread() {
    say "thread sanitizer"
    build thread || return 0
    suite thread thread -R '^(os|trace|kern|data|model|loss|infer|run|train|cli)\.' \
        -E '^(train\.damage|kern\.peak|kern\.attention|cli\.bench)$'
}

stage_fuzz() {
    say "fuzzers, $fuzz_seconds s each"
    if build fuzz; then
        TAGINE_FUZZ_SECONDS=$fuzz_seconds suite fuzz fuzz
    fi
}

scripts/install-dependencies.sh --test
mkdir -p "$results"
rm -f "$results"/*.xml
: >"$results/outcomes"
: >"$results/skipped"
start=$(date +%s)
for stage in $stages; do
    case $stage in
    release | caps | clang | address | thread | fuzz) "stage_$stage" || true ;;
    *) echo "test.sh: no stage '$stage'; stages: release caps clang address thread fuzz" >&2 && exit 2 ;;
    esac
done

passed=$(grep -c '^run ' "$results/outcomes" || true)
failed=$(grep -c '^fail ' "$results/outcomes" || true)
not_run=$(grep -c -E '^(notrun|disabled) ' "$results/outcomes" || true)
skipped=$((not_run + $(wc -l <"$results/skipped")))
sed -n 's/^fail \(.*\): build$/\1/p' "$results/outcomes" | while read -r preset; do
    printf '\n-- %s: build\n' "$preset"
    build_errors "$preset" "$failed_lines"
done
for junit in "$results"/*.xml; do
    [ ! -f "$junit" ] || failures_of "$junit"
done
say "$(($(date +%s) - start)) s"
sed -n 's/^fail /failed: /p; s/^notrun /skipped: /p; s/^disabled /skipped: /p' "$results/outcomes"
sed 's/^skip	/skipped: /' "$results/skipped"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ] && [ "$passed" != 0 ]
