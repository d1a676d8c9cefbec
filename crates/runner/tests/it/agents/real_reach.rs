//! What the commands of the real agents can reach through sockets of services, if they have a network.
#![cfg(target_os = "linux")]

use std::io::ErrorKind;
use std::os::unix::net::UnixListener;

use testkit::oracle::assert_sound;
use testkit::test_repo::TestRepo;

use crate::RUNNER;
use crate::agents::real::{BOTH, agent_folder, model_of, ran, setup};

/// Connects to each socket, and to the provider.
const CONNECT: &str = r#"
import os, socket, sys
def reach(family, address):
    try:
        socket.socket(family).connect(address)
        return "reached"
    except OSError as error:
        return "refused"
for path in sys.argv[2:]:
    print(os.path.basename(path), reach(socket.AF_UNIX, path))
print("network", reach(socket.AF_INET, ("127.0.0.1", int(sys.argv[1]))))
open("/tmp/own", "w").write("own")
"#;

#[test]
fn commands_with_a_network_reach_no_service_of_the_user() {
    for kind in BOTH {
        let places = ["/tmp", "/var/tmp"].map(|place| tempfile::tempdir_in(place).unwrap());
        let repo = TestRepo::empty_in(RUNNER, tempfile::tempdir_in(agent_folder()).unwrap());
        let home = repo.outside().join("home/service");
        std::fs::create_dir_all(&home).unwrap();
        let paths =
            [places[0].path().join("in-tmp"), places[1].path().join("in-var-tmp"), home.join("in-home")];
        let services = paths.each_ref().map(|path| UnixListener::bind(path).unwrap());
        let words = paths.each_ref().map(|path| path.display().to_string()).join(" ");
        let model = model_of(&format!(
            "[[part]]\n[[part.step]]\ndo.shell = 'python3 connect.py $(cat port) {words} > reached.txt 2>&1'\n\
             [[part.step]]\ndo.final = {{ status = 'done', summary = 'tried' }}\n"
        ));
        let url = model.url();
        let setup = setup(kind, &url)
            .executor_keys("network = \"full\"")
            .file("connect.py", CONNECT)
            .file("port", url.rsplit(':').next().unwrap());
        let repo = setup.start_in(repo);
        let step = ran(&repo, &["step"]);
        let expected = "in-tmp refused\nin-var-tmp refused\nin-home refused\nnetwork reached\n";
        assert_eq!(repo.read("reached.txt"), expected, "{kind}: {}{}", step.stdout, step.stderr);
        for service in services {
            service.set_nonblocking(true).unwrap();
            assert_eq!(service.accept().unwrap_err().kind(), ErrorKind::WouldBlock, "{kind}");
        }
        assert_sound(&repo);
    }
}
