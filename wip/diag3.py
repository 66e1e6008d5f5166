import sys; sys.path.insert(0,'/tmp/proto')
from month import *
jobs,clock=load(sys.argv[1]); days=28; S=eval(sys.argv[2])
qs=[.05,.1,.25,.5,.75,.9,.95]
from hpcrowd.agents.work.recorded import Work
def stats(win,j):
    j=j.take(np.arange(len(j))); j.recorded_submit[:]=j.recorded_start[:]=j.submit; j.recorded_end[:]=np.maximum(j.end,j.submit)
    w=Work.of(j); s=w.by_session; t=s.think_time; b=w.by_batch
    r=recorded_releases(BatchOrder(w)); 
    return t[t>=0], s.last-s.start, r.pause[r.reason!=0], np.bincount(s.session.astype(int)*0+1), np.bincount(b.session)
from hpcrowd.agents.behaviours.heldout import recorded_releases
A={}
for share in SH:
    parts=Parts.of(jobs,clock,share,days); win=Win(parts,days)
    def put(n,j):
        t,l,p,_,nb=stats(win,j)
        for k,v in (('think',t),('length',l),('pause',p),('batches/session',nb)): A.setdefault((k,n),[]).append(v)
    put('rec',clip(win,as_recorded(parts.work.jobs.take(parts.second_jobs))))
    put('first',as_recorded(parts.first.jobs))
    m=fit_learned([(parts.first,clock)],S)
    put('sim',clip(win,simulate(parts,maker_learned(parts,m),0,win.until)))
    nt=Noticed.of(parts.work,clock,m.forest.common,m.forest.prior); u=parts.work.by_batch
    rng=np.random.default_rng(0)
    for b in np.flatnonzero((u.start>win.since)&(u.start<win.until)&(nt.releases.reason!=0)):
        p,w=m.pauses(nt.features[b],nt.memory[b],int(nt.wall[b])); A.setdefault(('pause','one'),[]).append(rng.choice(p,3,p=w/w.sum()))
for n,v in sorted(A.items()): v=np.concatenate(v); print(n,len(v),np.quantile(v if 'batches' in n[0] else decades(v),qs).round(2), (v>3600).mean().round(3), 'mean',round(v.mean()/3600,3))
