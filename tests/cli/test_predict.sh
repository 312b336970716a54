#!/bin/sh
# predict, eval and embed as a user meets them: rows in the order of the arguments, nutrition with
# unknown cells, bad files, exit codes, class lists, and the same bytes under any locale.
set -u
export OMP_WAIT_POLICY=passive # more tests may share these cores
[ -n "${TAGINE:-}" ] || { echo "skipped: the program was not built"; exit 77; }
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
faults=0
fault() { echo "FAULT: $*"; faults=$((faults + 1)); }

# expect CODE PART ARGUMENT...: exit code, and PART somewhere in both outputs
expect() {
    code=$1 part=$2
    shift 2
    "$TAGINE" "$@" >out 2>err
    got=$?
    [ "$got" -eq "$code" ] || fault "tagine $*: exit $got, not $code: $(cat err)"
    cat out err | grep -qF -- "$part" || fault "tagine $*: no \"$part\" in: $(cat out err)"
}
# rows PATTERN...: line N of out matches the N-th pattern, and there is no other line
rows() {
    n=0
    for pattern; do
        n=$((n + 1))
        sed -n "${n}p" out | grep -qE -- "$pattern" || fault "row $n is not $pattern: $(sed -n "${n}p" out)"
    done
    [ "$(wc -l <out)" -eq "$n" ] || fault "$(wc -l <out) rows, not $n"
}

"$TAGINE_BINARY_DIR/tests/tagine_test_fixture" . || exit 1
echo "no picture" >bad.jpg
pizza=data/val/pizza/0.jpg sushi=data/val/sushi/1.jpg falafel=data/val/falafel/1.jpg

# usage
expect 2 "no model given" predict $pizza
expect 2 "missing argument" predict --model model
expect 2 "--logits shows" predict --model model --logits $pizza
expect 2 "topk" predict --model model --topk 0 $pizza
expect 3 "nowhere: there is no such file or folder" predict --model nowhere $pizza
expect 3 "has no classes" predict --model features $pizza
expect 2 ".safetensors or .csv" embed --model model --output a.txt data
expect 2 "no photos given" eval --model model
expect 3 "there is no such folder" eval --model model --data nowhere

# one row for each argument, in order; a bad file does not stop the others
expect 0 '"file"' predict --json --model model --topk 2 --batch-size 2 $pizza bad.jpg $sushi none.jpg
one='\{"class":"[a-z_]+","score":[0-9.e-]+\}'
rows "^\{\"file\":\"$pizza\",\"predictions\":\[$one,$one\],\"nutrition\":\{.*\}\}$" \
    '^\{"file":"bad.jpg","error":".*looks like text.*"\}$' \
    "^\{\"file\":\"$sushi\",\"predictions\":\[$one,$one\],\"nutrition\":" \
    '^\{"file":"none.jpg","error":".*No such file.*"\}$'
grep -q logits out && fault "logits without --logits"
expect 0 '"logits":[' predict --json --model model --logits $pizza
[ "$(sed 's/.*"logits":\[\([^]]*\)\].*/\1/' out | tr ',' '\n' | wc -l)" -eq 6 ] || fault "not 6 logits: $(cat out)"
expect 3 "1 of 2 photos have no answer" predict --json --strict --model model bad.jpg $pizza
rows '"error"' '"predictions"'
expect 3 "2 of 2 photos have no answer" predict --model model bad.jpg none.jpg
expect 3 "damaged/model.safetensors: tensor cls_token: 1 of its 32 values are not finite" \
    predict --model damaged $pizza
expect 3 "tensor cls_token" embed --model damaged --output g.csv $pizza
expect 3 "tensor cls_token" eval --model damaged --data data
expect 3 "not finite, though its weights are" predict --model huge $pizza
expect 3 "none of 1 photos has features: the model's answer is not finite" \
    embed --quiet --model huge --output g.csv $pizza
expect 3 "not finite, though its weights are" eval --model huge --data data
[ -e g.csv ] && fault "features that are not finite were written"
# a name that would break the line is shown
odd=$(printf 'a\nb\033.jpg')
cp $pizza "$odd"
expect 0 'a\x0ab\x1b.jpg' predict --model model "$odd"
[ "$(head -1 out)" = 'a\x0ab\x1b.jpg' ] || fault "the file's name: $(head -1 out)"
cp bad.jpg "$odd"
expect 3 'none of 1 photos' embed --model model --output g.csv "$odd"
[ "$(grep -c 'left out: ' err)" -eq 1 ] && grep -qF 'left out: a\x0ab\x1b.jpg' err || fault "a log line: $(cat err)"
expect 3 'a\x0ab\x1b.jpg' predict --model model "$odd"
rm "$odd"

# class names that are not there or not one class's
for names in pizza ""; do
    rm -rf twice && cp -r model twice
    sed -i "s/\"apple_pie\"/\"$names\"/" twice/config.json
    expect 3 "twice/config.json" predict --model twice $pizza
    expect 3 "class" eval --model twice --data data
done
# a size of photos that is not the network's
cp -r model sized
sed -i 's/"input_size": \[3, 32, 32\]/"input_size": [3, 64, 64]/' sized/config.json
expect 3 "sized/config.json" predict --model sized $pizza
expect 0 '"class":"' predict --json --model unnamed $pizza
rows '"predictions":\[\{"class":"[0-5]",.*"nutrition":null'

# nutrition: the falafel's empty cells are unknown, not 0 (a table of one's own gives every class one)
printf 'class,display_name,serving_g,kcal_per_100g,carbohydrate_g,protein_g,fat_g,sugars_g\n' >own.csv
for class in apple_pie falafel ice_cream pizza ramen sushi; do
    printf '%s,"Dish, tested",50,265,49,9,3.2,\n' "$class" >>own.csv
