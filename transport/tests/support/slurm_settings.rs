//! What every Slurm of a test is told: no service of names, users or keys is needed, nothing is
//! limited or accounted, and whatever ends is given up soon.

/// Lines of a `slurm.conf` that say the same for all.
pub(crate) const SETTINGS: &str = "\
AuthType=auth/none
CredType=cred/none
SlurmUser=root
SlurmdUser=root
MpiDefault=none
MpiParams=ports=21000-21100
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/builtin
ReturnToService=2
SlurmdParameters=config_overrides
SlurmctldTimeout=30
SlurmdTimeout=30
KillWait=5
InactiveLimit=0
MessageTimeout=30
PartitionName=debug Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=YES
";
