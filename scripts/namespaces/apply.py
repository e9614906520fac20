#!/usr/bin/env python3
# apply.py TREE ROOM[,ROOM...]: rewrites TREE (pristine) with what refs.cpp found.
import sys,re,os,collections,subprocess
tree=sys.argv[1]; rooms=sys.argv[2].split(',')
sys.path.insert(0,'/tmp/nstool')
from libs import LIB, TESTNS_FORCE, ORDER
dumps=['/tmp/nstool/'+f for f in sorted(os.listdir('/tmp/nstool')) if re.match(r'out\.\w+$',f)]
R=collections.defaultdict(list); T=[];F=[];D=[];A=[]
for dn in dumps:
    for line in open(dn,errors='replace'):
        p=line.rstrip('\n').split('\t')
        if p[0]=='R': R[(p[1],int(p[2]))].append(p)
        elif p[0]=='T': T.append(p)
        elif p[0]=='F': F.append(p)
        elif p[0]=='D': D.append(p)
        elif p[0]=='A': A.append(p)
home={}
for p in T:
    # T file b e ctx qual def friend tmpl
    q=p[5]
    if p[6]=='def' and p[8]!='spec': home.setdefault(q,set()).add(p[1])
for p in T:
    if p[5] not in home: home.setdefault(p[5]+'?',set()).add(p[1])
def homes(h,at=None):
    k,v=h.split('|',1)
    if k=='F': return v
    s=home.get(v) or home.get(v+'?') or set()
    if at in s: return at
    s=sorted(s, key=lambda f:(not f.endswith('.h'),f))
    return s[0] if s else ''
def lib_of(f):
    p=f.split('/')
    if p[0] in rooms and len(p)>2: return LIB.get((p[0],p[1]))
    return None
def own_kept(room,x,rest):
    # namespaces that a folder already has and keeps
    if not rest: return False
    first=rest.split('::')[0]
    if first==x: return True
    return (room,first) in KEPT
KEPT={('viewer','script'),('viewer','bench'),('traces','pickled')}|{('trainer',k) for k in 'cuda kernels lift sim collectives planner calibrate mpi cuda_testing testing reference'.split()}
TESTNS={}
def new_ns(old,f):
    """namespace `old` as opened in file f, after the change"""
    p=f.split('/')
    x=None; room=None
    if p[0]=='tests':
        if f in TESTNS: room,x=TESTNS[f]
    else:
        room=p[0]; x=lib_of(f)
    if not x: return old
    pre='shardscope::'+room
    if old==pre: return pre+'::'+x
    if old.startswith(pre+'::'):
        rest=old[len(pre)+2:]
        if own_kept(room,x,rest): return old
        return pre+'::'+x+'::'+rest
    return old
def qualifier(ctx,t,visible,allns):
    c=[] if ctx=='-' else ctx.split('::')
    best=None
    for n in range(len(c)+1):
        base='::'.join(c[:n])
        if base and not (t==base or t.startswith(base+'::')): continue
        q=t[len(base)+2:] if base and t!=base else ('' if base else t)
        first=q.split('::')[0]
        if first and any('::'.join(c[:m]+[first]) in allns for m in range(n+1,len(c)+1)): continue
        best=q
    for v in visible:
        if t==v: q=''
        elif t.startswith(v+'::'): q=t[len(v)+2:]
        else: continue
        if q.count('::')+(q!='')<best.count('::')+(best!=''): best=q
    return best
def analyse_refs():
    """per reference: (file,off) -> (name,qo,ql,qt,{ctx},{(told,homefile)},kinds,adl set,body)"""
    out={}
    for key,ps in R.items():
        p=ps[0]
        if p[8] not in('-','?') and not p[8].startswith('::') :
            last=[s for s in p[8].split('::') if s.strip()]
            if last and last[-1].strip()[:1].isupper(): continue
        if p[8]=='?' : print('unusual qualifier',p[1],p[2],p[3]); continue
        e=dict(file=p[1],off=int(p[2]),name=p[3],kinds={x[4] for x in ps},ctx={x[5] for x in ps},qo=int(p[6]),ql=int(p[7]),qt=p[8],
               t={(x[9],homes(x[10],p[1])) for x in ps},adl=set(),body=any(x[12]=='body' for x in ps))
        for x in ps: e['adl'].add(x[11])
        out[key]=e
    return out
