import sys,pickle,numpy as np,time,warnings; warnings.filterwarnings('ignore')
sys.path.insert(0,'/tmp/proto')
from data import NAMES, lg
from hpcrowd.analysis.validation.scores import crps, decades
from sklearn.ensemble import RandomForestRegressor, ExtraTreesRegressor
WEEK=604800
TH=np.array([lg(x) for x in (1,10,30,60,120,300,600,1200,1800,3600,2*3600,4*3600,8*3600,12*3600,16*3600,86400,2*86400,3*86400,7*86400,14*86400,60*86400)])
def user_mean(s,u,n):
    c=np.bincount(u,minlength=n); m=np.bincount(u,s,minlength=n)
    return (m[c>0]/c[c>0]).mean()
def indicators(y): return (y[:,None]>TH[None,:]).astype(np.float32)
class QRF:
    def __init__(s,X,y,user,w=None,trees=30,leaf=20,mf=.4,kind=RandomForestRegressor,seed=0,**k):
        s.m=np.nanmedian(X,axis=0); s.m=np.where(np.isfinite(s.m),s.m,0)
        X=s.prep(X); s.y=y; s.user=user
        dt=np.diff(TH); wt=np.sqrt(np.concatenate([[.3],np.minimum(dt,.4)]))
        s.f=kind(trees,min_samples_leaf=leaf,max_features=mf,n_jobs=1,random_state=seed,**k)
        s.f.fit(X,indicators(y)*wt,sample_weight=w)
        L=s.f.apply(X); s.T=L.shape[1]
        s.o=[np.argsort(L[:,t],kind='stable') for t in range(s.T)]
        s.L=[L[o,t] for t,o in enumerate(s.o)]
        s.w=w
    def prep(s,X): return np.where(np.isfinite(X),X,-2.).astype(np.float32)
    def draw(s,X,rng,d,user=None,prior=None,ok=None,tries=200):
        L=s.f.apply(s.prep(X)); n=len(X); out=np.full((n,d),np.nan)
        for i in range(n):
            pools=[]; ws=[]
            for t in range(s.T):
                a,b=np.searchsorted(s.L[t],[L[i,t],L[i,t]+1]); r=s.o[t][a:b]; pools.append(r); 
                w=np.ones(len(r)) if s.w is None else s.w[r].astype(float)
                if prior is not None and user is not None:
                    own=s.user[r]==user[i]; k=own.sum(); 
                    if k: 
                        lam=k/(k+prior); w=w/w.sum()*(1-lam); w[own]+=lam/k
                ws.append(w/w.sum())
            r=np.concatenate(pools); w=np.concatenate(ws)
            v=s.y[r]
            if ok is not None:
                g=v>=ok[i]
                if not g.any(): out[i,0]=ok[i]; continue
                v,w=v[g],w[g]
            out[i]=v[rng.choice(len(v),d,p=w/w.sum())]
        return out
def asked_rows(D,kind):
    q=D['asked'][kind]; b=q.unit if kind=='next_batch' else D['batch_of_session'][q.unit]
    return q,b
def evaluate(D,draw,draws=40):
    res={}
    for kind in ('next_batch','next_session'):
        q,b=asked_rows(D,kind)
        ok=lg(q.bound-q.at) 
        a=draw(b,ok,draws,q)
        s=crps(np.maximum(a,0),lg(q.came-q.at)); res[kind]=user_mean(s,q.user,D['nU'])
    return res
