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
    hw=lambda i,p: ((aw[i]+p)%WEEK//HOUR).astype(int)
    # operational pause
    yop=np.full(len(y),np.nan)
    for i in R: yop[i]=lg(active(P[i],np.array([aw[i]+pause[i]]))[0]-active(P[i],np.array([aw[i]]))[0])
    pa=np.full(len(y),np.nan)
    for i in R: pa[i]=P[i][hw(i,pause[i])]
    # smoothing of profile for weights
    true_h=hw(te,pause[te]); half=len(te)//2
    rng=np.random.default_rng(0); sub=rng.permutation(te)[:6000]; true_s=hw(sub,pause[sub])
    ok0=np.zeros(len(y))
    def report(label,draw):
        r={k:round(float(v),4) for k,v in evaluate(D,draw).items()}
        a=draw(sub,ok0[sub],5,None); h=np.concatenate([hw(sub,sec(a[:,j])) for j in range(a.shape[1])])
        print(name,label,r,'tv',round(tv(h,np.repeat(hw(sub,pause[sub]),5)),4),'tv long',round(tv(hw(np.repeat(sub,5),sec(a.ravel()))[np.nan_to_num(sec(a.ravel()))>3600],hw(sub,pause[sub])[pause[sub]>3600]),4),flush=True)
    q=QRF(X[tr],y[tr],D['user'][tr],w,leaf=20,trees=20)
    L={}
    def leaves(b): return q.f.apply(q.prep(X[b]))
    def raw(b,ok,d,_):
        out=np.full((len(b),d),np.nan); Lb=leaves(b)
        for k in range(len(b)):
            r,ww=pools(q,Lb[k],k); v=q.y[r]; g=v>=ok[k]
            if not g.any(): out[k,0]=ok[k]; continue
            out[k]=rng.choice(v[g],d,p=ww[g]/ww[g].sum())
        return out
    report('raw',raw)
    patr=pa[tr]
    for power in (.5,1.):
        def rew(b,ok,d,_):
            out=np.full((len(b),d),np.nan); Lb=leaves(b)
            for k in range(len(b)):
                i=b[k]; r,ww=pools(q,Lb[k],k); v=q.y[r]; g=v>=ok[k]
                if not g.any(): out[k,0]=ok[k]; continue
                v=v[g]; ww=ww[g]*(P[i][hw(i,sec(v))]/patr[r[g]])**power
                out[k]=rng.choice(v,d,p=ww/ww.sum())
            return out
        report(f'weights^{power}',rew)
    q2=q; qo=QRF(X[tr],yop[tr],D['user'][tr],w,leaf=20,trees=20)
    def op(b,ok,d,_):
        out=np.full((len(b),d),np.nan); Lb=qo.f.apply(qo.prep(X[b]))
        for k in range(len(b)):
            i=b[k]; r,ww=pools(qo,Lb[k],k); v=qo.y[r]
            a0=active(P[i],np.array([float(aw[i])]))[0]
            t=lg(inv(P[i],a0+sec(v))-aw[i]); g=t>=ok[k]
            if not g.any(): out[k,0]=ok[k]; continue
            out[k]=rng.choice(t[g],d,p=ww[g]/ww[g].sum())
        return out
    report('operational',op)
    def mix(b,ok,d,_):
        # short pauses as they are, long ones in active time of same forest
        out=np.full((len(b),d),np.nan); Lb=leaves(b); yo=yop[tr]
        for k in range(len(b)):
            i=b[k]; r,ww=pools(q,Lb[k],k); v=q.y[r]
            a0=active(P[i],np.array([float(aw[i])]))[0]
            t=np.where(v<lg(3600),v,lg(inv(P[i],a0+sec(yo[r]))-aw[i])); g=t>=ok[k]
            if not g.any(): out[k,0]=ok[k]; continue
            out[k]=rng.choice(t[g],d,p=ww[g]/ww[g].sum())
        return out
    report('mix',mix)
