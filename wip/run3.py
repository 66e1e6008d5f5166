import sys; sys.path.insert(0,'/tmp/proto')
from forest import *
name=sys.argv[1]
D=pickle.load(open(f'/tmp/proto/{name}.pkl','rb')); tr=D['R'][D['known'][D['R']]]
y=D['y']; rng=np.random.default_rng(0)
pool={r:y[tr[D['reason'][tr]==r]] for r in (1,2)}
print({r:(len(v),np.quantile(v,[.1,.25,.5,.75,.9]).round(2)) for r,v in pool.items()})
te=D['R'][~D['known'][D['R']]]
print({r:np.quantile(y[te[D['reason'][te]==r]],[.1,.25,.5,.75,.9]).round(2) for r in (1,2)})
def draw(b,ok,d,q):
    out=np.full((len(b),d),np.nan)
    for i,u in enumerate(b):
        v=pool[D['reason'][u]]
        if ok is not None: v=v[v>=ok[i]]
        out[i]=rng.choice(v,d) if len(v) else ok[i]
    return out
print('pooled',evaluate(D,draw))
q,b=asked_rows(D,'next_batch'); print(len(b), np.abs(q.came-D['start'][b]).max(), np.abs(q.at-D['at'][b]).max(), D['cont'][b].mean())
# by reason
a=draw(b,None,40,q); s=crps(a,lg(q.came-q.at)); print([ (user_mean(s[D['reason'][b]==r],q.user[D['reason'][b]==r],D['nU']),(D['reason'][b]==r).sum()) for r in (1,2)])
# similar
