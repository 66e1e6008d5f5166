import sys; sys.path.insert(0,'/tmp/proto')
from forest import *
D=pickle.load(open('/tmp/proto/KTH.pkl','rb')); tr=D['R'][D['known'][D['R']]]; y=D['y']; rng=np.random.default_rng(0)
q,b=asked_rows(D,'next_batch'); obs=lg(q.came-q.at); print(np.quantile(obs,[.1,.5,.9]))
pool={r:y[tr[D['reason'][tr]==r]] for r in (1,2)}
a=np.array([rng.choice(pool[D['reason'][u]],40) for u in b]); s=crps(a,obs)
print(s.mean(), np.abs(a-obs[:,None]).mean(), np.abs(np.median(a,axis=1)-obs).mean(), a.shape)
print(np.abs(a[:,:20]-a[:,20:]).mean()/2)
s2=crps(a.copy(),obs); print(s2.mean(), s.dtype, a.dtype)
# manual
m=np.abs(a-obs[:,None]).mean(1)- np.array([np.abs(r[:,None]-r[None]).sum()/(40*39)/2 for r in a]); print(m.mean())
