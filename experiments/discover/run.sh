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
find b-x1-factor-both nas-bert --inputs extended --factor --fitness both
find b-f1-factor-both nas-bert --inputs forward --factor --fitness both
for of in mean last largest logsum; do find "b-lp1-$of-both" nas-bert --fitness both --reduction $of; done
find g-lp1-spearman lts-gpt2
find g-x1-spearman lts-gpt2 --inputs extended
find g-x1-factor-spearman lts-gpt2 --inputs extended --factor
find g-f1-factor-spearman lts-gpt2 --inputs forward --factor
for of in mean last largest logsum; do find "g-x1-$of-spearman" lts-gpt2 --inputs extended --reduction $of; done

# the two configurations that were best, with other weights, batches and folds
find b-lp1-factor-both-seed1 nas-bert --factor --fitness both --seed 1
find g-f1-factor-spearman-seed1 lts-gpt2 --inputs forward --factor --seed 1

# all three benchmarks, and what is found on one judged on the others
find main nas-bert --transfer lts-gpt2,nas-bench-nlp