E=analyse_refs()
# the namespace of test files
votes=collections.defaultdict(collections.Counter)
for e in E.values():
    f=e['file']; p=f.split('/')
    if p[0]!='tests' or len(p)!=3 or p[1] not in rooms or not f.endswith('.cpp') or e['qt']!='-': continue
    for told,h in e['t']:
        x=lib_of(h)
        if x and told=='shardscope::'+p[1]: votes[f][x]+=1
fileopen={}
for f,c in sorted(votes.items()):
    room=f.split('/')[1]
    text=open(os.path.join(tree,f)).read()
    if not re.search(r'^namespace shardscope::%s \{'%room,text,re.M): continue
    x=TESTNS_FORCE.get(f)
    if x is None:
        (x,n)=c.most_common(1)[0]
        good=[y for y in c if c[y]*4>=n]
        x=max(good,key=lambda y:ORDER[room].index(y))
    if x: TESTNS[f]=(room,x)
    print('test',f,TESTNS.get(f),dict(c.most_common(5)))
allns=set()
for e in E.values():
    for told,h in e['t']:
        n=new_ns(told,h).split('::')
        for i in range(1,len(n)+1): allns.add('::'.join(n[:i]))
# using-directives
visible=collections.defaultdict(set)
edits=collections.defaultdict(list)
for p in D:
    f=p[1]; nom=p[5]
    m=re.match(r'shardscope::(\w+)$',nom)
    if m and m.group(1) in rooms:
        c=collections.Counter()
        for e in E.values():
            if e['file']!=f or e['qt']!='-': continue
            for told,h in e['t']:
                x=lib_of(h)
                if x and told==nom: c[x]+=1
        tot=sum(c.values())
        if tot and c.most_common(1)[0][1]*10>=tot*6 and p[6]!='local':
            x=c.most_common(1)[0][0]
            visible[f].add(nom+'::'+x)
            if p[4]=='-':
                visible[f].add(nom)
                edits[f].append(('directive2',int(p[3]),nom+'::'+x))
            else: edits[f].append(('directive',int(p[3]),x))
        else: visible[f].add(nom)
        print('using-directive',f,nom,p[6],dict(c))
    else: visible[f].add(nom)
count=0
for key,e in sorted(E.items()):
    f=e['file']
    if f.startswith('build/') : print('generated',f,e['name']); continue
    news={new_ns(t,h) for t,h in e['t']}; olds={t for t,h in e['t']}
    if news==olds: continue
    if len(news)>1:
        print('AMBIGUOUS',f,e['off'],e['name'],news,e['kinds']); continue
    t=next(iter(news)); told=next(iter(olds))
    if e['qt']=='-' and 'func' in e['kinds']:
        if all(a not in('-','none','dependent') and any(new_ns(q.rsplit('::',1)[0],homes('T|'+q,f))==t for q in a.split(',')) for a in e['adl']): continue
    qs=set()
    for c in e['ctx']:
        nc=new_ns(c,f)
        qs.add(qualifier(nc,t,visible.get(f,()),allns))
    if len(qs)>1: q=t
    else: q=next(iter(qs))
    if e['body']: print('macro body',f,e['off'],e['name'],q,e['ctx'])
    if e['qt']=='-':
        if q: edits[f].append(('ins',e['off'],q+'::')); count+=1
    else:
        old=e['qt'].rstrip(':').strip()
        if old.startswith('::'): q='::'+t
        else:
            if q=='' : q=t.split('::')[-1]
            if t.startswith(told+'::'):
                alt=old+'::'+t[len(told)+2:]
                if len(alt)<len(q) : q=alt
        edits[f].append(('rep',e['qo'],e['ql'],q+'::')); count+=1
