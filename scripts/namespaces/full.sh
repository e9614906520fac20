cd /tmp/tree/ns; /tmp/heavy "/tmp/in.sh /tmp/tree/ns 'nice -n 5 ninja -j 2 -k 0 -C build/release'" > /tmp/nstool/b2.log 2>&1; echo done $? >> /tmp/nstool/b2.log
