//! Which agents are installed and logged in, and which one to propose.

use crate::agents::AgentSpec;

/// Whether an agent is logged in, as far as its files and variables tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoginState {
    Found,
    Missing,
    /// The system keeps logins where they cannot be seen, or the agent logs in elsewhere.
    Unknown,
}

/// An agent whose program is on the PATH.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AgentPresence {
    pub agent: &'static AgentSpec,
    pub login: LoginState,
}

/// Where an agent's login can be found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoginPlaces {
    /// Variables that hold keys.
    pub variables: Vec<&'static str>,
    /// A variable with the folder of the login, and the file in it.
    pub moved: Option<MovedLogin>,
    /// Files relative to the home folder.
    pub files: Vec<String>,
    /// What such a file contains only after a login, if it exists before.
    pub file_text: Option<&'static str>,
    /// The command that logs in; none if the agent asks by itself when it is started.
    pub command: Option<&'static str>,
}

/// A login in a folder of the user's choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MovedLogin {
    pub folder_variable: &'static str,
    pub file: &'static str,
}

/// Where to look for an agent's login.
pub fn login_places(agent: &AgentSpec) -> LoginPlaces {
    if let Some(native) = agent.native() {
        let login = &native.login;
        return LoginPlaces {
            variables: login.key_variables.to_vec(),
            moved: Some(MovedLogin { folder_variable: login.home_variable, file: login.file }),
            files: vec![format!("{}/{}", login.home_dir, login.file)],
            file_text: None,
            command: Some(login.command),
        };
    }
    let login = &agent.surroundings.login;
    LoginPlaces {
        variables: login.key_variables.to_vec(),
        moved: None,
        files: login.files.iter().map(|file| (*file).to_owned()).collect(),
        file_text: login.file_text,
        command: Some(login.command),
    }
}

/// The agent to propose: one that is logged in, before one that may be; among equals the first of the registry.
pub fn choose_agent(installed: &[AgentPresence]) -> Option<AgentPresence> {
    let rank = |presence: &&AgentPresence| match presence.login {
        LoginState::Found => 0,
        LoginState::Unknown => 1,
        LoginState::Missing => 2,
    };
    installed.iter().min_by_key(rank).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agents::{AGENTS, agent_named};

    #[test]
    fn every_agent_has_a_place_for_its_login() {
        for agent in AGENTS {
            let places = login_places(agent);
            assert!(!places.variables.is_empty() && !places.files.is_empty(), "{}", agent.name);
        }
    }

    #[test]
    fn an_agent_that_is_logged_in_is_chosen() {
        let presence = |name, login| AgentPresence { agent: agent_named(name).unwrap(), login };
        let chosen = |installed: &[AgentPresence]| choose_agent(installed).map(|chosen| chosen.agent.name);
        assert_eq!(chosen(&[]), None);
        let codex = presence("codex", LoginState::Missing);
        assert_eq!(chosen(&[codex]), Some("codex"));
        assert_eq!(chosen(&[codex, presence("pi", LoginState::Unknown)]), Some("pi"));
        assert_eq!(
            chosen(&[codex, presence("pi", LoginState::Unknown), presence("claude", LoginState::Found)]),
            Some("claude")
        );
    }
}
