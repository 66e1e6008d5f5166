import sys; sys.path.insert(0,'/tmp/proto')
from forest import *
names=sys.argv[1].split(',')
Ds={n:pickle.load(open(f'/tmp/proto/{n}.pkl','rb')) for n in names}
drop=[i for i,n in enumerate(NAMES) if n in ()]
for hold in names:
    Xs=[];ys=[];us=[];ws=[]
    for k,n in enumerate(names):
        if n==hold: continue
        D=Ds[n]; r=D['R']; c=np.bincount(D['user'][r],minlength=D['nU'])
        w=1/np.sqrt(c[D['user'][r]]); w/=w.sum()
        Xs.append(D['X'][r]); ys.append(D['y'][r]); us.append(D['user'][r]+k*10**6); ws.append(w)
    w=np.concatenate(ws); w/=w.mean()
    q=QRF(np.concatenate(Xs),np.concatenate(ys),np.concatenate(us),w,leaf=50,trees=20)
    D=Ds[hold]; rng=np.random.default_rng(0)
    print('LOLO',hold,{k:round(float(v),4) for k,v in evaluate(D,lambda b,ok,d,qq:q.draw(D['X'][b],rng,d,None,None,ok)).items()},flush=True)
