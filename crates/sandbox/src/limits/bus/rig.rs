//! For tests: a real bus of our own, and somebody on it who acts as systemd.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;

use super::connection::{Connection, Deadline};
use super::message::{Header, Kind, Message};
use super::wire::Writer;

const CONFIGURATION: &str = r#"<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>session</type>
  <listen>unix:path=SOCKET</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow send_destination="*"/>
    <allow receive_sender="*"/>
    <allow own="*"/>
  </policy>
</busconfig>
"#;
pub(in super::super) const JOB: &str = "/org/freedesktop/systemd1/job/7";
/// More than a test takes.
const LONG: Duration = Duration::from_mins(1);

pub(in super::super) fn far_away() -> Deadline {
    Deadline::after(LONG)
}

/// `dbus-daemon` on a socket of its own, while this lives.
pub(in super::super) struct Bus {
    folder: tempfile::TempDir,
    daemon: Child,
}

impl Bus {
    pub(in super::super) fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("bus");
        let configuration = folder.path().join("bus.conf");
        let text = CONFIGURATION.replace("SOCKET", socket.to_str().unwrap());
        std::fs::write(&configuration, text).unwrap();
        let mut daemon = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "dbus-daemon", "--nofork"])
            .args(["--nopidfile", "--print-address=1", "--config-file"])
            .arg(configuration)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("dbus-daemon and setpriv are there: cargo xtask setup");
        // It says its address once it listens.
        let mut address = String::new();
        let output = daemon.stdout.take().unwrap();
        BufReader::new(output).read_line(&mut address).unwrap();
        assert!(address.starts_with("unix:path="), "{address}");
        Self { folder, daemon }
    }

    pub(in super::super) fn path(&self) -> PathBuf {
        self.folder.path().join("bus")
    }
}

impl Drop for Bus {
    fn drop(&mut self) {
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
    }
}

/// How the one who acts as systemd answers.
#[derive(Debug, Clone, Copy)]
pub(in super::super) enum Manners {
    /// Ends another job, then ours, with this result.
    Job(&'static str),
    Refuse(&'static str),
    Silence,
    /// A reply without a job in it.
    OtherReply,
    /// The end of a job told with other types.
    OtherSignal,
}

/// Somebody who acts as systemd for one call.
pub(in super::super) struct Manager(JoinHandle<Message>);

impl Manager {
    pub(in super::super) fn start(bus: &Path, manners: Manners) -> Self {
        let mut connection = Connection::open(bus, far_away()).unwrap();
        let mut name = Writer::default();
        name.text("org.freedesktop.systemd1");
        name.number(0);
        let asked = connection.call_bus("RequestName", "su", name).unwrap();
        connection.reply_to(asked).unwrap();
        Self(std::thread::spawn(move || serve(&mut connection, manners)))
    }

    /// The call that was answered.
    pub(in super::super) fn call(self) -> Message {
        self.0.join().unwrap()
    }
}

fn serve(bus: &mut Connection, manners: Manners) -> Message {
    let call = loop {
        let message = bus.next().unwrap();
        if message.kind == Kind::Call {
            break message;
        }
    };
    let answers = match manners {
        Manners::Job(result) => vec![
            reply(&call, "o", JOB),
            ended(&format!("{JOB}7"), "canceled"),
            ended(JOB, result),
        ],
        Manners::Refuse(name) => vec![refusal(&call, name)],
        Manners::Silence => Vec::new(),
        Manners::OtherReply => vec![reply(&call, "s", "done")],
        Manners::OtherSignal => {
            let mut signal = ended(JOB, "done");
            signal.header.signature = Some("us".to_owned());
            let mut body = Writer::default();
            body.number(7);
            body.text("done");
            signal.body = body.finish();
            vec![reply(&call, "o", JOB), signal]
        }
    };
    for answer in answers {
        bus.send(answer).unwrap();
    }
    if matches!(manners, Manners::Silence) {
        // Until the bus is gone: it would answer for one who leaves.
        let _ = bus.next();
    }
    call
}

fn message(kind: Kind, header: Header, body: Writer) -> Message {
    Message {
        kind,
        serial: 0,
        header,
        body: body.finish(),
    }
}

fn reply(call: &Message, signature: &str, text: &str) -> Message {
    let mut body = Writer::default();
    body.text(text);
    let header = Header {
        reply_to: Some(call.serial),
        destination: call.header.sender.clone(),
        signature: Some(signature.to_owned()),
        ..Header::default()
    };
    message(Kind::Reply, header, body)
}

fn refusal(call: &Message, name: &str) -> Message {
    Message {
        kind: Kind::Error,
        header: Header {
            error: Some(name.to_owned()),
            ..reply(call, "s", "no").header
        },
        ..reply(call, "s", "no")
    }
}

fn ended(job: &str, result: &str) -> Message {
    let mut body = Writer::default();
    body.number(7);
    for text in [job, "some.scope", result] {
        body.text(text);
    }
    let header = Header {
        path: Some("/org/freedesktop/systemd1".to_owned()),
        interface: Some("org.freedesktop.systemd1.Manager".to_owned()),
        member: Some("JobRemoved".to_owned()),
        signature: Some("uoss".to_owned()),
        ..Header::default()
    };
    message(Kind::Signal, header, body)
}
