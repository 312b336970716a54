#!/bin/sh
# run.sh TARGET GROWN_CORPUS [INPUT_FOLDER...]: one fuzzer for $TAGINE_FUZZ_SECONDS seconds. An input
# that breaks the target stays in the build folder beside the grown corpus and is named.
target=$1
shift
exec "$target" -max_total_time="${TAGINE_FUZZ_SECONDS:-10}" -timeout=10 -rss_limit_mb=2048 \
    -malloc_limit_mb=1024 -print_final_stats=1 -verbosity=0 -artifact_prefix="$1/../" "$@"
