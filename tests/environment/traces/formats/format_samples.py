"""Files of formats as other programs write them, each with many odd things; for several tests."""

from typing import Any

#: A day of Torque: it ends well, fails, is deleted in the queue, deleted, aborted, and is not over.
TORQUE = """\
04/18/2009 00:00:00;L;license;floating license hour:3 day:3
04/18/2009 00:00:15;Q;123.server;queue=batch
04/18/2009 00:00:20;Q;124.server;queue=long
04/18/2009 00:00:30;Q;125.server;queue=batch
04/18/2009 00:01:00;S;123.server;user=alice group=chem jobname=STDIN queue=batch \
ctime=1240012815 qtime=1240012815 etime=1240012815 start=1240012860 owner=alice@login \
exec_host=n1/3+n1/2+n1/1+n1/0+n2/3+n2/2+n2/1+n2/0 Resource_List.nodes=2:ppn=4 \
Resource_List.walltime=01:00:00 Resource_List.pmem=2gb
04/18/2009 00:02:00;D;125.server;requestor=bob@login
04/18/2009 00:21:00;E;123.server;user=alice group=chem account=p17 jobname=STDIN queue=batch \
ctime=1240012815 qtime=1240012815 etime=1240012815 start=1240012860 owner=alice@login \
exec_host=n1/3+n1/2+n1/1+n1/0+n2/3+n2/2+n2/1+n2/0 Resource_List.nodes=2:ppn=4 \
Resource_List.walltime=01:00:00 Resource_List.pmem=2gb session=31 end=1240014060 Exit_status=0 \
resources_used.cput=01:20:00 resources_used.mem=1600kb resources_used.vmem=9mb \
resources_used.walltime=00:20:00
04/18/2009 00:30:00;E;124.server;user=bob group=chem jobname=my long job queue=long \
ctime=1240012820 qtime=1240012820 etime=1240012820 start=1240012900 exec_host=n3/0-1 \
Resource_List.ncpus=2 Resource_List.walltime=600 end=1240014600 Exit_status=271
04/18/2009 00:31:00;Q;126.server;queue=batch
04/18/2009 00:31:05;S;126.server;user=bob queue=batch ctime=1240014660 start=1240014665
04/18/2009 00:32:00;D;126.server;requestor=bob@login
04/18/2009 00:32:05;E;126.server;user=bob queue=batch ctime=1240014660 start=1240014665 \
end=1240014725 Exit_status=271
04/18/2009 00:40:00;Q;127.server;queue=batch
04/18/2009 00:40:01;A;127.server;
04/18/2009 00:50:00;Q;128.server;queue=batch
04/18/2009 00:51:00;Q;129.server;queue=batch
04/18/2009 00:51:05;S;129.server;user=bob queue=batch ctime=1240015860 start=1240015865
"""
#: PBS Professional: arrays, chunks, reruns, reservations, quotes.
PROFESSIONAL = """\
03/06/2023 01:38:30;Q;9[].ml;user=ann queue=workq ctime=1678066710
03/06/2023 01:38:31;U;R5.ml;requestor=root@ml
03/06/2023 01:40:00;E;9[2].ml;user=ann group=g project=_pbs_project_default jobname="a b=c" \
queue=workq ctime=1678066710 qtime=1678066710 etime=1678066715 start=1678066720 \
exec_host=v1/0*8+v2/0*8 exec_vnode=(v1:ncpus=8:mem=4gb)+(v2:ncpus=8) Resource_List.mem=8gb \
Resource_List.ncpus=16 Resource_List.nodect=2 Resource_List.place=free \
Resource_List.select=2:ncpus=8:mem=4gb end=1678066800 Exit_status=0 run_count=1
03/06/2023 01:41:00;S;10.ml;user=ann ctime=1678066711 start=1678066860 exec_vnode=(v1:ncpus=1)
03/06/2023 01:42:00;R;10.ml;user=ann ctime=1678066711 start=1678066860 \
end=1678066920 Exit_status=-11
03/06/2023 01:50:00;E;10.ml;user=ann ctime=1678066711 start=1678067000 exec_host=v1/0 \
exec_vnode=(v1:ncpus=1) Resource_List.select=1 end=1678067400 Exit_status=1
03/06/2023 01:51:00;E;9[].ml;user=ann queue=workq ctime=1678066710 end=1678067460 Exit_status=0
"""

