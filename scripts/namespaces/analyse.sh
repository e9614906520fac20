#!/bin/bash
cd /tmp/ci/b/build/release
for k in 0 1; do nice -n 5 /tmp/nstool/refs /tmp/ci/b/ /tmp/nstool/db.json $k 2 > /tmp/nstool/out.$k 2> /tmp/nstool/err.$k & done; wait
