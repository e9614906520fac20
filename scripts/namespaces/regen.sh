# regen.sh ROOMS BRANCHBASE MSG
cd /tmp/nstool/gen && git checkout -q -f main && git checkout -q -B "$2" && python3 ../apply.py /tmp/nstool/gen $1 > ../apply.log && bash ../fmt.sh /tmp/nstool/gen && git commit -qam "$2"
