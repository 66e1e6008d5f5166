import sys; sys.path.insert(0,'/tmp/proto')
from forest import *
HOUR=3600
def active(P,wall):  # P (168,) mean 1; wall s since monday
    c=np.concatenate([[0],np.cumsum(P,dtype=float)])*HOUR
    wk,r=np.divmod(wall,WEEK); h=(r//HOUR).astype(int)
    return wk*WEEK+c[h]+P[h]*(r-h*HOUR)
def inv(P,a):
    c=np.concatenate([[0],np.cumsum(P,dtype=float)])*HOUR
    wk,r=np.divmod(a,c[-1]); h=np.minimum(np.searchsorted(c,r,side='right')-1,167)
    return wk*WEEK+h*HOUR+(r-c[h])/np.maximum(P[h],1e-9)
def pools(q,Li,i,own=None,prior=None,user=None):
    rs=[];ws=[]
    for t in range(q.T):
        a,b=np.searchsorted(q.L[t],[Li[t],Li[t]+1]); r=q.o[t][a:b]; w=q.w[r].astype(float); rs.append(r); ws.append(w/w.sum())
    return np.concatenate(rs),np.concatenate(ws)
def tv(a,b,n=168):
    a=np.bincount(a,minlength=n)/len(a); b=np.bincount(b,minlength=n)/len(b); return abs(a-b).sum()/2
for name in sys.argv[1:]:
    D=pickle.load(open(f'/tmp/proto/{name}.pkl','rb')); R=D['R']; tr=R[D['known'][R]]; te=R[~D['known'][R]]
    X=D['X'];y=D['y'];P=D['P'];aw=D['ahw'];pause=(D['start']-D['at']).astype(float)
    cnt=np.bincount(D['user'][tr],minlength=D['nU']); w=1/np.sqrt(cnt[D['user'][tr]])
    sec=lambda v:(10**v-1)*60
    hw=lambda i,p: np.asarray((aw[i]+p)%WEEK//HOUR).astype(int)

    true_h=hw(te,pause[te]); rng=np.random.default_rng(0); sub=rng.permutation(te)[:6000]
    ok0=np.zeros(len(y))
    def report(label,draw):
        r={k:round(float(v),4) for k,v in evaluate(D,draw).items()}
        a=draw(sub,ok0[sub],5,None); h=np.concatenate([hw(sub,sec(a[:,j])) for j in range(a.shape[1])])
        print(name,label,r,'tv',round(tv(h,np.repeat(hw(sub,pause[sub]),5)),4),'tv long',round(tv(hw(np.repeat(sub,5),sec(a.ravel()))[np.nan_to_num(sec(a.ravel()))>3600],hw(sub,pause[sub])[pause[sub]>3600]),4),flush=True)
    te_=te; h1=hw(te,pause[te]); m=len(te)//2; o=np.argsort(D['start'][te]); print(name,'halves tv',tv(h1[o[:m]],h1[o[m:]]), 'first', tv(hw(tr,pause[tr]),h1))
    DAY=86400
    day=((aw+np.where(np.isfinite(pause),pause,0))//DAY-aw//DAY).astype(int); tod=((aw+pause)%DAY)
    # smooth profile: hour of day x (weekday/weekend), from P counts
    W=np.arange(168)
    def smooth(p,prior):
        # p: mean 1, from counts + 5*site: unknown n; use as is, circular smoothing over +-1.5h and pooling weekdays
        d=p.reshape(7,24); wk=d[:5].mean(0); we=d[5:].mean(0); 
        ker=np.array([.25,.5,.25]); 
        wk=sum(k*np.roll(wk,j) for j,k in zip((-1,0,1),ker)); we=sum(k*np.roll(we,j) for j,k in zip((-1,0,1),ker))
        out=np.concatenate([np.tile(wk,5),np.tile(we,2)]); return out/out.mean()
    PS=np.array([smooth(p,0) for p in P[:]])
    pas=np.array([PS[i][hw(i,pause[i])] if np.isfinite(pause[i]) else 1 for i in range(len(y))])
    now=np.array([PS[i][hw(i,0.)] for i in range(len(y))])
    q=QRF(X[tr],y[tr],D['user'][tr],w,leaf=20,trees=20)
    dtr,ttr,ptr=day[tr],tod[tr],pause[tr]
    def leaves(b): return q.f.apply(q.prep(X[b]))
    def make(clockish,power,least=1,blend=0):
        def f(b,ok,d,_):
            out=np.full((len(b),d),np.nan); Lb=leaves(b)
            for k in range(len(b)):
                i=b[k]; r,ww=pools(q,Lb[k],k); p=ptr[r].copy()
                if clockish:
                    g=dtr[r]>=least; p[g]=(aw[i]//DAY+dtr[r[g]])*DAY+ttr[r[g]]-aw[i]
                if power: ww=ww*np.clip((PS[i][hw(i,p)]/PS[i][hw(i,0.)])/(pas[tr][r]/now[tr][r]),.05,20)**power
                v=lg(p); g=(v>=ok[k])&(p>=0)
                if not g.any(): out[k,0]=ok[k]; continue
                out[k]=rng.choice(v[g],d,p=ww[g]/ww[g].sum())
            return out
        return f
    report('raw w.5',make(0,.5)); report('raw w1',make(0,1.)); report('clock w.5',make(1,.5)); report('clock w1',make(1,1.))
