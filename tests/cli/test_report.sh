#!/bin/sh
# report: the page of a real run, and in a headless browser, where there is one, that its pictures are drawn, its texts
# readable and nothing wider than the window, on a desktop and on a phone.
set -u
export OMP_WAIT_POLICY=passive # more tests may share these cores
[ -n "${TAGINE:-}" ] || { echo "skipped: the program was not built"; exit 77; }
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
faults=0
fault() { echo "FAULT: $*"; faults=$((faults + 1)); }

"$TAGINE" data synth --output photos --classes 4 --per-class 40 --img-size 64 --seed 2 --quiet >/dev/null || fault synth
"$TAGINE" train --data photos --img-size 32 --patch-size 8 --embed-dim 96 --depth 4 --num-heads 3 --batch-size 16 \
    --epochs 12 --threads 1 --monitor-interval 100 --quiet --output "a run" >/dev/null 2>err || fault "train: $(cat err)"
"$TAGINE" report "a run" --quiet 2>err || fault "report: $(cat err)"
[ -s "a run/report.html" ] || fault "no page"
"$TAGINE" report "a run" --output page.html --quiet || fault "report --output"
[ "$(wc -c <page.html)" -lt 1000000 ] || fault "a small run has a large page"
"$TAGINE" report nowhere >/dev/null 2>err
[ $? -eq 3 ] || fault "a run that is not there: $(cat err)"

browser=
for name in chromium chromium-browser google-chrome; do
    [ -n "$browser" ] || browser=$(command -v $name) || browser=
done
if [ -z "$browser" ] || [ -n "${TAGINE_SANITIZE:-}" ]; then
    echo "left out: the page in a browser (apt-get install chromium)"
else
    mkdir home
    for width in 1200 400; do
        HOME=$work/home timeout 100 "$browser" --headless=new --no-sandbox --disable-gpu --user-data-dir="$work/profile" \
            --window-size=$width,900 --virtual-time-budget=5000 --enable-logging=stderr --dump-dom \
            "file://$work/page.html#check" >dom 2>log || { fault "the browser: $(tail -n 3 log)"; break; }
        grep -q 'data-check="{&quot;ok&quot;:true' dom || fault "at $width: $(grep -o 'data-check="[^"]*"' dom || tail -n 5 log)"
        ! grep -E 'CONSOLE|Uncaught' log || fault "at $width the console has something to say"
    done
fi
[ "$faults" = 0 ]