#: Records of Son of Grid Engine 8.1.9, as it wrote them for invented users: a job, a task of an
#: array, a parallel job and its two tasks, one without a shell, one over its limit, one that asked
#: twice to be run again, a deleted one, one that was rescheduled, requests.
GRIDENGINE = """\
# Version: 8.1.9
#
# DO NOT MODIFY THIS FILE MANUALLY!
#
all.q:vm:physics:ada:plain1:1:sge:0:1795454077:1795454077:1795454079:0:0:2:0.142282:0.003324:\
4972.000000:0:0:0:0:551:0:0:8.000000:16:0:0:0:12:71:NONE:defaultdepartment:NONE:1:0:0.145606:\
0.000062:0.000030:-l h_rt=3600,h_vmem=4G:0.000000:NONE:1687552.000000:0:0
all.q:vm:chemistry:bob:arr:5:sge:0:1795454078:1795454079:1795454080:0:0:1:0.141257:0.003958:\
4752.000000:0:0:0:0:553:0:0:0.000000:8:0:0:0:12:70:NONE:defaultdepartment:NONE:1:1:0.145215:\
0.000107:0.000037:NONE:0.000000:NONE:3653632.000000:0:0
all.q:vm:physics:ada:paral:10:sge:0:1795454080:1795454080:1795454081:0:0:1:0.007969:0.000000:\
4784.000000:0:0:0:0:627:0:0:0.000000:40:0:0:0:8:3:NONE:defaultdepartment:smp:2:0:0.007969:\
0.000000:0.000032:-l h_rt=3600 -pe smp 2,3:0.000000:2.localhost:7700480.000000:0:0
all.q:vm:physics:ada:paral:10:sge:0:1795454080:1795454080:1795454083:0:0:3:0.002217:0.006854:\
4908.000000:0:0:0:0:629:0:0:0.000000:48:0:0:0:8:3:NONE:defaultdepartment:smp:2:0:0.009071:\
0.000000:0.000012:-l h_rt=3600 -pe smp 2,3:0.000000:1.localhost:3592192.000000:0:0
all.q:vm:physics:ada:paral:10:sge:0:1795454078:1795454080:1795454084:0:0:4:0.094812:0.021950:\
17916.000000:0:0:0:0:13996:1:0:64.000000:16:0:0:0:298:136:NONE:defaultdepartment:smp:2:0:\
0.116762:0.000000:0.001380:-l h_rt=3600 -pe smp 2,3:0.000000:NONE:19128320.000000:0:0
all.q:vm:physics:ada:fixed:11:sge:0:1795454078:1795454086:1795454087:0:0:1:0.143069:0.004114:\
5008.000000:0:0:0:0:560:0:0:0.000000:8:0:0:0:11:50:physics_p:defaultdepartment:smp:2:0:\
0.147183:0.000111:0.000034:-pe smp 2:0.000000:NONE:3698688.000000:0:0
all.q:vm:physics:ada:noshell:12:sge:0:1795454078:0:0:27:0:0:0.000000:0.000000:0.000000:0:0:0:0:\
0:0:0:0.000000:0:0:0:0:0:0:NONE:defaultdepartment:NONE:1:0:0.000000:0.000000:0.000000:NONE:\
0.000000:NONE:0.000000:0:0
all.q:vm:physics:ada:limit:8:sge:0:1795454078:1795454085:1795454090:37:137:5:0.150362:0.000000:\
4860.000000:0:0:0:0:482:0:0:0.000000:16:0:0:0:8:38:NONE:defaultdepartment:NONE:1:0:0.150362:\
0.000119:0.000037:-l h_rt=4:0.000000:NONE:3690496.000000:0:0
all.q:vm:physics:ada:ex99:16:sge:0:1795454079:1795454091:1795454092:25:99:1:0.154188:0.000000:\
4864.000000:0:0:0:0:551:0:0:0.000000:8:0:0:0:10:49:NONE:defaultdepartment:NONE:1:0:0.154188:\
0.000126:0.000037:NONE:0.000000:NONE:3604480.000000:0:0
all.q:vm:physics:ada:ex99:16:sge:0:1795454093:1795454197:1795454198:25:99:1:0.142306:0.003758:\
4800.000000:0:0:0:0:560:0:0:0.000000:8:0:0:0:13:41:NONE:defaultdepartment:NONE:1:0:0.146064:\
0.000107:0.000037:NONE:0.000000:NONE:3661824.000000:0:0
all.q:vm:chemistry:bob:delrun:26:sge:0:1795454384:1795454384:1795454388:100:137:4:0.146226:\
0.000000:4988.000000:0:0:0:0:476:0:0:0.000000:8:0:0:0:10:48:NONE:defaultdepartment:NONE:1:0:\
0.146226:0.000114:0.000037:NONE:0.000000:NONE:3620864.000000:0:0
all.q:vm:physics:ada:rerun:30:sge:0:0:0:0:25:0:0:0.000000:0.000000:0.000000:0:0:0:0:0:0:0:\
0.000000:0:0:0:0:0:0:NONE:defaultdepartment:NONE:1:0:0.000000:0.000000:0.000000:-l h_rt=600:\
0.000000:NONE:0.000000:0:0
all.q:vm:physics:ada:reqs:35:grant_7:0:1795454402:1795454409:1795454410:0:0:1:0.142524:\
0.004170:4728.000000:0:0:0:0:550:0:0:0.000000:8:0:0:0:11:40:NONE:defaultdepartment:NONE:1:0:\
0.146694:0.000107:0.000037:-q all.q -l h_cpu=1800,mem_free=100m -soft -l h_vmem=1g:0.000000:\
NONE:3620864.000000:0:0
all.q:vm:physics:ada:rerun:30:sge:0:1795454401:1795454407:1795454412:0:0:5:0.140887:0.003726:\
4976.000000:0:0:0:0:552:0:0:0.000000:8:0:0:0:11:42:NONE:defaultdepartment:NONE:1:0:0.144613:\
0.000106:0.000037:-l h_rt=600:0.000000:NONE:3596288.000000:0:0
"""

