cd $1; grep -E '\.(cpp|h)$' /tmp/nstool/changed | xargs -P 2 -n 20 nice -n 5 clang-format -i
