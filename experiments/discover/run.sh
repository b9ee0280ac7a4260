#!/bin/sh
# All configurations of `archwright discover` that were tried, one after another: sh experiments/discover/run.sh RESULTS
set -e
out=${1:?folder for the results}
mkdir -p "$out"
find() { name=$1; shift; archwright discover "$@" --exhaustive --out "$out/scores" --html "$out/$name.html" --json "$out/$name.json"; }

find b-lp1-spearman nas-bert
find b-lp1-both nas-bert --fitness both
find b-lp1-within nas-bert --fitness within
find b-lp1-factor-spearman nas-bert --factor
find b-lp1-factor-both nas-bert --factor --fitness both
find b-lp2-spearman nas-bert --unary 2
find b-lp2-both nas-bert --unary 2 --fitness both
find b-ws2-factor-both nas-bert --unary 2 --inputs W,S --factor --fitness both
find b-x1-spearman nas-bert --inputs extended
find b-x1-both nas-bert --inputs extended --fitness both
find b-f1-factor-both nas-bert --inputs forward --factor --fitness both
for of in mean last largest logsum; do find "b-lp1-$of-both" nas-bert --fitness both --reduction $of; done
find b-lp1-logsum-spearman nas-bert --reduction logsum
find b-lp1-logsum-factor-both nas-bert --reduction logsum --factor --fitness both
find g-lp1-spearman lts-gpt2
find g-x1-spearman lts-gpt2 --inputs extended
find g-x1-factor-spearman lts-gpt2 --inputs extended --factor
find g-f1-factor-spearman lts-gpt2 --inputs forward --factor
for of in mean last largest logsum; do find "g-x1-$of-spearman" lts-gpt2 --inputs extended --reduction $of; done
find r-lp1-spearman nas-bench-nlp

# all three benchmarks, and what is found on one judged on the others
find main nas-bert --transfer lts-gpt2,nas-bench-nlp
