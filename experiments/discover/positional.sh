#!/bin/sh
# Formulas that know where a layer stands, over ten splits: sh experiments/discover/positional.sh RESULTS
set -e
out=${1:?folder for the results}
mkdir -p "$out"
find() { name=$1; shift; archwright discover "$@" --exhaustive --published none --workers 1 --out "$out/scores" --html "$out/$name.html" --json "$out/$name.json"; }

find b-layers-both nas-bert --inputs layers --reduction positional --fitness both
find b-layers-sum-both nas-bert --inputs layers --fitness both
find b-layers-spearman nas-bert --inputs layers --reduction positional
find b-positional-sum-both nas-bert --inputs positional --fitness both
find b-lp1-spearman nas-bert
find b-lp1-both nas-bert --fitness both
find g-layers-spearman lts-gpt2 --inputs layers --reduction positional
find r-layers-spearman nas-bench-nlp --inputs layers --reduction positional
# two splits, ten folds: thousands of rows
find h-s-layers-both hw-gpt-bench --variant s --inputs layers --reduction positional --fitness both --fold-seeds 2
find h-m-layers-both hw-gpt-bench --variant m --inputs layers --reduction positional --fitness both --fold-seeds 2