#: 31 January 2024 12:00:00 UTC.
NOON = 1_706_702_400

#: What ends a record of LSF 10.1 after the limit, options and average memory, with the run time.
TAIL = '"select[type == any] " "" -1 "" -1 0 "" 0 0 "" {} "/home/ada" 0 "" 0.0 0.0 0.0 0.0 0.0'


def lsf_record(**changes: Any) -> str:
    """A record of a job that ran from five past twelve to five past one, with some changes."""
    told: dict[str, Any] = {
        "end": NOON + 3900, "id": 7, "processors": 8, "submit": NOON, "start": NOON + 300,
        "user": '"ada"', "queue": '"normal"', "depend": '""', "asked": "0", "hosts": '1 "8*n1"',
        "status": 64, "name": '"relax"', "command": '"./relax ""a b"" c"', "user_time": "28000.5",
        "project": '"default"', "exit": 0, "index": 0, "memory": 4096, "reservation": '""',
        "why": 0, "extension": "0", "usage": "0", "limit": 7200, "run": 3600,
    }  # fmt: skip
    told |= changes
    t = told
    return (
        f'"JOB_FINISH" "10.1" {t["end"]} {t["id"]} 1001 33554438 {t["processors"]} {t["submit"]} '
        f'0 0 {t["start"]} {t["user"]} {t["queue"]} "rusage[mem=4096]" {t["depend"]} "" "login" '
        f'"/home/ada" "" "out" "" "1706702400.7" {t["asked"]} {t["hosts"]} {t["status"]} 60.0 '
        f"{t['name']} {t['command']} {t['user_time']} 12.5 960 0 -1 0 0 3026 0 0 0 0 -1 0 0 0 12 6 "
        f'-1 "" {t["project"]} {t["exit"]} {t["processors"]} "" "" {t["index"]} {t["memory"]} 0 '
        f'"" "" {t["reservation"]} "" 0 "" {t["why"]} "" -1 "" "" "" "" -1 "" "" 6160 "" '
        f'{t["start"]} "" "" {t["extension"]} {t["usage"]} {t["limit"]} 0 8640 '
        f"{TAIL.format(t['run'])}\n"
    )