done
expect 0 "Dish, tested" predict --model model --nutrition own.csv $falafel
grep -qE "^ +sugars +unknown +unknown$" out || fault "an empty cell is not unknown: $(cat out)"
grep -qE "^ +energy +265 kcal +132 kcal$" out || fault "energy per 100 g and serving: $(cat out)"
expect 0 '"sugars_g":null' predict --json --model model --nutrition own.csv $falafel
grep -qF '"per_serving":{"energy_kcal":132.5,' out || fault "energy per serving: $(cat out)"
sed 's/,265,/,1109,/' own.csv >kilojoule.csv
expect 0 "kilojoule.csv: line 2, apple_pie: kcal_per_100g is 1109 kcal" \
    predict --model model --nutrition kilojoule.csv $pizza
expect 0 '"doubtful":true' predict --json --model model --nutrition kilojoule.csv $pizza
sed 's/,265,/,x,/' own.csv >broken.csv
expect 3 "broken.csv: line 2, column kcal_per_100g" predict --model model --nutrition broken.csv $pizza

sed 's/,9,3.2,/,150,3.2,/' own.csv >heavy.csv
expect 3 "heavy.csv: line 2, column protein_g: 100 g hold no 150 g of it" \
    predict --model model --nutrition heavy.csv $pizza
{ echo class; seq 1 16384; } >long.csv
expect 0 "" predict --model model --nutrition long.csv $pizza
echo 7 >>long.csv
expect 3 "more than 16384 rows" predict --model model --nutrition long.csv $pizza

# eval: every photo counts once, whatever the batch and the workers
expect 0 '"top1":' eval --json --model model --data data --batch-size 4 --workers 0
rows '^\{"top1":[0-9.]+,"top5":[0-9.]+,"loss":[0-9.]+,"images":18,"skipped":0,"images_per_s":[0-9.]+\}$'
sed 's/"loss.*//' out >first
expect 0 '"top1":' eval --json --model model --data data --batch-size 18 --workers 2
sed 's/"loss.*//' out | cmp -s - first || fault "accuracy depends on the batch: $(cat out)"
expect 0 "most often confused" eval --model model --data data
expect 0 '"images":18' eval --json --model unnamed --data data
cp bad.jpg data/val/sushi/bad.jpg
expect 0 '"images":18,"skipped":1,' eval --json --model model --data data
expect 3 "bad.jpg" eval --strict --model model --data data
rm data/val/sushi/bad.jpg
expect 0 '"images":18' eval --json --amp --model model --data data
# a class without photos keeps its index; one that the model does not know is refused
mv data/val/apple_pie apple_pie
expect 0 '"images":15' eval --json --model model --data data
expect 3 "they cannot be matched" eval --model unnamed --data data
mkdir data/val/stew && cp apple_pie/0.jpg data/val/stew
expect 3 "data/val/stew" eval --model model --data data
rm -r data/val/stew && mv apple_pie data/val

# embed: folders and files; what cannot be read is left out
expect 0 "18 photos, 32 values each, 1 left out" embed --model features --output f.csv data bad.jpg
[ "$(wc -l <f.csv)" -eq 19 ] || fault "f.csv: $(wc -l <f.csv) lines"
[ "$(sed -n 2p f.csv | tr ',' '\n' | wc -l)" -eq 33 ] || fault "f.csv: not 33 fields"
expect 0 '"images":2,"skipped":0,"features":32' embed --json --model model -o f.safetensors $pizza $sushi
head -c 200 f.safetensors | grep -q '"features":{"dtype":"F32","shape":\[2,32\]' || head -c 400 f.safetensors |
    grep -q '"shape":\[2,32\]' || fault "f.safetensors: $(head -c 300 f.safetensors)"
expect 3 "bad.jpg" embed --strict --model model --output g.csv data bad.jpg
[ -e g.csv ] && fault "--strict wrote a file"
expect 3 "none of 1 photos" embed --model model --output g.csv bad.jpg
# what is read is not written over
cp -r model mine && cp $pizza photo.csv && ln -s mine/model.safetensors link.safetensors
before=$(cat mine/* photo.csv | cksum)
for victim in mine/model.safetensors mine/../mine/model.safetensors link.safetensors photo.csv; do
    expect 2 "to be read, and would be lost" embed --model mine -o $victim photo.csv
done
[ "$(cat mine/* photo.csv | cksum)" = "$before" ] || fault "embed wrote over what it reads"

# every instruction set answers alike: the classes, and their scores as shown to a tenth of a percent
for level in portable avx2 avx512 amx; do
    "$TAGINE" predict --model model --threads 1 --cpu-isa $level $pizza $falafel >"isa.$level"
    cmp "isa.$level" isa.portable || fault "$level answers otherwise than portable"
done

# every number with a point, under any locale
for name in de_DE.UTF-8 C; do
    LC_ALL=$name "$TAGINE" predict --model model --threads 1 $pizza $falafel >"predict.$name" 2>&1
    LC_ALL=$name "$TAGINE" predict --json --logits --model model --threads 1 $pizza >>"predict.$name" 2>&1
    LC_ALL=$name "$TAGINE" embed --quiet --model model --threads 1 --output "e.$name.csv" data >/dev/null
    LC_ALL=$name "$TAGINE" eval --quiet --model model --threads 1 --data data | grep -v speed >"eval.$name"
done
for what in predict.%s e.%s.csv eval.%s; do
    # shellcheck disable=SC2059
    cmp "$(printf "$what" de_DE.UTF-8)" "$(printf "$what" C)" || fault "$what depends on the locale"
done

[ "$faults" -eq 0 ] || { echo "$faults faults"; exit 1; }
