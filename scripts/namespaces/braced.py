import re,sys
sys.argv=['x','/tmp/nstool/gen',sys.argv[1]]
src=open('/tmp/nstool/apply.py').read()
src=src[:src.index('count=0')]
import io,contextlib
with contextlib.redirect_stdout(io.StringIO()): exec(src)
import subprocess
cache={}
for key,e in sorted(E.items()):
    f=e['file']
    if f.startswith('build/') or e['qt']!='-' or 'func' not in e['kinds']: continue
    t={new_ns(t,h) for t,h in e['t']}
    if t=={x for x,_ in e['t']} or len(t)>1: continue
    t=next(iter(t))
    if not all(a not in('-','none','dependent') and any(new_ns(q.rsplit('::',1)[0],homes('T|'+q,f))==t for q in a.split(',')) for a in e['adl']): continue
    if all(qualifier(new_ns(c,f),t,visible.get(f,()),allns)=='' for c in e['ctx']): continue
    if f not in cache: cache[f]=subprocess.run(['git','-C','/tmp/nstool/gen','show','main:'+f],capture_output=True).stdout.decode(errors='replace')
    d=cache[f].encode()
    s=d[e['off']+len(e['name']):e['off']+400].decode(errors='replace')
    depth=0;args=[];cur=''
    for ch in s:
        if ch in '([{': 
            depth+=1
            if depth==1: continue
        elif ch in ')]}':
            depth-=1
            if depth==0: args.append(cur); break
        elif ch==',' and depth==1: args.append(cur); cur=''; continue
        cur+=ch
    if any(a.strip().startswith('{') for a in args): print(f,d[:e['off']].count(b'\n')+1,e['name'],t,[a.strip()[:40] for a in args],e['adl'] if len(str(e['adl']))<200 else '')
