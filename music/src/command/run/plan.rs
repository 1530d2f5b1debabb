//! What to start, and where.

use std::path::{Path, PathBuf};

use transport::bootstrap::{TIMEOUT_VARIABLE, environment};
use transport::cluster::FABRIC_VARIABLE;
use transport::launch::{HostSpec, ProcessSpec};
use transport::shm::RANKS_MAX;
use tutti::Job;

use super::super::become_rank::variables;
use super::{RunOptions, hosts};

/// How long ranks may take to join, in seconds, where [`TIMEOUT_VARIABLE`] does not say it. Long:
/// this launcher sees by itself which programs have ended, and says for whom the others wait.
const JOINED_WITHIN: &str = "600";
/// The command that starts agents, where no option says it.
const AGENT_VARIABLE: &str = "TUTTI_AGENT";

/// The processes of a job and the hosts that they name.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) processes: Vec<ProcessSpec>,
    pub(super) hosts: Vec<HostSpec>,
}

impl Plan {
    /// The applications in the order of the file, their ranks one after the other.
    ///
    /// # Errors
    /// One line, if the options do not say where each process goes.
    pub(super) fn new(job: &Job, options: &RunOptions) -> Result<Self, String> {
        if let Some(nameless) = options.env.iter().find(|text| !has_name(text)) {
            return Err(format!("--env {nameless}: a variable needs a name"));
        }
        let mut processes = processes(job, &options.file)?;
        let fabric = options.fabric.iter();
        let fabric: Vec<_> = fabric
            .map(|name| (FABRIC_VARIABLE.into(), name.into()))
            .collect();
        let Some(list) = &options.hosts else {
            for process in &mut processes {
                process.env.extend(hosts::given(&options.env));
                process.env.extend(fabric.clone());
            }
            let hosts = Vec::new();
            return Ok(Self { processes, hosts });
        };
        let list = hosts::parse(list)?;
        let places = hosts::place(&list, job.ranks())?;
        check_room(&list, &places)?;
        let template = options.agent.clone().or(environment(AGENT_VARIABLE));
        let music = std::env::current_exe().map_err(|error| error.to_string())?;
        let (hosts, agents) = hosts::agents(&list, template.as_deref(), &music)?;
        let here =
            std::env::current_dir().map_err(|error| format!("current directory: {error}"))?;
        let passed_on = hosts::variables(&options.env, std::env::vars_os());
        for (process, place) in processes.iter_mut().zip(places) {
            process.host = agents[place];
            // What the file sets counts more, what the user asks for most.
            let own = std::mem::replace(&mut process.env, passed_on.clone());
            process.env.extend(own);
            process.env.extend(hosts::given(&options.env));
            process.env.extend(fabric.clone());
            process.cwd = Some(
                process
                    .cwd
                    .as_ref()
                    .map_or(here.clone(), |wd| here.join(wd)),
            );
        }
        Ok(Self { processes, hosts })
    }
}

fn has_name(variable: &str) -> bool {
    !variable.is_empty() && !variable.starts_with('=')
}

fn check_room(hosts: &[hosts::Host], places: &[usize]) -> Result<(), String> {
    for (index, host) in hosts.iter().enumerate() {
        let count = places.iter().filter(|place| **place == index).count();
        if count > RANKS_MAX {
            let name = host.name();
            return Err(format!(
                "host {name} would get {count} processes; one machine carries at most {RANKS_MAX}"
            ));
        }
    }
    Ok(())
}

fn processes(job: &Job, file: &Path) -> Result<Vec<ProcessSpec>, String> {
    let mut processes = Vec::new();
    for (index, application) in job.applications.iter().enumerate() {
        let mut variables = variables(job, index, file)?.to_vec();
        if environment(TIMEOUT_VARIABLE).is_none() {
            variables.push((TIMEOUT_VARIABLE.into(), JOINED_WITHIN.into()));
        }
        for rank in 0..application.processes {
            processes.push(ProcessSpec {
                program: application.binary.clone().into(),
                args: application.arguments.iter().map(Into::into).collect(),
                env: variables.clone(),
                cwd: application.working_directory.as_ref().map(PathBuf::from),
                label: format!("{}.{rank}", application.name),
                app: u32::try_from(index).unwrap_or(u32::MAX),
                host: None,
            });
        }
    }
    Ok(processes)
}
