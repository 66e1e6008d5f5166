"""Keys that are not modelled: those about scheduling, and those that are not.

The value of any other key is never repeated: it may be a secret.

Source: man page slurm.conf(5) of Slurm 22.05, and of later versions as far as they add keys.
"""

from __future__ import annotations

import re

from hpcrowd.environment.machine.slurm.records import Value, known_key, of_words

#: Settings that may change schedules, in lower case.
SCHEDULING = of_words("""
    allowspecresourcesusage burstbuffertype completewait defcpupergpu defmempergpu downnodes
    federationparameters frontendname jobsubmitplugins licenses maxjobcount maxmempergpu
    mcsplugin mcsparameters nodefeaturesplugins powerparameters powerplugin priorityparameters
    prioritysitefactorplugin prioritysitefactorparameters reconfigflags requeueexit
    requeueexithold resvoverrun suspendtime switchname topologyparam topologyplugin
    schedulerrootfilter clifilterplugins prologflags maxtaskspernode nodeset maxbatchrequeue
    defcpupernode jobdefaults
""")

#: Keys of nodes, partitions, reservations, associations and QOS that may change schedules.
OF_PARTS = of_words("""
    alternate allocnodes burstbuffer corecnt exclusivetopo exclusiveuser features gracetime groups
    jobdefaults licenses limitfactor overtimelimit powerdownonidle preemptexempttime priority
    reqresv restrictedcorespergpu resumetimeout rootonly selecttypeparameters topology trespernode
    usagethreshold wckey
""")

#: Limits, of anything.
_LIMIT = re.compile(r"(def|grp|max|min)(cpu|job|mem|nodes|prio|submit|tres|wall)[a-z]*")

#: A number, which may be a value of an option.
_NUMBER = re.compile(r"-?[0-9.]{1,12}[a-z%]?", re.IGNORECASE)

#: Values that change nothing, by key.
NEUTRAL = {
    "topologyplugin": {"topology/none", "topology/default", "topology/flat"},
    "mcsplugin": {"mcs/none"},
    "maxjobcount": {"10000"},
    "maxtaskspernode": {"512"},
    "maxbatchrequeue": {"5"},
    "prologflags": {"alloc", "contain", "alloc,contain", "x11", "contain,x11", "alloc,contain,x11"},
    "mcsparameters": {"(null)"},
    "schedulerrootfilter": {"1"},
}

#: Options of SchedulerParameters that do not change schedules.
HARMLESS_OPTIONS = of_words("""
    enable_user_top nohold_on_prolog_fail max_script_size bf_node_space_size salloc_wait_nodes
    sbatch_wait_nodes no_env_cache enable_hetjob_steps disable_hetjob_steps step_retry_count
    step_retry_time max_submit_line_size max_switch_wait default_gbytes no_backup_scheduling
    bb_array_stage_cnt requeue_setup_env_fail disable_job_shrink enable_job_state_cache
""")

#: Settings that have nothing to do with schedules.
HARMLESS = of_words("""
    accountingstoragetype defaultstoragetype defaultstorageuser defaultstoragehost
    defaultstorageport defaultstorageloc defaultstoragepass accountingstoragebackuphost
    accountingstorageexternalhost accountingstoragehost accountingstorageloc
    accountingstorageparameters accountingstoragepass accountingstorageport
    accountingstoragetres accountingstorageuser accountingstoreflags accountingstorejobcomment
    acctgatherenergytype acctgatherfilesystemtype acctgatherinfinibandtype
    acctgatherinterconnecttype acctgathernodefreq acctgatherprofiletype allowedkmemspace
    allowedramspace allowedswapspace authaltparameters authalttypes authinfo authtype backupaddr
    backupcontroller batchstarttimeout bcastexclude bcastparameters boot_time cacherefresh
    cachegroups cgroupautomount cgroupmountpoint cgroupplugin certmgrparameters certmgrtype
    checkpointtype communicationparameters constraincores constraindevices constrainkmemspace
    constrainramspace constrainswapspace controladdr controlmachine corespecplugin cpufreqdef
    cpufreqgovernors credtype cryptotype debugflags dataparserparameters disablerootjobs
    eiotimeout enablecontrollers epilog epilogmsgtime epilogslurmctld epilogtimeout
    extsensorsfreq extsensorstype fasticonfig fastschedule firstjobid frontendaddr getenvtimeout
    gpufreqdef grestypes groupupdateforce groupupdatetime hash_val hashplugin
    healthcheckinterval healthchecknodestate healthcheckprogram httpparsertype ignoresystemd
    ignoresystemdonfailure inactivelimit interactivestepoptions jobacctgatherfrequency
    jobacctgatherparams jobacctgathertype jobcheckpointdir jobcomphost jobcomploc jobcompparams
    jobcomppass jobcompport jobcomptype jobcompuser jobcontainertype jobcredentialprivatekey
    jobcredentialpubliccertificate jobfileappend killonbadexit killwait launchparameters
    launchtype logtimeformat maildomain mailprog maxdbdmsgs maxjobid maxkmempercent maxnodecount
    maxrampercent maxstepcount maxswappercent memlimitenforce memoryswappiness messagetimeout
    minjobage minkmemspace minramspace mpidefault mpiparams multiple_slurmd next_job_id
    plugindir plugstackconfig prepparameters prepplugins privatedata proctracktype prolog
    prologepilogtimeout prologslurmctld prologtimeout propagateprioprocess
    propagateresourcelimits propagateresourcelimitsexcept rebootprogram resumefailprogram
    resumeprogram resumerate resumetimeout resvepilog resvprolog returntoservice routeplugin
    sallocdefaultcommand sbcastparameters schedulertimeslice scronparameters slurm_conf
    slurm_version slurmctldaddr slurmctlddebug slurmctldhost slurmctldlogfile
    slurmctldparameters slurmctldpidfile slurmctldplugstack slurmctldport
    slurmctldprimaryoffprog slurmctldprimaryonprog slurmctldsyslogdebug slurmctldtimeout
    slurmddebug slurmdlogfile slurmdparameters slurmdpidfile slurmdport slurmdspooldir
    slurmdsyslogdebug slurmdtimeout slurmduser slurmschedlogfile slurmschedloglevel slurmuser
    srunepilog srunportrange srunprolog statesavelocation suspendexcnodes suspendexcparts
    suspendexcstates suspendprogram suspendrate suspendtimeout schedulerport switchparameters
    switchtype taskepilog taskplugin taskpluginparam taskprolog tcptimeout tlsparameters tlstype
    tmpfs trackwckey treewidth unkillablestepprogram unkillablesteptimeout urlparsertype usepam
    vsizefactor waittime x11parameters clusternode namespacetype namespaceplugin metricstype
""")


def note_of(value: Value, what: str = "") -> str:
    """Return the line about a value that is not modelled.

    Parameters
    ----------
    value
        Of any key; it is only shown if the key is known.
    what
        What has the value, such as ``partition p``.
    """
    key = value.key.lower()
    known = key in SCHEDULING | OF_PARTS or _LIMIT.fullmatch(key)
    shown = (
        f"{value.key}={value.text}" if known else f"{known_key(value.key)}: a key that is not known"
    )
    return ": ".join(filter(None, (value.where, what, shown)))


def option_of(word: str) -> str:
    """Return an option that is not known, with its value if that is a number."""
    name, equals, value = word.partition("=")
    return word if not equals or _NUMBER.fullmatch(value) else name