#: A job, an element of an array, one that was requeued, one killed while it waited, one that ran
#: too long, and events of other kinds.
LSF = (
    '"EVENT_ADRSV_FINISH" "10.1" 1706702000 1706701000 1 0 "ada" "user#0" "n1"\n'
    + lsf_record()
    + lsf_record(id=8, index=4, submit=NOON + 60, name='"scan[1-10]%2"', hosts='2 "n1" "n2"',
             processors=2, command='"./scan"', project='"p7"', depend='"done(7)"')
    + lsf_record(id=9, user='"bob"', submit=NOON + 90, why=10, status=32, exit=130 << 8)
    + '"JOB_RESIZE" "10.1" 1706702500 9 0 1706702400 1001 "bob" 0 0 1 "n1" 1 "n2" 1 "n1" 1 "n2"\n'
    + lsf_record(id=9, user='"bob"', submit=NOON + 90, start=NOON + 4000, end=NOON + 4100,
             hosts='1 "n3"', usage='1 n3 1306 0 1287 242 0', run=40)
    + lsf_record(id=10, submit=NOON + 100, start=0, hosts="0", status=32, why=14, end=NOON + 700,
             user_time="-1.0", memory=0, run=0)
    + lsf_record(id=11, submit=NOON + 120, name='""', status=32, why=5, exit=140 << 8, limit=3600,
             reservation='"ada#3"', asked='1 "n1"', extension='2 1032 "0" 1033 "0"')
)  # fmt: skip


#: A history: a job that ended well, one of a cluster that was evicted once and failed, one that was
#: removed while it ran, one removed while it waited, one while it waited again, and one on hold.
HTCONDOR = r"""
AcctGroup = "physics" | AllowedJobDuration = 7200 | ClusterId = 7 | Cmd = "/home/ada/relax" |
CompletionDate = 1706706300 | CpusProvisioned = 8 | CumulativeSuspensionTime = 120 |
EnteredCurrentStatus = 1706706300 | ExitBySignal = false | ExitCode = 0 |
JobCurrentStartDate = 1706702700 | JobPrio = 5 | JobStartDate = 1706702700 | JobStatus = 4 |
LastRemoteHost = "slot1_1@n1" | MemoryUsage = ( ( ResidentSetSize + 1023 ) / 1024 ) |
NumJobStarts = 1 | Owner = "ada" | ProcId = 0 | ProjectName = "p7" | QDate = 1706702400 |
RemoteSysCpu = 12.5 | RemoteUserCpu = 28000.5 | RemoteWallClockTime = 3600.0 | RequestCpus = 8 |
RequestMemory = 4096 |
Requirements = ( TARGET.Arch == "X86_64" ) && ( TARGET.Memory >= RequestMemory ) |
ResidentSetSize = 1000000 | ResidentSetSize_RAW = 987648
*** Offset = 0 ClusterId = 7 ProcId = 0 Owner = "ada" CompletionDate = 1706706300
clusterid = 8 | procid = 1 | Owner = "bob" | QDate = 1706702460 | JobStartDate = 1706702500 |
JobCurrentStartDate = 1706703000 | NumJobStarts = 2 | CompletionDate = 1706703060 |
JobStatus = 4 | ExitCode = 3 | RequestCpus = 1 |
RequestMemory = ifthenelse(MemoryUsage =!= undefined,MemoryUsage,1) | MaxWallTime = 60 |
Cmd = "/bin/say \"a b\""

ClusterId = 9 | ProcId = 0 | Owner = "bob" | QDate = 1706702500 |
JobCurrentStartDate = 1706702600 | EnteredCurrentStatus = 1706702700 | CompletionDate = 0 |
JobStatus = 3 | LastJobStatus = 2 | RequestCpus = 1
*** Offset = 4000 ClusterId = 9 ProcId = 0 Owner = "bob" CompletionDate = 0
ClusterId = 10 | ProcId = 0 | Owner = "bob" | QDate = 1706702600 |
EnteredCurrentStatus = 1706702900 | JobStatus = 3 | LastJobStatus = 1 | RequestCpus = 1
*** Offset = 5000 ClusterId = 10 ProcId = 0 Owner = "bob" CompletionDate = 0
ClusterId = 11 | ProcId = 0 | Owner = "bob" | QDate = 1706702700 |
JobCurrentStartDate = 1706702800 | EnteredCurrentStatus = 1706709000 |
RemoteWallClockTime = 50.0 | JobStatus = 3 | LastJobStatus = 5 | ExitBySignal = true |
RequestCpus = 1
*** Offset = 6000 ClusterId = 11 ProcId = 0 Owner = "bob" CompletionDate = 0
ClusterId = 12 | ProcId = 0 | JobStatus = 5
""".replace(" |\n", "\n").replace(" | ", "\n")

