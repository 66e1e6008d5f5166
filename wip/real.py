import sys,time; import numpy as np
from hpcrowd.environment.traces.formats.registry import read_trace
from hpcrowd.environment.traces.trace import jobs_from_trace
from hpcrowd.environment.clock import Clock
from hpcrowd.analysis.validation.parts import Parts
from hpcrowd.analysis.validation.forecasts import questions
from hpcrowd.analysis.validation.scores import crps,decades,user_means
from hpcrowd.analysis.models.users.learned import fit_learned, Settings
from hpcrowd.agents.learned.recorded import Noticed
import hpcrowd; print(hpcrowd.__file__)
def load(f):
    tr=read_trace(f); return jobs_from_trace(tr).jobs,Clock.of(tr.header)
def score(parts,model,asked=None,draws=40):
    asked=asked or questions(parts); f=model.forest
    nt=Noticed.of(parts.work,parts.clock,f.common,f.prior); bos=np.searchsorted(parts.work.by_batch.session,np.arange(len(parts.work.sessions)))
    rng=np.random.default_rng(0); out={}
    for k,q in asked.items():
        b=q.unit if k=='next_batch' else bos[q.unit]; a=np.full((len(b),draws),np.nan)
        for i,u in enumerate(b):
            p,w=model.pauses(nt.features[u],nt.memory[u],int(nt.wall[u])); g=p>=q.bound[i]-q.at[i]
            if not g.any(): a[i,0]=q.bound[i]-q.at[i]; continue
            a[i]=rng.choice(p[g],draws,p=w[g]/w[g].sum())
        s=crps(decades(a),decades(q.came-q.at)); out[k]=round(float(np.nanmean(user_means(s,q.user,len(parts.work.sessions.users)))),4)
    return out
if __name__=='__main__':
    for f in sys.argv[1:]:
        jobs,clock=load(f); parts=Parts.of(jobs,clock,.5)
        t=time.time(); m=fit_learned([(parts.first,clock)]); t1=time.time()-t
        m.save(__import__('pathlib').Path('/tmp/proto/m.parquet')); m2=type(m).load(__import__('pathlib').Path('/tmp/proto/m.parquet')); import os
        t=time.time(); print(f[-30:],score(parts,m2),'fit',round(t1,1),'score',round(time.time()-t,1),len(m.forest.pause),len(m.forest.members),os.path.getsize('/tmp/proto/m.parquet'),flush=True)
        for s in (Settings(pull=0.),Settings(pull=0.,absence=10**9),Settings(leaf=50),Settings(kept=100)):
            print(s,score(parts,fit_learned([(parts.first,clock)],s)),flush=True)
