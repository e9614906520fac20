import json,shlex,re,os
src=json.load(open('/tmp/tree/ns/build/release/compile_commands.json'))
out=[];seen={}
for x in src:
    f=x['file']; a=shlex.split(x['command'])
    a=[t for t in a if t!='-fno-tree-loop-distribute-patterns']
    if f.endswith('.cu') and 'nvcc' in x['command']:
        continue
    b=[]; skip=False
    for t in a[1:]:
        if skip: skip=False; continue
        if t in('-o',): skip=True; continue
        if t=='-c' or t==f: continue
        if t.startswith('--param') or t.startswith('-W') or t.startswith('-O') or t in('-fno-sanitize=all',) : continue
        b.append(t)
    key=(f,)
    if key in seen: continue
    seen[key]=1
    out.append({'directory':x['directory'],'file':f,'arguments':['clang++-14','-w','-ferror-limit=0','-Wno-everything']+b+['-c',f]})
base=['clang++-14','-w','-ferror-limit=0','-Wno-everything','-I/tmp/ci/b','-I/tmp/ci/b/build/release/generated','-std=c++20','-DFMT_SHARED','-c']
for f in sorted(os.listdir('/tmp/tree/ns/tests/fuzz')):
    if f.endswith('.cpp'):
        p='/tmp/ci/b/tests/fuzz/'+f
        out.append({'directory':'/tmp/ci/b/build/release','file':p,'arguments':base+[p]})
json.dump(out,open('/tmp/nstool/db.json','w'),indent=0)
print(len(out))
