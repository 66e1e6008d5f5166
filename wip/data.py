"""Dataset of releases with features known at the release."""
import sys, numpy as np, pickle, os, time
from pathlib import Path
from hpcrowd.analysis.validation.parts import Parts, UserModel
from hpcrowd.analysis.validation.evidence import questions
from hpcrowd.agents.behaviours.heldout import recorded_releases
from hpcrowd.agents.behaviours.when import BatchOrder, Reason
from hpcrowd.environment.clock import Clock, HOUR, WEEK, DAY

def lg(x): return np.log10(1+np.maximum(x,0)/60.)

NAMES=['ended','resp','wait','run','req','resp_req','run_req','fail','procs','njobs','open','slen','sbatches','hour','dow','tsin','own_last','own_last2','own_ema_e','own_ema_f','own_ema_long','own_cont','own_n','age','grp_ema','site_ema','site_ema_f','dens','denshere8','ndeps','bspan','hour_s','hour_c','own_short','own_sd','days_active','silent','own_last_b','own_resp_ema']
def build(trace, share=.5):
    from hpcrowd.environment.traces.trace import jobs_from_trace
    jobs=jobs_from_trace(trace).jobs; clock=Clock.of(trace.header)
    smap=dict(zip(trace['number'].tolist(),trace['status'].tolist()))
    parts=Parts.of(jobs, clock, share)
    work=parts.work; order=BatchOrder(work); rel=recorded_releases(order); U=order.units
    n=len(U); J=work.jobs
    at=rel.at; reason=rel.reason; start=U.start; last=U.last; end=U.end; user=U.user; sess=U.session; cont=U.continues
    # decisive job of each unit
    unit=np.repeat(np.arange(n),np.diff(U.first)); e=J.recorded_end[U.rows]
    o=np.lexsort((np.arange(len(e)),e,unit)); dec=U.rows[o[U.first[1:]-1]]
    resp=J.recorded_end[dec]-J.recorded_submit[dec]; wait=np.maximum(J.recorded_start[dec]-J.recorded_submit[dec],0)
    run=np.maximum(J.run_time[dec],0); req=J.requested_time[dec].astype(float); req[req<=0]=np.nan
    status=np.array([smap.get(k,1) for k in J.number[dec].tolist()])
    fail=(status!=1).astype(float)
    procs=J.processors[dec]; nj=np.diff(U.first)
    group=J.group[dec]
    g_ids={g:i for i,g in enumerate(np.unique(group))}
    nU=len(work.sessions.users)
    X=np.full((n,len(NAMES)),np.nan)
    hw=(clock.second_of_week(start)//HOUR).astype(int)
    ahw=clock.second_of_week(np.maximum(at,0)); 
    ev=[]
    R=np.flatnonzero(reason!=Reason.START)
    times=np.concatenate([at[R],start]); us=np.concatenate([user[R],user]); ix=np.concatenate([R,np.arange(n)]); ty=np.concatenate([np.zeros(len(R),int),np.ones(n,int)])
    ordr=np.lexsort((ty,ix,us,times))
    PR=5.
    site=np.ones(168); cnt=np.zeros((nU,168))
    al=.15
    S=np.full((nU,16),np.nan); own_n=np.zeros(nU); first=np.full(nU,-1.); nday=np.zeros(nU); lastday=np.full(nU,-1)
    last_sess_start=np.zeros(nU); sbat=np.zeros(nU)
    ge={}; sitee=np.array([1.5,1.5]); G=np.full((len(g_ids),),np.nan)
    y=lg(start-at); yop=np.full(n,np.nan); P=np.zeros((n,168),np.float32)
    def upd(o,v,a=al): return v if o!=o else o+a*(v-o)
    for k in ordr:
        i=ix[k];u=us[k];s=S[u]
        if ty[k]==0:
            a=rel.awaited[i]; en=reason[i]==Reason.ENDED
            src=a if (en and a>=0) else i-1
            f=X[i]
            f[0]=en; f[1]=lg(resp[src]) if en else -1; f[2]=lg(wait[src]) if en else -1; f[3]=lg(run[src]) if en else -1; f[4]=lg(req[src]); f[5]=f[1]-f[4]; f[6]=f[3]-f[4]
            f[7]=fail[src] if en else -1; f[8]=np.log2(max(procs[src],1)); f[9]=np.log2(nj[i-1])
            lo=max(U.user_first[u],i-40)
            f[10]=np.sum(end[lo:i]>at[i])
            f[11]=lg(at[i]-last_sess_start[u]); f[12]=np.log2(1+sbat[u])
            h=ahw[i]/HOUR; f[13]=h%24; f[14]=h//24; f[15]=lg(at[i]-last[i-1])
            f[16]=s[0];f[17]=s[1];f[18]=s[2];f[19]=s[3];f[20]=s[4];f[21]=s[5];f[22]=np.log2(1+own_n[u]);f[23]=lg(at[i]-first[u])
            f[24]=G[g_ids[group[i-1]]];f[25]=sitee[0];f[26]=sitee[1]
            prof=cnt[u]+PR*site/site.sum(); prof=prof/prof.mean(); P[i]=prof
            hh=int(h); f[27]=np.log(prof[hh%168]); f[28]=np.log(prof[(hh+np.arange(1,9))%168].mean())
            f[29]=nj[src] if en else 0; f[30]=lg(last[i-1]-start[i-1]); f[31]=np.sin(h%24/24*2*np.pi); f[32]=np.cos(h%24/24*2*np.pi)
            f[33]=s[6];f[34]=s[7];f[35]=np.log2(1+nday[u]);f[36]=0;f[37]=s[8];f[38]=s[9]
        else:
            if first[u]<0: first[u]=start[i]
            if reason[i]!=Reason.START:
                v=y[i]; s[1]=s[0]; s[0]=v
                en=reason[i]==Reason.ENDED; j=2 if en else 3
                m=s[j]; s[j]=upd(s[j],v)
                if m==m: s[7]=upd(s[7],abs(v-m))
                long=start[i]-at[i]>HOUR
                if long: s[4]=upd(s[4],v)
                else: s[6]=upd(s[6],v)
                s[5]=upd(s[5],float(cont[i]))
                if not cont[i]: s[8]=v
                g=g_ids[group[i]]; G[g]=upd(G[g],v,.02); sitee[0 if en else 1]+=.005*(v-sitee[0 if en else 1])
                own_n[u]+=1
            if not cont[i]: last_sess_start[u]=start[i]; sbat[u]=0
            sbat[u]+=1
            d=start[i]//DAY
            if d!=lastday[u]: nday[u]+=1; lastday[u]=d
            s[9]=upd(s[9],lg(resp[i]))
            cnt[u,hw[i]]+=1; site[hw[i]]+=1
    asked=questions(parts,0,30)
    return dict(X=X,y=y,P=P,R=R,user=user,at=at,start=start,known=parts.known[sess],reason=reason,cont=cont,asked=asked,since=parts.since,ahw=ahw,nU=nU,batch_of_session=np.searchsorted(sess,np.arange(sess.max()+1)),resp=resp,awaited=rel.awaited,last=last)

if __name__=='__main__':
    from hpcrowd.environment.traces.formats.registry import read_trace
    for f in sys.argv[1:]:
        t=time.time(); tr=read_trace(f)
        d=build(tr); name=Path(f).name.split('-')[0]
        pickle.dump(d,open(f'/tmp/proto/{name}.pkl','wb')); print(name,len(d['R']),time.time()-t)