print('references edited',count)
# forward declarations
fwd=collections.defaultdict(list)
for p in T:
    if p[6]!='fwd': continue
    f=p[1]; q=p[5]; old=q.rsplit('::',1)[0]
    h=homes('T|'+q)
    want=new_ns(old,h); have=new_ns(p[4],f)
    if p[7]=='friend':
        if want!=new_ns(old,f): print('FRIEND',f,q,want)
        continue
    if want!=have: fwd[f].append((int(p[2]),int(p[3]),want,q.rsplit('::',1)[1]))
for p in F:
    f=p[1]
    if p[7]=='friend' or f==p[8]: continue
    old=p[5].rsplit('::',1)[0]
    if new_ns(old,p[8])!=new_ns(old,f): print('FUNCTION',f,p[5],p[6],'declared in',p[8])
files=subprocess.run(['git','-C',tree,'ls-files'],capture_output=True,text=True).stdout.split('\n')
changed=[]
for f in files:
    if not re.search(r'\.(cpp|h|cu|cuh|in)$',f): continue
    path=os.path.join(tree,f)
    data=open(path,'rb').read(); orig=data
    ed=[]
    for e in edits.get(f,[]):
        if e[0]=='ins':
            if data[e[1]-2:e[1]]==b'::': print('skipped after ::',f,data[e[1]-20:e[1]+20]); continue
            ed.append((e[1],e[1],e[2].encode()))
        elif e[0]=='rep': ed.append((e[1],e[1]+e[2],e[3].encode()))
        elif e[0]=='directive2':
            end=data.index(b';',e[1])+1; ed.append((end,end,('\nusing namespace '+e[2]+';').encode()))
        else:
            end=data.index(b';',e[1]); ed.append((end,end,('::'+e[2]).encode()))
    blocks=collections.OrderedDict()
    for b,en,want,name in sorted(set(fwd.get(f,[]))):
        ls=data.rfind(b'\n',0,b)+1; le=data.index(b'\n',en)+1
        line=data[ls:le]
        # a template header on the line before belongs to it
        if line.count(b';')!=1 or not line.rstrip().endswith(b';'): print('ODD forward declaration',f,line)
        blocks.setdefault(want,[]).append(line.strip())
        ed.append((ls,le,b''))
    ed=sorted(set(ed))
    last=-1; new=b''; pos=0
    for b,en,t in ed:
        if b<pos: print('OVERLAP',f,b,t); continue
        new+=data[pos:b]+t; pos=en
    new+=data[pos:]
    text=new.decode()
    # namespaces
    p=f.split('/'); room=x=None
    if f in TESTNS: room,x=TESTNS[f]
    elif p[0] in rooms: room,x=p[0],lib_of(f)
    if x:
        def sub(m):
            rest=m.group(2)
            if rest and own_kept(room,x,rest[2:]): return m.group(0)
            return m.group(1)+'::'+x+(rest or '')
        text=re.sub(r'(namespace shardscope::%s)((?:::\w+)*)(?=\s*(?:\{|$))'%room,sub,text,flags=re.M)
    if blocks:
        ins=''
        for want,ls in blocks.items():
            ls=[l.decode() for l in ls]
            close='}' if len(ls)==1 else '}  // namespace '+want
            ins+='namespace %s {\n%s\n%s\n\n'%(want,'\n'.join(ls),close)
        m=re.search(r'^namespace shardscope',text,re.M)
        text=text[:m.start()]+ins+text[m.start():]
        text=re.sub(r'^namespace [\w:]+ \{\n+\}[^\n]*\n\n?','',text,flags=re.M)
        text=re.sub(r'\n{3,}','\n\n',text)
    if text.encode()!=orig:
        open(path,'wb').write(text.encode()); changed.append(f)
open('/tmp/nstool/changed','w').write('\n'.join(changed)+'\n')
print('files changed',len(changed))
