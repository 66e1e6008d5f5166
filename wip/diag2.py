import sys; sys.path.insert(0,'/tmp/proto')
from month import *
import hpcrowd.agents.learned.think as T

jobs,clock=load(sys.argv[1]); days=28; S=eval(sys.argv[2]) if len(sys.argv)>2 else Settings(even=0.)
qs=[.05,.1,.25,.5,.75,.9,.95]
def thinks(win,j):
    j=j.take(np.arange(len(j))); j.recorded_submit[:]=j.recorded_start[:]=j.submit; j.recorded_end[:]=np.maximum(j.end,j.submit)
    from hpcrowd.agents.work.recorded import Work
    s=Work.of(j).by_session; t=s.think_time; return t[t>=0]
A={'rec':[],'sim':[],'first':[],'one':[],'recu':[]}
for share in SH:
    parts=Parts.of(jobs,clock,share); win=Win(parts,days)
    A['rec'].append(thinks(win,clip(win,as_recorded(parts.second.jobs))))
    A['first'].append(thinks(win,as_recorded(parts.first.jobs)))
    m=fit_learned([(parts.first,clock)],S)
    for s in range(2): A['sim'].append(thinks(win,clip(win,simulate(parts,maker_learned(parts,m),s,win.until))))
    nt=Noticed.of(parts.work,clock,m.forest.common,m.forest.prior); u=parts.work.by_batch
    rng=np.random.default_rng(0)
    for b in np.flatnonzero((u.start>win.since)&(u.start<win.until)&(nt.releases.reason!=0)):
        p,w=m.pauses(nt.features[b],nt.memory[b],int(nt.wall[b])); A['one'].append(rng.choice(p,3,p=w/w.sum())); A['recu'].append(nt.releases.pause[b:b+1])
for n,v in A.items(): v=np.concatenate(v); print(n,len(v),np.quantile(decades(v),qs).round(2), (v>3600).mean().round(3), 'mean h',round(v.mean()/3600,1))