#: As in logs of grids: names, sites, times since 1970, memory that is not a number.
GWF = """\
# Grid Workload Format, anonymized
# JobID\tSubmitTime\tWaitTime\tRunTime\tNProcs ...
1\t1136070024\t203761\t138467\t1\t138371.5\t98652\t1\t259200\t-1\t1\tU1\tG1\t-1\tQ1\t-1\tO1\tR1\t\
UNITARY\t-1\t-1\t-1\t-1\ti686,Linux 2.4\t-1\t-1\t-1\tVO1\t-1
2\t1136070690\t5\t60\t4\t-1\t12kb\t4\t90\t-1\t0\tU2\tG1\t7\tQ2\t-1\tO1\tR2\t\
BoT\tB17\t0.5\t-1\t-1\t-1\t-1\t-1\t-1\tVO1\tP3
"""

#: As Batsim writes it: a job that ended, one that was killed, one that was rejected.
BATSIM_JOBS = """\
job_id,workload_name,profile,submission_time,requested_number_of_resources,requested_time,\
success,final_state,starting_time,execution_time,finish_time,waiting_time,turnaround_time,\
stretch,allocated_resources,consumed_energy,metadata
5,w0,delay60,0.000000,4,90.000000,1,COMPLETED_SUCCESSFULLY,5.000000,60.000000,65.000000,\
5.000000,65.000000,1.083333,0-2 7,-1.000000,""
6,w0,delay99,1.500000,2,50.000000,0,COMPLETED_WALLTIME_REACHED,1.500000,50.000000,51.500000,\
0.000000,50.000000,1.000000,3-4,-1.000000,"a, ""b"" c"
7,w0,big,9.000000,400,-1,0,REJECTED,,,,,,,,,""
"""

#: As Batsim's own examples are: ids of a workload, profiles of many types, keys for schedulers.
BATSIM = """{
  "description": "for a test",
  "nb_res": 8,
  "jobs": [
    {"id": "w0!4", "subtime": 0, "walltime": 30, "res": 1, "profile": "wait"},
    {"id": "w0!2", "subtime": 1.5, "res": 4, "profile": "twice", "user": "ann", "gpu": true},
    {"id": "w0!7", "subtime": 10, "walltime": -1, "res": 8, "profile": "compute", "user": "bo"}
  ],
  "profiles": {
    "wait": {"type": "delay", "delay": 20.25},
    "new": {"type": "DelayProfile", "delay": 3},
    "twice": {"type": "composed", "repeat": 2, "seq": ["wait", "new"]},
    "compute": {"type": "parallel_homogeneous", "cpu": 5e6, "com": 0}
  }
}
"""

#: The files of each format.
NATIVE = {
    "pbs": (TORQUE, PROFESSIONAL), "gridengine": (GRIDENGINE,), "lsf": (LSF,), "gwf": (GWF,),
    "htcondor": (HTCONDOR,), "batsim-jobs": (BATSIM_JOBS,), "batsim": (BATSIM,),
}  # fmt: skip
