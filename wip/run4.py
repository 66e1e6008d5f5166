import sys; sys.path.insert(0,'/tmp/proto')
from hpcrowd.environment.traces.formats.registry import read_trace
from hpcrowd.environment.traces.trace import jobs_from_trace
from hpcrowd.environment.clock import Clock
from hpcrowd.analysis.validation.parts import *
from hpcrowd.analysis.validation.evidence import *
import numpy as np
tr=read_trace(sys.argv[1]); parts=Parts.of(jobs_from_trace(tr).jobs,Clock.of(tr.header),.5)
asked=questions(parts)
from hpcrowd.analysis.validation.scores import user_means
for m in ('pooled','similar','adjusted'):
    f=Forecaster(parts,UserModel.of(m),0)
    for k in asked:
        s=f.scores(k,asked[k])['crps']; v=user_means(s,asked[k].user,len(parts.work.sessions.users)); print(m,k,np.nanmean(v))
print('---')
import pickle
D=pickle.load(open('/tmp/proto/KTH.pkl','rb'))
q=asked['next_batch']; f=Forecaster(parts,UserModel.of('pooled'),0)
print((q.unit==D['asked']['next_batch'].unit).all(), (q.came==D['asked']['next_batch'].came).all())
s=f.scores('next_batch',q)
print(s['crps'].mean(), s['error'].mean(), len(s['crps']))
rows=D['R'][D['known'][D['R']]]
beh=f.users[0].behaviour; pool=beh.pool
for r in (1,2):
    print(r,len(pool._rows[r][1]), np.quantile(decades(pool.releases.pause[pool._rows[r][1]]),[.1,.25,.5,.75,.9]))
    mine=rows[D['reason'][rows]==r]; print(len(mine), np.quantile(D['y'][mine],[.1,.25,.5,.75,.9]))
i=5; u=int(q.unit[i]); print(u, [ (f.users[int(q.user[i])].behaviour.arrival(f.users[int(q.user[i])], f._releases[type(beh.when)].of(u))-q.at[i]) for _ in range(8)], q.bound[i]-q.at[i], q.came[i]-q.at[i])
print('===')
for i in (5,100,800):
    u=int(q.unit[i]); us=f.users[int(q.user[i])]
    a=np.array([us.behaviour.arrival(us, f._releases[type(beh.when)].of(u))-q.at[i] for _ in range(3000)]); print(i,f._releases[type(beh.when)].of(u), np.quantile(decades(a),[.1,.25,.5,.75,.9]))
ans=np.array([[us.behaviour.arrival(us:=f.users[int(q.user[i])], f._releases[type(beh.when)].of(int(q.unit[i])))-q.at[i] for _ in range(20)] for i in range(len(q))])
from hpcrowd.analysis.validation.scores import crps
o=decades(q.came-q.at)
print(crps(decades(ans),o).mean())
fr=np.array([f._releases[type(beh.when)].of(int(u)).reason for u in q.unit]); print((fr==D['reason'][q.unit]).mean())
rng=np.random.default_rng(0); y=D['y']
pool={r:y[rows[D['reason'][rows]==r]] for r in (1,2)}
m=np.array([rng.choice(pool[D['reason'][u]],20) for u in q.unit]); print(crps(m,o).mean(), np.abs(m-o[:,None]).mean(), np.abs(decades(ans)-o[:,None]).mean())
print(np.quantile(m,[.1,.5,.9]),np.quantile(decades(ans),[.1,.5,.9]))
for us_ in range(0,3): 
    k=q.user==q.user[us_*400]; print(k.sum(), m[k].mean(), decades(ans)[k].mean(), o[k].mean())
